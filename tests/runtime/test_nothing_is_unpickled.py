"""Nothing in the package unpickles anything but a user's own plan and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import caesura as cz

PACKAGE = Path(cz.__file__).parent
PICKLERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "pyspark.cloudpickle"}
PLACES = {
    "runtime/query/stored_plan.py": "writes a user's own plan",
    "audit/check.py": "reads one, when it is asked for",
    "spark/host/host.py": "lets Spark send a user's own functions",
    "spark/worker/job.py": "a user's own plan on its way through Spark, its tables apart",
    "spark/worker/shipped.py": "that plan as bytes within what Spark sends, read by the workers that need it",
    "spark/host/lane_source.py": "a user's own reader as bytes within what Spark sends, read to ask for ends",
    "spark/host/connect.py": "tries whether a user's own sink can travel, and reads nothing",
    "spark/host/epoch_function.py": "that sink and plan on their way to a Connect server",
    "kernels/cache.py": "names the error of numba's own files, and reads none",
}


TEXTS = {str(file.relative_to(PACKAGE)): file.read_text() for file in PACKAGE.rglob("*.py")}
TREES = {
    name: ast.parse(text)
    for name, text in TEXTS.items()
    if any(word.split(".")[-1] in text for word in (*PICKLERS, "__import__", "import_module"))
}
"""The files that may read a pickle, by their words."""


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "__import__",
            "importlib.import_module",
        ):
            yield from (
                a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
            )


def loads(tree: ast.AST) -> Iterator[str]:
    """What reads a pickle, or an array of objects, by whatever name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            by_name = called == "loads" and "pickle.loads" in set(imported(tree))
            if by_name or (called.split(".")[0] in ("pickle", "cloudpickle") and "load" in called):
                yield called
            yield from ("allow_pickle" for k in node.keywords if k.arg == "allow_pickle")


def test_picklers_are_imported_in_the_named_places_only() -> None:
    found = {name for name, tree in TREES.items() if PICKLERS & set(imported(tree))}
    assert found == set(PLACES)


def test_only_a_plan_that_was_asked_for_is_unpickled() -> None:
    assert {name: list(loads(tree)) for name, tree in TREES.items() if [*loads(tree)]} == {
        "audit/check.py": ["pickle.loads"],
        "spark/worker/job.py": ["loads"],
        "spark/worker/shipped.py": ["loads"],
        "spark/host/lane_source.py": ["loads"],
        "spark/host/epoch_function.py": ["loads"],
    }
    (reader,) = [
        node
        for node in ast.walk(TREES["audit/check.py"])
        if isinstance(node, ast.FunctionDef) and [*loads(node)]
    ]
    assert reader.name == "_stored"
