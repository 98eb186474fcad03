"""``caesura doctor``: is this installation sound? Java, Python, libraries, versions, settings.

>>> DoctorFinding("Java", True, "17.0.15").line()
'ok    Java: 17.0.15'
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import typer

from caesura.cli.shell import AsJson, app, say, say_json
from caesura.spark.session import REAL_PYTHON, WITH_BYTECODE


@dataclass(frozen=True)
class DoctorFinding:
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    remedy: str = ""

    def line(self) -> str:
        mark = "ok   " if self.ok else "wrong"
        return f"{mark} {self.name}: {self.found}" + (
            f"\n      {self.remedy}" if self.remedy and not self.ok else ""
        )


def examine() -> list[DoctorFinding]:
    """Everything that has to be right for both hosts."""
    return [_python(), _java(), *(_library(*wanted) for wanted in LIBRARIES), _pandas(), _workers()]


LIBRARIES = (
    ("numpy", (2, 0), ""),
    ("pyarrow", (18, 0), ""),
    ("numba", (0, 61), ""),
    ("pyspark", (4, 2), "spark"),
    ("grpcio", (1, 67), "spark"),
    ("protobuf", (5, 0), "spark"),
)


def _python() -> DoctorFinding:
    version = ".".join(map(str, sys.version_info[:3]))
    return DoctorFinding(
        "Python", sys.version_info >= (3, 11), version, "Caesura needs Python 3.11 or later."
    )


def _java() -> DoctorFinding:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not shutil.which(java):
        return DoctorFinding("Java", False, "not found", "Install a JDK, 17 or later; Spark runs on it.")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)([^"]*)"', printed)
    if found is None:
        return DoctorFinding("Java", False, printed.strip().splitlines()[0], "Install a JDK, 17 or later.")
    remedy = "Spark 4 needs Java 17 or later; set JAVA_HOME to one."
    return DoctorFinding("Java", int(found.group(1)) >= 17, found.group(1) + found.group(2), remedy)


def _library(name: str, least: tuple[int, int], extra: str) -> DoctorFinding:
    wanted = ".".join(map(str, least))
    install = f"pip install 'caesura[{extra}]'" if extra else f"pip install '{name}>={wanted}'"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return DoctorFinding(name, False, "not installed", f"Install it: {install}.")
    parts = tuple(int(p) for p in re.findall(r"\d+", version)[:2])
    return DoctorFinding(name, parts >= least, version, f"{wanted} or later is needed: {install}.")


def _pandas() -> DoctorFinding:
    try:
        version = importlib.metadata.version("pandas")
    except importlib.metadata.PackageNotFoundError:
        return DoctorFinding("pandas", False, "not installed", "Install it: pip install 'caesura[spark]'.")
    return DoctorFinding(
        "pandas", version.startswith("2."), version, "PySpark wants pandas 2: pip install 'pandas<3'."
    )


def _workers() -> DoctorFinding:
    set_to = os.environ.get("PYSPARK_PYTHON")
    if set_to == str(WITH_BYTECODE):  # as cz.session() sets it
        set_to = os.environ.get(REAL_PYTHON)
    remedy = f"Unset PYSPARK_PYTHON, set it to {sys.executable}, or let cz.session() do it."
    return DoctorFinding(
        "Spark's Python", set_to in (None, sys.executable), set_to or "set by cz.session()", remedy
    )


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Checks Java, Python, libraries and settings, and says what to do."""
    findings = examine()
    if as_json:
        say_json([vars(f) for f in findings])
    else:
        for finding in findings:
            say(finding.line())
    if not all(f.ok for f in findings):
        raise typer.Exit(1)
