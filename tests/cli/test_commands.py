"""The command line says what it found, and exits so that a script can tell."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura.cli import app
from caesura.cli.doctor import DoctorFinding
from caesura.cli.load import load

FLOW = """
import caesura as cz
rows = [{"ts": 1, "id": 7}, {"ts": 2, "id": 8}]
clicks = cz.from_rows(rows, time="ts").where(cz.col("id") > 7)
"""
LATE = """
import caesura as cz
rows = [{"ts": 1, "id": 1}, {"ts": 20, "id": 2}, {"ts": 3, "id": 3}]
clicks = cz.from_rows(rows, time="ts", punctuate=cz.delay(5), batch_size=1)
per_ten = clicks.tumbling(10).agg(n=cz.count())
"""
UNSAFE = """
import caesura as cz
clicks = cz.read.csv("clicks.csv", time="ts", punctuate=cz.delay(5))
ever = clicks.group_by("id").totals(n=cz.count())
"""


@pytest.fixture
def flow(tmp_path: Path) -> str:
    return written(tmp_path, FLOW)


def written(folder: Path, text: str, name: str = "flow.py") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def said(*words: str, code: int = 0) -> str:
    """What a command prints; it must end with this code."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.stdout


def told(*words: str, code: int = 0) -> Any:
    return json.loads(said(*words, "--json", code=code))


def test_the_doctor_finds_this_installation_sound() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"], env={"PYSPARK_PYTHON": None})
    assert {f["name"] for f in json.loads(result.stdout)} >= {"Python", "Java", "pyspark", "pandas"}


def test_what_is_wrong_comes_with_its_remedy() -> None:
    assert (
        DoctorFinding("Java", False, "not found", "Install a JDK.").line()
        == "wrong Java: not found\n      Install a JDK."
    )


def test_a_preview_draws_the_stream_of_a_file(flow: str) -> None:
    lines = said("preview", flow).splitlines()
    assert lines[1].startswith("  2  3  | 8  |")
    assert told("preview", flow) == [{"LE": 2, "RE": 3, "id": 8}]


def test_a_file_is_read_as_it_stands_however_soon_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "flow.py"
    for least, shown in ((7, 1), (8, 0)):  # two texts of equal size, written in one second
        file.write_text(FLOW.replace("> 7", f"> {least}"))
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert load(str(file)).run().table().num_rows == shown


def test_explain_prints_the_plan(flow: str) -> None:
    assert "where r0: id > 7" in said("explain", flow + ":clicks")


def test_explain_draws_the_plan_as_asked(flow: str) -> None:
    assert said("explain", flow, "--mermaid").startswith("flowchart TD\n  r0[")
    assert "<td>r0</td>" in said("explain", flow, "--html")
    assert "stage 1" in said("explain", flow, "--spark")
    assert [step["kind"] for step in told("explain", flow)] == ["read", "where"]


def test_two_ways_to_explain_at_once_are_a_wrong_use(flow: str) -> None:
    said("explain", flow, "--html", "--mermaid", code=2)


def test_check_ends_with_one_for_a_plan_whose_state_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "ts,id\n1,7\n", "clicks.csv")
    verdict = told("check", written(tmp_path, UNSAFE) + ":ever", code=1)
    assert verdict["safe"] is False
    assert verdict["findings"] and verdict["remedies"]


def test_an_embedded_run_needs_no_java(flow: str) -> None:
    assert "-- definite: * --" in said("run", flow, "--embedded")


def test_an_embedded_run_gives_a_line_of_json_per_change(tmp_path: Path) -> None:
    lines = said("run", written(tmp_path, LATE) + ":per_ten", "--embedded", "--json").splitlines()
    *changes, last = map(json.loads, lines)
    assert changes[0] == {"kind": "+", "LE": 0, "RE": 10, "RE_new": None, "n": 1}
    assert last == {"late": {"read": 1}}


def test_a_strict_run_ends_with_three_if_rows_were_refused(tmp_path: Path, flow: str) -> None:
    said("run", written(tmp_path, LATE, "late.py") + ":per_ten", "--embedded", "--strict", code=3)
    said("run", flow, "--embedded", "--strict", code=0)


def test_late_rows_of_a_file_are_shown_with_the_reason(tmp_path: Path) -> None:
    file = written(tmp_path, LATE) + ":per_ten"
    assert "row 2 of lane 0: time 3 came after its lane had passed 15" in said("late", file)
    assert told("late", file)["read"][0]["offset"] == 2
    said("late", file, "--strict", code=3)


