"""Commands that are given odd files: an exit code and a diagnostic, never a trace."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from caesura.cli import app
from caesura.errors import PlanError, here

FLOW = "import caesura as cz\nclicks = cz.from_rows([{'ts': 1, 'id': 7}], time='ts')\n"
FILES: dict[str, str | bytes] = {
    "good.py": FLOW,
    "empty.py": "",
    "binary.py": bytes(range(256)),
    "cut.py": FLOW[:-3],
    "raises.py": "raise KeyError(3)\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "two.py": FLOW + "more = clicks\n",
    "fails.py": FLOW + "clicks = clicks.select(x=cz.udf(lambda i: 1 // 0, returns='bigint')('id'))\n",
    "good": FLOW,
    "data.csv": "ts,id\n1,2\n",
    "state.json": "{",
}
TARGETS = [*FILES, "folder", "nothing.py", "nothing", "", ":", "good.py:", "good.py:x", "good.py:clicks:x"]
COMMANDS = {
    "explain {}": "target",
    "explain {} --spark --json": "target",
    "check {} --output nonsense": "target",
    "preview {} --rows -1": "target",
    "preview kept.py --html {}": "written",
    "feedback {} 'id ='": "target",
    "feedback {} 'id = 7' --audit": "target",
    "trace {} 'ts = 1'": "target",
    "trace good.py {}": "text",
    "run {} --embedded --json": "target",
    "run good.py --embedded --assume {}": "text",
    "late {}": "target",
    "audit {}": "folder",
    "audit folder --flow {}": "target",
    "tell {} list": "folder",
    "tell folder assume {}": "text",
    "state {}": "missing",
    "rescale {} --buckets 0": "missing",
    "new {}": "written",
}
TEXTS = ["", "id", "id =", "id = 'x'", "nope = 3", "LE < ", "{", "ts = 1, ts = 2", "\x00", "9" * 40]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "folder").mkdir()
    (tmp_path / "kept.py").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoked(words: list[str]) -> Any:
    return CliRunner().invoke(app, words)


def given_to(kind: str) -> list[str]:
    if kind == "text":
        return TEXTS
    if kind == "missing":  # what is there, a session of Spark would look at
        return ["nothing", "good.py", "nothing/x"]
    return TARGETS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_an_odd_argument_ends_with_a_diagnostic(command: str, place: Path) -> None:
    for given in given_to(COMMANDS[command]):
        words = [given if word == "{}" else word for word in shlex.split(command)]
        result = invoked(words)
        assert result.exception is None or isinstance(result.exception, SystemExit), (given, result.exception)
        assert result.exit_code in (0, 1, 2), (given, result.output)
        assert "Traceback" not in result.output
        if result.exit_code == 1 and not result.stdout:
            problem, _, remedy = result.stderr.partition("\n")
            said = json.loads(result.stderr)["remedy"] if "--json" in words else remedy
            assert problem.strip() and said.strip(), (given, result.stderr)


def test_a_file_that_ends_the_process_is_told(place: Path) -> None:
    result = invoked(["explain", "exits.py", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stderr)["place"] == "exits.py:2"


def test_a_script_whose_name_has_no_py_is_named_in_its_errors(place: Path) -> None:
    with pytest.raises(PlanError) as raised:
        exec(compile("import caesura as cz\n\ncz.delay(None)\n", str(place / "good"), "exec"), {})
    assert raised.value.place == "good:3"
    exec(compile("found = here()", str(place / "good"), "exec"), names := {"here": here})
    assert names["found"] == "good:1"  # type: ignore[comparison-overlap]
