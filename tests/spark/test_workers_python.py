"""The Python that Spark starts for its workers: the installed pyspark, not Spark's zip of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caesura.spark.session import REAL_PYTHON, WITH_BYTECODE

session = sys.modules["caesura.spark.session"]

ASKED = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['PYTHONPATH'], sys.executable]))"


def _started(path: str | None, *arguments: str) -> list[Any]:
    """What a Python says that was started with a path of modules."""
    told = {REAL_PYTHON: sys.executable} | ({} if path is None else {"PYTHONPATH": path})
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    command = [str(WITH_BYTECODE), "-c", ASKED, *arguments]
    done = subprocess.run(command, env=kept | told, capture_output=True, text=True, check=True)
    made: list[Any] = json.loads(done.stdout)
    return made


def test_spark_s_zips_are_left_out_and_nothing_else(tmp_path: Path) -> None:
    own = [str(tmp_path / "with space"), str(tmp_path / "*"), str(tmp_path / "my.zip")]
    zips = ["/home/spark/python/lib/pyspark.zip", "/home/spark/python/lib/py4j-0.10.9.9-src.zip"]
    path = os.pathsep.join([zips[0], *own, zips[1], ""])
    arguments = ["a b", "$HOME", "*"]
    assert _started(path, *arguments) == [arguments, os.pathsep.join(own), sys.executable]
    assert _started(os.pathsep.join(zips))[1] == ""
    assert _started(None)[1] == ""


def test_it_is_taken_on_this_machine_where_pyspark_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv(REAL_PYTHON, "")
    for master in ("local", "local[2]", "local[*]"):
        assert session._python(master) == str(WITH_BYTECODE)
    for master in ("local-cluster[2,1,1024]", "spark://host:7077", "yarn"):
        assert session._python(master) == sys.executable
    assert os.environ[REAL_PYTHON] == sys.executable


def test_it_is_not_taken_where_another_pyspark_may_be_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REAL_PYTHON, "")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert session._python("local[2]") == sys.executable
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(session.sysconfig, "get_path", lambda _: "/elsewhere")
    assert session._python("local[2]") == sys.executable
    monkeypatch.undo()
    monkeypatch.setenv(REAL_PYTHON, "")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(session, "WITH_BYTECODE", Path("/nowhere/python"))
    assert session._python("local[2]") == sys.executable


def test_workers_read_the_installed_pyspark(spark: Any) -> None:
    def told(rows: Any) -> Any:
        import pyspark

        yield pyspark.__file__
        yield sys.executable

    import pyspark

    assert spark.sparkContext.range(0, 1, 1, 1).mapPartitions(told).collect() == [
        pyspark.__file__,
        sys.executable,
    ]


def test_a_python_that_lacks_what_workers_import_is_told(tmp_path: Path) -> None:
    def lacking(prints: str) -> str:
        python = tmp_path / prints.replace(" ", "-")
        python.write_text(f"#!/bin/sh\necho {prints}\n")
        python.chmod(0o700)
        told: str = session._lacking(str(python))
        return told

    own = "{}.{}".format(*sys.version_info[:2])
    assert session._lacking(sys.executable) == ""
    assert lacking(f"{own} pyarrow numba") == "which has no package 'pyarrow'"
    assert lacking("2.7") == f"which is Python 2.7; this is {own}"
    assert lacking(own) == ""
