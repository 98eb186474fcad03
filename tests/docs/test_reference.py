"""Every public name is documented in one convention: parameters, what comes back, an example that runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any


def members(thing: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a class, its own and those of its rooms; not what Python itself brings."""
    for name, value in inspect.getmembers(thing):
        if not name.startswith("_") and inspect.isroutine(value) and value.__module__.startswith("caesura"):
            yield name, value


def section(doc: str, title: str) -> str:
    """The text of a section, "" where there is none."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^[A-Z][\w ]+\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def lacks(function: Callable[..., Any]) -> list[str]:
    """What the docstring of a function does not tell."""
    doc = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    described = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", section(doc, "Parameters"), re.MULTILINE)
    named = {name.strip().lstrip("*") for line in described for name in line.split(",")}
    wanted = [name for name in signature.parameters if name not in ("self", "cls")]
    missing = [f"parameter {name}" for name in wanted if name not in named]
    missing += [f"no such parameter: {name}" for name in sorted(named - set(signature.parameters))]
    if signature.return_annotation not in (None, "None") and not section(doc, "Returns"):
        missing.append("returns")
    if ">>>" not in section(doc, "Examples"):
        missing.append("example")
    return missing


def report(functions: Iterator[tuple[str, Callable[..., Any]]]) -> dict[str, list[str]]:
    return {name: found for name, function in functions if (found := lacks(function))}


def test_a_docstring_without_its_parts_is_told() -> None:
    def half(a: int, b: int) -> int:
        """Adds.

        Parameters
        ----------
        a
            The first.
        c : int
            What is not there.
        """
        return a + b

    assert lacks(half) == ["parameter b", "no such parameter: c", "returns", "example"]
