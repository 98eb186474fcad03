"""Kept measurements: what rounds said is read back as it was, and tables are made from nothing else."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from benchmarks import compare, figures, recording, records
from benchmarks.recording import Asked, Recording, attempt
from benchmarks.records import Figure, Record, Run, gathered
from benchmarks.tables import PLOTS, TABLES, drawing, papers

ROUNDS = [
    [{"bench": "core", "case": "y1", "events_per_s": rate, "ratio_to": {"duckdb": 2.0}, "equal": True}]
    for rate in (90, 100, 130)
]


@pytest.mark.parametrize("module", [records, recording, figures, compare, drawing, papers])
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


def test_a_record_of_the_same_kind_of_machine_stands_in_for_what_one_lacks(tmp_path: Path) -> None:
    for name, figures_of in (("2-cores", {"y1": 5.0}), ("2-cores-shared", {"y1": 7.0, "join": 9.0})):
        cases = {case: {"ms": Figure(ms, ms, ms)} for case, ms in figures_of.items()}
        Record({}, "1", (Run("core", "", "abc", 1, cases),)).write(tmp_path / name / "1.json")
    found = figures.Results.read(tmp_path)
    assert [found.figure("2-cores", "core", case, "ms") for case in ("y1", "join", "late")] == [
        Figure(5, 5, 5),
        Figure(9, 9, 9),
        None,
    ]


def test_only_places_for_tables_are_written_over() -> None:
    page = "a 1\n<!-- table: t -->\nold\n<!-- end of table -->\nb 2\n"
    wanted = "a 1\n<!-- table: t -->\n\nnew\n\n<!-- end of table -->\nb 2\n"
    assert figures.filled(page, {"t": lambda _: "new"}, figures.Results({})) == wanted
    assert figures.filled(wanted, {"t": lambda _: "new"}, figures.Results({})) == wanted


def test_a_place_for_a_table_that_nobody_makes_is_refused() -> None:
    with pytest.raises(LookupError, match=r"spark\.md has a place for the table 'x'"):
        figures.filled("<!-- table: x -->\n<!-- end of table -->", {}, figures.Results({}), "spark.md")


FAKE = """
import signal, sys
name = sys.argv[1]
print('{"bench": "%s", "case": "one", "ms": 5}' % name, flush=True)
if name == "endless":
    signal.pause()
sys.exit("the reason" if name == "broken" else 0)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Benchmarks that say one row; one then fails, one never ends."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__main__.py").write_text(FAKE)
    return tmp_path


def recorded(checkout: Path, asked: list[Asked], **how: float) -> Recording:
    path = checkout / "record.json"
    recording = Recording(path, Record({"name": "here"}, "1"), asked, "abc", source=checkout, **how)
    recording.run()
    return recording


def test_a_benchmark_that_fails_is_kept_with_its_reason_and_loses_no_other(checkout: Path) -> None:
    found = recorded(checkout, [Asked("broken", 2), Asked("sound --fast", 2)])
    runs = {run.bench: run for run in Record.read(found.path).runs}
    assert runs["broken"].failed == "ended with 1: the reason"
    assert runs["broken"].cases == {"one": {"ms": Figure(5, 5, 5)}}
    assert (runs["sound"].arguments, runs["sound"].rounds, runs["sound"].failed) == ("--fast", 2, "")
    assert list(found.failed) == ["broken"]


def test_a_benchmark_that_takes_too_long_is_ended(checkout: Path) -> None:
    assert attempt("endless", source=checkout, limit=0.2).failed == "took more than 0.2 s"


def test_benchmarks_for_which_there_was_no_time_are_told(checkout: Path) -> None:
    found = recorded(checkout, [Asked("sound", 1)], within=0.0)
    assert [run.failed for run in Record.read(found.path).runs] == ["there was no time for it in 0 s"]


def test_records_of_processes_side_by_side_become_one(tmp_path: Path) -> None:
    paths = []
    for number, bench in enumerate(("core", "spark")):
        paths.append(tmp_path / f"{number}.json")
        Record({"name": "here", "cores": "2"}, "1", (Run(bench, "", "abc", 1, {}),)).write(paths[-1])
    recording.merge([*map(str, paths), "--out", str(tmp_path / "all.json")])
    assert [run.bench for run in Record.read(tmp_path / "all.json").runs] == ["core", "spark"]


@pytest.mark.parametrize(
    "other", [Record({"cores": "16"}, "1"), Record({"cores": "2"}, "2"), Record({}, "1")]
)
def test_records_of_different_machines_or_versions_do_not_become_one(other: Record) -> None:
    with pytest.raises(ValueError, match=r"records of one machine: (cores|version) is"):
        Record({"cores": "2"}, "1").beside(other)


def test_the_version_is_that_of_the_checkout() -> None:
    assert (
        recording.version_of(figures.HOME)
        == figures.HOME.joinpath("pyproject.toml").read_text().split('version = "')[1].split('"')[0]
    )


@pytest.mark.parametrize("name", TABLES)
def test_every_table_can_be_made_of_nothing_and_stands_on_a_page(name: str) -> None:
    TABLES[name](figures.Results({}))
    places = [page for page in figures.pages() if f"<!-- table: {name} -->" in page.read_text("utf-8")]
    assert places


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_can_be_made_of_nothing_and_stands_on_a_page(name: str) -> None:
    assert "not measured" in PLOTS[name](figures.Results({}))
    assert any(f"pictures/{name}" in page.read_text("utf-8") for page in figures.pages())


def test_every_call_of_a_list_is_a_benchmark() -> None:
    for path in (figures.HOME / "benchmarks" / "calls").glob("*.tsv"):
        for line in path.read_text().splitlines():
            _, rounds, call = line.split("\t")
            assert int(rounds) and (figures.HOME / "benchmarks" / f"{call.split()[0]}.py").exists()


def test_a_goal_leaves_the_table_of_what_is_missed_when_it_is_reached() -> None:
    def table(speed: float) -> str:
        row = {"case": "temporal_join", "events_per_s": speed}
        run = Run("core", "", "abc", 1, gathered([[row]]))
        return TABLES["missed"](figures.Results({"2-cores": Record({}, "1", (run,))}))

    assert "14.0 M" in table(14e6)
    assert "M" not in table(15e6).replace("measured", "")


def test_what_was_not_measured_says_so() -> None:
    assert figures.Results({}).figure("wide", "core", "y1", "events_per_s") is None
    assert figures.millions(None) == figures.ratio(None) == "not measured"


def test_pages_say_what_the_records_say() -> None:
    figures.main(["--check"])
