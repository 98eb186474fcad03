"""Kept measurements: what rounds said is read back as it was, and tables are made from nothing else."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from benchmarks import compare, figures, records
from benchmarks.records import Figure, Record, Run, gathered

ROUNDS = [
    [{"bench": "core", "case": "y1", "events_per_s": rate, "ratio_to": {"duckdb": 2.0}, "equal": True}]
    for rate in (90, 100, 130)
]


@pytest.mark.parametrize("module", [records, figures, compare])
def test_examples_in_docstrings_hold(module: object) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_a_record_that_was_written_is_read_back_as_it_was(tmp_path: Path) -> None:
    runs = (Run("core", "--only y1", "abc", 3, gathered(ROUNDS)), Run("empty", "", "abc", 3, {}))
    record = Record({"name": "2-cores", "cores": "2"}, "0.2.0", runs)
    record.write(tmp_path / "2-cores" / "0.2.0.json")
    assert Record.read(tmp_path / "2-cores" / "0.2.0.json") == record


def test_rounds_become_medians_with_their_spread() -> None:
    y1 = gathered(ROUNDS)["y1"]
    assert y1 == {"events_per_s": Figure(100, 90, 130), "ratio_to.duckdb": Figure(2, 2, 2), "equal": "True"}


def test_a_benchmark_measured_again_takes_the_place_of_what_it_said() -> None:
    old = Run("core", "", "abc", 1, gathered(ROUNDS[:1]))
    new = Run("core", "", "def", 3, gathered(ROUNDS))
    other = Run("core", "--only join", "abc", 1, {})
    assert Record({}, "0.2.0", (old, other)).with_runs([new]).runs == (new, other)


def test_the_newest_version_speaks_for_a_machine(tmp_path: Path) -> None:
    for version, rate in (("0.2.0", 5.0), ("0.10.0", 7.0)):
        run = Run("core", "", "abc", 1, {"y1": {"events_per_s": Figure(rate, rate, rate)}})
        Record({}, version, (run,)).write(tmp_path / "wide" / f"{version}.json")
    found = figures.Results.read(tmp_path).figure("wide", "core", "y1", "events_per_s")
    assert found == Figure(7, 7, 7)


def test_only_places_for_tables_are_written_over() -> None:
    page = "a 1\n<!-- table: t -->\nold\n<!-- end of table -->\nb 2\n"
    wanted = "a 1\n<!-- table: t -->\n\nnew\n\n<!-- end of table -->\nb 2\n"
    assert figures.filled(page, {"t": lambda _: "new"}, figures.Results({})) == wanted
    assert figures.filled(wanted, {"t": lambda _: "new"}, figures.Results({})) == wanted


def test_a_place_for_a_table_that_nobody_makes_is_refused() -> None:
    with pytest.raises(LookupError, match=r"spark\.md has a place for the table 'x'"):
        figures.filled("<!-- table: x -->\n<!-- end of table -->", {}, figures.Results({}), "spark.md")


def test_what_was_not_measured_says_so() -> None:
    assert figures.Results({}).figure("wide", "core", "y1", "events_per_s") is None
    assert figures.millions(None) == figures.ratio(None) == "not measured"


def test_pages_say_what_the_records_say() -> None:
    figures.main(["--check"])
