"""Spark's parent of Python workers, with all that a bucket imports read before the first of them is forked.

Spark forks a worker for each task that runs at once, and again where one has gone; each would read the same
modules, which takes longer than most epochs. `caesura.session` names this module on a local master; other
sessions may: ``spark.python.daemon.module``, where the executors have the package from the start.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

READ_AHEAD = (
    "pandas",  # Arrow imports it with the first value that it converts
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_util",
    "caesura.spark.worker.processor",
    "caesura.spark.worker.bucket",
    "caesura.spark.worker.reading",
    "numba",
)
"""What the tasks of an epoch need, in any plan."""


def read_ahead() -> None:
    """Imports what workers need."""
    for name in READ_AHEAD:
        import_module(name)


if __name__ == "__main__":
    read_ahead()
    manager()
