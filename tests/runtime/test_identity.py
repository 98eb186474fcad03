"""What a plan and its sources are called holds in every process: by name, schema and content."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import killed_sources as given
import pyarrow as pa
import pytest
from depth import DEPTH

import caesura as cz
from caesura import col
from caesura.errors import ExprError, PlanError
from caesura.expr.code import code_key
from caesura.runtime import Query

HERE = Path(__file__).parent
CALLS_ID = re.compile(r"(?<![\w.])id\(")
sys.path.insert(0, str(HERE.parent / "laws"))


def python(*args: str, seed: int) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(HERE), str(HERE.parent / "laws"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": paths}
    return subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, check=False)


def test_every_kind_of_source_goes_on_in_a_new_process_after_a_kill(tmp_path: Path) -> None:
    given.write(tmp_path)
    script = str(HERE / "killed_sources.py")
    for seed, saves in enumerate((2, 2 * given.COUNT) if DEPTH == 1 else (2, 3, 2 * given.COUNT)):
        ended = python(script, str(tmp_path), str(saves), seed=seed)
        assert ended.returncode == (-signal.SIGKILL if saves < given.COUNT else 0), ended.stderr
    for name, make in given.queries(tmp_path).items():
        whole = given.Saved(tmp_path / "not there", name, make())
        wanted = [text for _ in whole.quiet_steps() for text in given.drawn(whole.queries[-1])]
        wanted += given.drawn(whole.queries[-1])
        got = json.loads((tmp_path / f"{name}.saved").read_text())["out"]
        assert (tmp_path / f"{name}.done").exists(), name
        assert got == wanted, name


FINGERPRINTS = """
import json, sys
import bucket_plans, law_cases
from caesura import Stream
from caesura.plan import walk
from caesura.testing.case import cases
streams = [Stream(s) for s in bucket_plans.sources()]
plans = {name: build(*streams).node for name, build in bucket_plans.PLANS.items()}
plans |= {f"law {case}": case.plan() for case in cases()}
json.dump({name: [n.fingerprint for n in walk(plan)] for name, plan in plans.items()}, sys.stdout)
"""


def test_no_fingerprint_changes_from_one_process_to_another() -> None:
    other = python("-c", FINGERPRINTS, seed=1)
    assert other.stdout, other.stderr
    with redirect_stdout(StringIO()) as here:
        exec(FINGERPRINTS, {})
    mine = json.loads(here.getvalue())  # in which there may be cases of other rooms too
    there = json.loads(other.stdout)
    assert len(there) > 100
    assert {name: mine[name] for name in there} == there


def rows() -> Any:
    return iter([{"ts": 1, "id": 7}])


def test_two_inputs_that_nothing_tells_apart_are_refused_unless_they_are_named() -> None:
    one, two = (cz.from_rows(rows(), time="ts").where(col("id") > 0).select(n="id") for _ in range(2))
    with pytest.raises(PlanError, match=r"nothing would tell which state(.|\n)*name='read-1'"):
        one.join(two, on="n").run()
    one, two = (cz.from_rows(rows(), time="ts", name=name).select(n="id") for name in ("left", "right"))
    assert one.join(two, on="n").run().table().num_rows == 1
    same = cz.from_rows(rows(), time="ts")
    assert same.select(n="id").join(same.select(n="id", m="id"), on="n").run().table().num_rows == 1


def test_publications_of_two_queries_with_one_plan_are_told_apart_by_name() -> None:
    def published(name: str) -> cz.Stream:
        node = cz.input_stream("in", pa.schema([("id", pa.int64())])).node
        return cz.subscribe(Query({"out": node}).publish("out", name=name))

    with pytest.raises(PlanError, match="publish the same output 'out'"):
        published("").union(published("")).query()
    assert len(published("a").union(published("b")).query().inputs) == 2
    assert published("a").node.fingerprint == published("a").node.fingerprint


class Weights:
    """An object that a function captures."""

    def __init__(self, by: float) -> None:
        self.by = by

    def weigh(self, x: float) -> float:
        return x * self.by


def test_what_a_function_captures_counts_by_what_it_is_made_of() -> None:
    assert code_key(Weights(2).weigh) == code_key(Weights(2).weigh) != code_key(Weights(3).weigh)


def test_a_function_that_holds_what_shows_nothing_of_itself_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(ExprError, match="holds a 'lock'"):
        code_key(lambda x: (lock, x))


def test_nothing_is_identified_by_where_it_lies_in_memory() -> None:
    package = Path(cz.__file__).parent
    within_a_call = {package / "events" / "plain.py"}  # parts that a value shares, while it is written
    within_a_run = {package / "io" / "sources" / "memory.py"}  # tables, which the run holds
    for file in set(package.rglob("*.py")) - within_a_call - within_a_run:
        text = file.read_text()
        for call in ast.walk(ast.parse(text)) if CALLS_ID.search(text) else ():
            named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "id"
            assert not named, f"{file}:{call.lineno}"