def test_rows_that_a_step_speaks_of_are_shown_with_the_reason(tmp_path: Path) -> None:
    rows = [{"ts": t, "offset": t} for t in (30, 2)]
    plan = f"cz.from_rows({rows}, time='ts', punctuate=cz.delay(99)).pace(within=5)"
    shown = said("late", written(tmp_path, f"import caesura as cz\nlive = {plan}\n", "live.py"))
    assert "  more than 5 behind the furthest start | 2 3 | offset=2" in shown.splitlines()


def test_late_rows_of_a_folder_are_those_of_committed_epochs(tmp_path: Path) -> None:
    (tmp_path / "_late").mkdir()
    (tmp_path / "_commits").mkdir()
    row = {
        "reason": "too late",
        "lane": 0,
        "offset": 4,
        "kind": "+",
        "LE": 3,
        "RE": 4,
        "RE_new": None,
        "id": 7,
    }
    for epoch in (0, 1):
        table = pa.Table.from_pylist([{**row, "offset": epoch}])
        pq.write_table(table, tmp_path / "_late" / f"clicks-epoch-{epoch:06d}-0.parquet")
    (tmp_path / "_commits" / "000000.json").write_text("{}")
    assert [r["offset"] for r in told("late", str(tmp_path))["clicks"]] == [0]


def test_a_folder_without_a_late_table_is_said_to_have_none(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["late", str(tmp_path)])
    assert result.exit_code == 1
    assert "sink= when the query was started" in result.stderr


def test_a_trace_names_the_step_that_drops_a_row(flow: str) -> None:
    assert "step 'where' (id > 7): drops them" in said("trace", flow, "ts = 1")
    assert told("trace", flow, "ts = 2")["steps"][1]["caused"][0]["row"] == {"id": 8}


def test_a_trace_by_a_moment_reads_its_colons(tmp_path: Path) -> None:
    rows = "[{'ts': datetime(2024, 5, 1, 12, 2, n), 'n': n} for n in range(3)]"
    head = "from datetime import datetime\nimport caesura as cz\n"
    file = written(tmp_path, f"{head}clicks = cz.from_rows({rows}, time='ts')\n")
    assert told("trace", file, "ts = '2024-05-01 12:02:01'")["steps"][0]["caused"][0]["row"] == {"n": 1}


