"""Every public name is documented in one convention: parameters, what comes back, an example that runs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import caesura as cz
from caesura import api, functions, qre
from caesura.testing.case import LawCase

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
NOTES = ("Promises", "State", "Feedback", "Spark")


def members(thing: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a class, its own and those of its rooms; not what Python itself brings."""
    for name, value in inspect.getmembers(thing):
        home = getattr(value, "__module__", None) or ""
        if not name.startswith("_") and inspect.isroutine(value) and home.startswith("caesura"):
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


DIRECTIVE = re.compile(r"^\.\. auto(function|method|class|module):: (\S+)((?:\n   :.*)*)", re.MULTILINE)


def found(dotted: str) -> Any:
    """What a name on a page stands for: `caesura.fixpoint` is the function, and not the room of that name."""
    room, _, name = dotted.rpartition(".")
    if not room:
        return importlib.import_module(name)
    try:
        home = importlib.import_module(room)
    except ModuleNotFoundError:
        home = found(room)
    return getattr(home, name) if hasattr(home, name) else importlib.import_module(dotted)


def documented(page: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions and methods that stand on a page of the reference."""
    for kind, name, options in DIRECTIVE.findall((REFERENCE / f"{page}.md").read_text()):
        thing = found(name)
        listed = re.search(r":members:(.*)", options)
        if kind in ("function", "method"):
            yield name, thing
        elif listed and listed[1].strip():
            some = [one.strip() for one in listed[1].split(",")]
            yield from ((f"{name}.{one}", f) for one in some if inspect.isroutine(f := getattr(thing, one)))
        elif listed and kind == "class":
            yield from ((f"{name}.{one}", f) for one, f in members(thing))
        elif listed:
            public = ((one, getattr(thing, one)) for one in getattr(thing, "__all__", ()))
            yield from ((f"{name}.{one}", f) for one, f in public if inspect.isroutine(f))


STEPS = ("rows", "lifetimes", "joins", "windows", "matching", "steering")
"""Pages of steps: what they promise, keep, do with feedback, and where they run on Spark is told too."""


@pytest.mark.parametrize("page", STEPS)
def test_what_stands_on_a_page_of_the_reference_is_told_whole(page: str) -> None:
    assert report(documented(page)) == {}


@pytest.mark.parametrize("page", STEPS)
def test_a_step_tells_its_promises_state_feedback_and_place_on_spark(page: str) -> None:
    steps = [
        (name, f) for name, f in documented(page) if "Stream" in str(inspect.signature(f).return_annotation)
    ]
    missing = {
        name: told
        for name, step in steps
        if (told := [w for w in NOTES if w not in section(inspect.getdoc(step) or "", "Notes")])
    }
    assert missing == {}


def test_every_method_of_a_stream_stands_on_a_page() -> None:
    there = {inspect.unwrap(f) for page in REFERENCE.glob("*.md") for _, f in documented(page.stem)}
    for thing in (cz.Stream, api.Grouped, api.Windowed, api.AliveRows, api.OverRows):
        assert [name for name, method in members(thing) if inspect.unwrap(method) not in there] == []


VALUES = ("expressions", "functions", "aggregates", "patterns", "modules", "testing", "punctuation")


@pytest.mark.parametrize("page", VALUES)
def test_what_stands_on_a_page_of_values_and_patterns_is_told_whole(page: str) -> None:
    assert report(documented(page)) == {}


def test_every_function_and_method_of_an_expression_stands_on_a_page() -> None:
    pages = ("expressions", "functions")
    there = {inspect.unwrap(f) for page in pages for _, f in documented(page)}
    public = [*members(cz.Expr), *((name, getattr(functions, name)) for name in functions.__all__)]
    assert [name for name, f in public if inspect.unwrap(f) not in there] == []


@pytest.mark.parametrize("room", [qre], ids=lambda room: str(room.__name__))
def test_every_public_name_of_a_room_stands_on_a_page(room: ModuleType) -> None:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    assert [name for name in room.__all__ if not re.search(rf":: {room.__name__}\.{name}\n", pages)] == []


@pytest.mark.parametrize("thing", [cz.History, cz.Pattern, cz.Punctuation, cz.CaesuraError, LawCase])
def test_every_method_of_a_class_is_told_whole(thing: type) -> None:
    assert report(members(thing)) == {}
