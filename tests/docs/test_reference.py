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
EXERCISED = {
    "OnSpark.create_view": "spark/test_spark_sinks.py",
    "OnSpark.run_batch": "spark/test_clock.py",
    "OnSpark.start": "spark/test_feedback_on_spark.py",
    "OnSpark.to_spark": "spark/test_frames_on_spark.py",
    "Pipeline.start": "spark/killed_pipeline.py",
    "Query.console": "console/served_console.py",
    "Script.start": "spark/test_spark_sinks.py",
    "SparkQuery.assume": "spark/test_feedback_on_spark.py",
    "SparkQuery.close": "spark/test_asking_a_query.py",
    "SparkQuery.console": "spark/test_metrics_on_spark.py",
    "SparkQuery.demand": "spark/test_asking_a_query.py",
    "SparkQuery.desire": "spark/test_feedback_on_spark.py",
    "SparkQuery.drain": "spark/test_metrics_on_spark.py",
    "SparkQuery.feedback": "spark/test_feedback_on_spark.py",
    "SparkQuery.finish": "spark/test_metrics_on_spark.py",
    "SparkQuery.progress": "spark/test_asking_a_query.py",
    "SparkQuery.replay": "spark/test_replay_on_spark.py",
    "SparkQuery.serve_metrics": "spark/test_asking_a_query.py",
    "SparkQuery.speaker": "spark/test_asking_a_query.py",
    "SparkQuery.status": "spark/test_asking_a_query.py",
    "SparkQuery.stop": "spark/separate_run.py",
    "SparkQuery.table": "spark/test_failures.py",
    "SparkQuery.wait": "spark/test_asking_a_query.py",
    "SparkQuery.watch": "spark/test_asking_a_query.py",
    "SparkQuery.withdraw": "spark/test_feedback_on_spark.py",
    "create_view": "spark/test_spark_sinks.py",
    "from_spark": "spark/test_frames_on_spark.py",
    "iceberg": "io/test_lake_sinks.py",
    "kafka": "connectors/test_kafka_sink.py",
    "postgres": "connectors/test_postgres_tables.py",
    "protobuf": "io/test_kafka_records.py",
    "read.delta": "io/test_table_versions.py",
    "read.iceberg": "io/test_table_versions.py",
    "read.kafka": "connectors/test_kafka_source.py",
    "read.kafka_changes": "connectors/test_kafka_sink.py",
    "read.postgres": "connectors/test_postgres_changes.py",
    "read_state": "spark/test_examples_on_spark.py",
    "run_all": "spark/test_hosts_agree.py",
    "run_batch": "spark/test_clock.py",
    "session": "spark/killed_run.py",
    "set_log_level": "runtime/test_metrics.py",
    "start": "spark/test_hosts_agree.py",
    "to_spark": "spark/test_frames_on_spark.py",
}
"""What needs Spark, a broker, a database or a browser: shown as it is written, and run by these tests."""


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
    shown = section(doc, "Examples")
    if ">>>" not in shown and not (function.__qualname__ in EXERCISED and "::\n\n    " in shown):
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


@pytest.mark.parametrize("name", EXERCISED)
def test_what_is_shown_without_running_is_run_by_a_test(name: str) -> None:
    text = (Path(__file__).parents[1] / EXERCISED[name]).read_text()
    assert re.search(rf"\b{name.rpartition('.')[2]}\(", text)


STEPS = ("rows", "lifetimes", "joins", "windows", "matching", "steering")
"""Pages of steps: what they promise, keep, do with feedback, and where they run on Spark is told too."""


OTHERS = ("sources", "output", "running", "modules")


@pytest.mark.parametrize("page", [*STEPS, *OTHERS])
def test_what_stands_on_a_page_of_the_reference_is_told_whole(page: str) -> None:
    assert report(documented(page)) == {}


@pytest.mark.parametrize("page", [*STEPS, "sources"])
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


def neighbours(function: Callable[..., Any]) -> list[Any]:
    """What a docstring says to see also; names are those of the package, or whole."""
    names = re.findall(r"^(\S+) : ", section(inspect.getdoc(function) or "", "See Also"), re.MULTILINE)
    whole = (name if name.startswith("caesura.") else f"caesura.{name}" for name in names)
    return [inspect.unwrap(found(name)) for name in whole]


def test_who_is_to_be_seen_also_says_so_too() -> None:
    told = {inspect.unwrap(f): name for page in (*STEPS, *OTHERS) for name, f in documented(page)}
    one_way = [
        (name, told[other])
        for function, name in told.items()
        for other in neighbours(function)
        if other in told and function not in neighbours(other)
    ]
    assert one_way == []


def test_every_method_of_a_stream_stands_on_a_page() -> None:
    there = {inspect.unwrap(f) for page in REFERENCE.glob("*.md") for _, f in documented(page.stem)}
    for thing in (cz.Stream, api.Grouped, api.Windowed, api.AliveRows, api.OverRows):
        assert [name for name, method in members(thing) if inspect.unwrap(method) not in there] == []


VALUES = (
    "expressions",
    "functions",
    "aggregates",
    "patterns",
    "modules",
    "testing",
    "punctuation",
    "contracts",
)


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
