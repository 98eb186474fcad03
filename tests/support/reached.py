"""A plugin for pytest that keeps which functions of the package each test enters (Python 3.12 and later).

``python -m pytest -p reached --reached FOLDER``: a line of JSON for each test, in a file for each process.
Kernels run as machine code, which says nothing of what it enters: they count where Python calls them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from types import CodeType, FunctionType
from typing import Any, cast

import pytest
from thin import thinned

import caesura
from caesura.kernels import Kernel

PACKAGE = str(Path(caesura.__file__).parent)


class Reached:
    """What the test at hand has entered, and the file in which it will stand."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = (folder / f"{os.getpid()}.jsonl").open("w")
        self.left: set[str] = set()
        self.entered: set[str] = set()
        self.passed = True
        self._watch_functions()
        self._watch_kernels()

    def _watch_functions(self) -> None:
        watching = cast(Any, sys).monitoring
        watching.use_tool_id(watching.COVERAGE_ID, "reached")
        watching.register_callback(watching.COVERAGE_ID, watching.events.PY_START, self._starts)
        watching.set_events(watching.COVERAGE_ID, watching.events.PY_START)
        self._again = watching.restart_events
        self._enough = watching.DISABLE

    def _starts(self, code: CodeType, offset: int) -> Any:
        if code.co_filename.startswith(PACKAGE):
            self.entered.add(named(code))
        return self._enough

    def _watch_kernels(self) -> None:
        call = Kernel.__call__

        def noted(kernel: Kernel[..., Any], *args: Any, **kwargs: Any) -> Any:
            self.entered.update(_kernels(kernel))
            return call(kernel, *args, **kwargs)

        Kernel.__call__ = noted  # type: ignore[method-assign]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.left = {item.nodeid for item in thinned(items)[1]}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.entered, self.passed = set(), True
        self._again()
        began = process_time()
        done = yield
        said = {
            "test": item.nodeid,
            "seconds": round(process_time() - began, 4),
            "left": item.nodeid in self.left,
            "passed": self.passed,
            "entered": sorted(self.entered),
        }
        print(json.dumps(said), file=self.file, flush=True)
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed &= not report.failed


def named(code: CodeType) -> str:
    """A function by its file and name; what is written within it counts as it."""
    name = code.co_qualname.partition(".<")[0]
    return f"{os.path.relpath(code.co_filename, PACKAGE)}::{name}"


def _kernels(kernel: Kernel[..., Any]) -> Iterator[str]:
    plain = cast(FunctionType, kernel.twin)
    yield named(plain.__code__)
    for name in plain.__code__.co_names:
        called = plain.__globals__.get(name)
        if isinstance(called, Kernel) and called is not kernel:
            yield from _kernels(called)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reached", type=Path, help="the folder that says which functions each test enters")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("reached") or os.environ.get("CAESURA_REACHED")
    workers = config.getoption("numprocesses", default=None) and not hasattr(config, "workerinput")
    if folder and not workers:
        config.pluginmanager.register(Reached(Path(folder)), "reached-by-each-test")