def test_the_version_is_told() -> None:
    assert said("--version").startswith("caesura 0.")
    done = subprocess.run([sys.executable, "-m", "caesura", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, said("--version"))


def test_a_trace_of_no_rows_ends_with_one(flow: str) -> None:
    said("trace", flow, "ts = 99", code=1)


def test_a_wrong_name_lists_the_right_ones(flow: str) -> None:
    result = CliRunner().invoke(app, ["explain", flow + ":click"])
    assert result.exit_code == 1
    assert "Did you mean 'clicks'?" in result.stderr


def test_feedback_can_be_given_and_explained(flow: str) -> None:
    shown = CliRunner().invoke(app, ["feedback", flow, "id = 8"]).stdout
    assert "r1 := where: stops id = 8 at its input; sends id = 8 to r0" in shown
    plain, ran = (
        CliRunner().invoke(app, ["run", flow, "--embedded", *more]).stdout
        for more in ([], ["--assume", "id = 8"])
    )
    assert "| 8" in plain
    assert "| 8" not in ran


def test_an_audit_compares_a_run_with_feedback_and_one_without(flow: str) -> None:
    found = told("feedback", flow, "id = 8", "--audit")
    assert found["holds"] and found["left_out"] == found["rows"] == 1
    assert "rows left out" in CliRunner().invoke(app, ["feedback", flow, "id = 8", "--audit"]).stdout


def test_what_steps_do_about_feedback_comes_as_json(flow: str) -> None:
    where, source = told("feedback", flow, "id = 8")
    assert where["does"] == ["stops id = 8 at its input"] and where["sends"] == {"r0": "id = 8"}
    assert source["step"] == "read" and source["place"].startswith("flow.py:")


@pytest.mark.parametrize(
    "name", [c.name or c.callback.__name__ for c in app.registered_commands if not c.deprecated]
)
def test_every_command_speaks_json_and_is_in_the_docs(name: str) -> None:
    assert "--json" in said(name, "--help")
    docs = Path(__file__).parents[2] / "docs" / "start" / "command-line.md"
    assert f"| `caesura {name}" in docs.read_text()


def test_a_diagnostic_comes_as_json_on_the_standard_error(flow: str) -> None:
    result = CliRunner().invoke(app, ["preview", flow + ":click", "--json"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads(result.stderr)["remedy"] == "Did you mean 'clicks'? There are: clicks."


def test_an_interrupted_command_ends_as_a_shell_expects(flow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("caesura.cli.explain.load", interrupted)
    said("explain", flow, code=130)


@pytest.mark.parametrize(
    "words", ["explain", "explain flow.py --nonsense", "nonsense", "run flow.py --output x"]
)
def test_a_command_that_is_not_understood_ends_with_two(words: str) -> None:
    said(*words.split(), code=2)


def test_a_file_that_fails_names_the_line_that_did(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", written(tmp_path, "rows = []\nrows[3]\n")])
    assert result.exit_code == 1
    assert result.stderr.startswith("flow.py:2: the file could not be run: IndexError")


def test_state_asks_for_a_checkpoint(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["state", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert "Give the checkpoint of a query." in result.stderr


def test_benchmarks_are_named_where_there_are_some(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert " core," in CliRunner().invoke(app, ["bench", "nothing"]).stderr
    monkeypatch.chdir(tmp_path)
    assert "Benchmarks come with the source" in CliRunner().invoke(app, ["bench", "core"]).stderr


TESTED = """
import os, sys, pytest
top = os.getcwd()
for project in sys.argv[1:]:
    os.chdir(os.path.join(top, project))
    sys.path.insert(0, os.getcwd())
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", os.getcwd()])
    print(f"{project} ended with {int(code)}.")
    sys.path.remove(os.getcwd())
    for name in ("pipeline", "generate", "test_pipeline", "conftest"):
        sys.modules.pop(name, None)
"""
"""What ``python -m pytest`` does, in several folders, in one process: it loads all libraries once."""


def run_their_tests(*projects: str) -> None:
    call = [sys.executable, "-c", TESTED, *projects]
    done = subprocess.run(call, capture_output=True, text=True, timeout=600)
    for project in projects:
        assert f"{project} ended with 0." in done.stdout, done.stdout + done.stderr


def test_a_new_project_of_every_template_runs_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = ["README.md", "generate.py", "pipeline.py", "test_pipeline.py", "data/"]
    assert told("new", "shop")["files"] == made
    said("check", "shop/pipeline.py")
    assert len(told("preview", "shop/pipeline.py")) == 18
    assert len(told("late", "shop/pipeline.py")["orders"]) > 0
    templates = ("sql", "delta", "kafka")
    for template in templates:
        assert "pytest" in told("new", template, "--template", template)["next"]
    run_their_tests("shop", *templates)
    monkeypatch.chdir(tmp_path / "sql")
    assert told("sql", "pipeline.sql") == {"written": ["kept"]}
    refused = CliRunner().invoke(app, ["new", "other", "--template", "slq"])
    assert refused.exit_code == 1 and "Did you mean 'sql'" in refused.stderr
    assert not (tmp_path / "sql" / "other").exists()


def test_a_project_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said("new", "shop")
    said("new", "shop", code=1)


def scripted(folder: Path) -> str:
    (folder / "bids.csv").write_text("ts,item,price\n1,7,3\n12,7,5\n")
    path = folder / "best.sql"
    path.write_text(
        f"""
        CREATE STREAM bids FROM csv '{folder}/bids.csv' (TIME ts) LIFETIME POINT;
        CREATE VIEW best AS SELECT item, max(price) AS best FROM bids GROUP BY item, TUMBLE(ts, 10);
        CREATE SINK out TO parquet '{folder}/out';
        SET checkpoint = '{folder}/checkpoint';
        EXPLAIN best; CHECK best; PREVIEW best;
        SELECT best FROM best EMIT FINAL;
        INSERT INTO out SELECT * FROM best EMIT FINAL;
        """
    )
    return str(path)


def test_a_script_in_sql_runs_and_answers(tmp_path: Path) -> None:
    path = scripted(tmp_path)
    shown = said("sql", path)
    assert "r1 := tumbling" in shown and "safe: all state goes" in shown and "| best |" in shown
    assert "written: out." in shown
    lines = [json.loads(line) for line in said("sql", path, "--json").splitlines()]
    assert [line["best"] for line in lines if isinstance(line, dict) and "best" in line] == [3, 5]
    assert lines[-1] == {"written": ["out"]}


def test_a_script_is_a_target_as_a_file_is(tmp_path: Path) -> None:
    path = scripted(tmp_path)
    assert "tumbling" in said("explain", f"{path}:best")
    assert "5" in said("preview", path)
    assert said("run", path, "--embedded") == ""
    assert sum(pq.read_table(file).num_rows for file in (tmp_path / "out").rglob("*.parquet")) == 2
    said("explain", f"{path}:bets", code=1)


def test_statements_come_from_the_standard_input_too() -> None:
    text = "SELEC 1;\nCREATE STREAM x FROM csv 'none.csv' (TIME ts);\nSELECT 7 AS n\n"
    result = CliRunner().invoke(app, ["sql"], input=text)
    assert result.exit_code == 1
    assert "'SELEC' is no statement" in result.stderr and "no file or folder 'none.csv'" in result.stderr
    assert "| 7 |" in result.stdout
    assert CliRunner().invoke(app, ["sql"], input="SELECT 7 AS n\n").exit_code == 0


ERRORS = {
    "SELECT 1 AS n;\n\nSELECT nope FROM x;\n": "line 3, column 18: there is no table 'x'",
    "SELECT 1 AS n;\nSELECT 'a": "line 2, column 8: this is no SQL",
    "INSERT INTO nowhere SELECT 1 AS n;\n": "there is no sink 'nowhere'",
    "SELECT CAST('x' AS INT) AS n;\n": "is no",
    "SELECT 1 AS n;\nSELECT '\xe4' AS n;\n": "line 2, column 9: the byte 0xe4 is no UTF-8",
}


@pytest.mark.parametrize("text", ERRORS)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_error_of_a_script_is_told_with_its_line_and_ends_in_another_exit_code(
    tmp_path: Path, text: str, more: list[str]
) -> None:
    content = text.encode("latin1")
    path = tmp_path / "made.sql"
    path.write_bytes(content)
    for result in (
        CliRunner().invoke(app, ["sql", *more], input=content),
        CliRunner().invoke(app, ["sql", str(path), *more]),
    ):
        assert result.exit_code == 1, result.output
        assert isinstance(result.exception, SystemExit)
        assert ERRORS[text] in result.stderr


def test_statements_stand_behind_c_and_scripts_behind_f(tmp_path: Path) -> None:
    path = scripted(tmp_path)
    (tmp_path / "one.sql").write_text("SELECT 8 AS n")
    assert "| 7 |" in said("sql", "-c", "SELECT 7 AS n")
    assert "| 7 |" in said("sql", "-e", "SELECT 7 AS n;")
    assert json.loads(said("sql", "--command", "SELECT 7 AS n", "--json"))["n"] == 7
    assert "| 8 |" in said("sql", "-f", str(tmp_path / "one.sql"))
    piped = CliRunner().invoke(app, ["sql", "-f", "-"], input="SELECT 9 AS n")
    assert piped.exit_code == 0 and "| 9 |" in piped.stdout
    shown = said("sql", path, "-c", "SELECT count(*) AS bids FROM bids", "-c", "EXPLAIN best")
    assert "| bids |" in shown and shown.count("r0 :=") == 3
    assert "-c" in CliRunner().invoke(app, ["sql", "--help"]).stdout


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        (("-c", "SELECT nope FROM x"), 1, "(-c:1): line 1, column 18: there is no table 'x'"),
        (("-c", "SELECT 1 AS n", "-c", "SELECT FROM"), 1, "(-c 2): line 1, column 11"),
        (("-c", "SELEC 1", "-c", "SELECT 7 AS n"), 1, "'SELEC' is no statement"),
        (("SELECT 1 AS n",), 1, "Write caesura sql -c 'SELECT 1 AS n'"),
        (("-f", "none.sql"), 1, "none.sql"),
        (("a.sql", "-f", "b.sql"), 2, "the script is given already"),
        (("-c",), 2, "requires an argument"),
    ],
)
def test_an_error_behind_c_ends_it_and_says_which_one(given: tuple[str, ...], code: int, told: str) -> None:
    result = CliRunner().invoke(app, ["sql", *given])
    assert result.exit_code == code and isinstance(result.exception, SystemExit)
    assert told in " ".join(result.stderr.replace("│", " ").split()), result.stderr
    assert "| 7 |" not in result.stdout


def test_what_is_set_aside_is_listed_and_given_back(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("t,id\n1,7\n2,x\n")
    schema = pa.schema([("t", pa.int64()), ("id", pa.int64())])
    cz.read.csv(tmp_path / "in", time="t", schema=schema, on_bad="quarantine").run()
    folder = str(tmp_path / "in")
    assert "a.csv, line 3: In CSV column #1: CSV conversion error" in said("late", folder)
    assert told("late", folder)[0]["lines"][0]["line"] == 3
    assert "invalid value 'x'" in said("late", folder, "--replay")
    [file] = (tmp_path / "in" / "_quarantine").glob("*.csv")
    assert f"mend '_quarantine/{file.name}'" in said("late", folder)
    file.write_text("t,id\n2,8\n")
    assert "1 rows come back as a.csv~0001.csv" in said("late", folder, "--replay")
    assert (said("late", folder), told("late", folder, "--replay")) == ("nothing is set aside.\n", [])


def test_a_file_that_a_query_wrote_and_that_is_gone_is_found(tmp_path: Path) -> None:
    rows = cz.from_rows([{"t": 1, "id": 7}], time="t")
    rows.query(checkpoint=tmp_path / "cp", sink=tmp_path / "out").run()
    out = str(tmp_path / "out")
    assert said("audit", out) == "1 files are named by commits, 0 flaws were found.\n"
    [file] = (tmp_path / "out" / "out").glob("*.parquet")
    file.unlink()
    assert f"'out/{file.name}' of epoch 0 is gone" in said("audit", out, code=1)


def test_a_sigterm_ends_a_query_behind_its_epoch() -> None:
    from caesura.cli.run import _wait

    class Running:
        calls: list[str] = []  # noqa: RUF012

        def wait(self, seconds: int) -> bool:
            os.kill(os.getpid(), signal.SIGTERM)
            return False

        def finish(self) -> None:
            self.calls.append("finish")

    _wait(Running())
    assert Running.calls == ["finish"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_run_in_this_process_serves_metrics_and_logs(flow: str) -> None:
    result = CliRunner().invoke(app, ["run", flow, "--embedded", "--metrics-port", "0", "--log-json"])
    logs = logging.getLogger("caesura")
    logs.handlers.clear()
    logs.setLevel(logging.NOTSET)
    logs.propagate = True
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    assert any(line["message"].startswith("metrics at http://127.0.0.1:") for line in lines)


def test_what_becomes_of_each_step_is_shown_and_then_done(tmp_path: Path) -> None:
    def flow(size: int) -> str:
        text = f"""
import caesura as cz
rows = cz.from_rows([{{"t": 1, "id": 7}}, {{"t": 12, "id": 7}}], time="t", name="clicks")
_rows, rows = rows, rows.tumbling({size}).agg(n=cz.count())
"""
        return written(tmp_path, text, f"flow{size}.py")

    run = "from flow10 import rows; rows.query(checkpoint='cp', sink='out').run()"
    flow(10)
    subprocess.run([sys.executable, "-c", run], check=True, cwd=tmp_path)
    checkpoint, out = str(tmp_path / "cp"), str(tmp_path / "out")
    assert said("upgrade", checkpoint, flow(10)) == "clicks: kept\ntumbling: kept\n"
    changed = "clicks: kept\ntumbling: rebuilt, '10' became '20'\n"
    assert said("upgrade", checkpoint, flow(20)) == changed
    assert told("upgrade", checkpoint, flow(20))["differs"] is True
    said("upgrade", checkpoint, flow(20), "--how", "continue", "--sink", out, code=1)
    told_rows = "prepared: 2 rows read now, 2 in all\n"
    assert said("upgrade", checkpoint, flow(20), "--prepare") == changed + told_rows
    assert told("upgrade", checkpoint, flow(20), "--prepare")["prepared"] == {"rows": 0, "rows_in_all": 2}
    said("upgrade", checkpoint, flow(20), "--prepare", "--how", "rebuild", code=2)
    assert said("upgrade", checkpoint, flow(20), "--how", "rebuild", "--sink", out) == changed
    assert said("upgrade", checkpoint, flow(20)) == "clicks: kept\ntumbling: kept\n"
    said("upgrade", checkpoint, flow(20), "--how", "anew", code=2)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_without_its_extra_says_what_to_install(missing: str) -> None:
    begin = f"import sys; sys.modules[{missing!r}] = None; from caesura.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", begin], capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert f"'{missing}', which is not installed" in ended.stderr
    assert "pip install 'caesura[cli]'" in ended.stderr
