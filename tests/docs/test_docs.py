"""Every Python block of the documentation runs, and prints what stands below it.

What a page takes for granted stands in a comment, ``<!--python ... -->``, and runs too.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import caesura as cz
from caesura import contracts, errors, events, punctuation, qre, spark, testing

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:```|<!--)(\w*|\{[^\n]*)\n(.*?)^(?:```|-->)\n(?=(\s*^```\n(.*?)^```)?)", re.MULTILINE | re.DOTALL
)


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """(line, code, printed) of each Python block; None where nothing is shown below it."""
    text = page.read_text() + "\n"
    return [
        (text[: found.start()].count("\n") + 1, found[2], found[4])
        for found in BLOCK.finditer(text)
        if found[1] == "python"
    ]


def picture(name: str, drawn: str) -> None:
    """A page shows what the library draws today; CAESURA_GOLDEN=write draws it anew."""
    kept = ROOT / "docs" / "pictures" / f"{name}.svg"
    if os.environ.get("CAESURA_GOLDEN") == "write":
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(drawn + "\n")
    assert kept.read_text() == drawn + "\n", f"{kept.name} is not what is drawn today"


def _plain(text: str) -> list[str]:
    """The words: a page may wrap a long line."""
    return text.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_on_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem, "picture": picture}
    for line, code, printed in blocks(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "flow.py", "exec", dont_inherit=True), names)
        if printed is not None:
            assert _plain(out.getvalue()) == _plain(printed), f"{page.name}, line {line}"


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    """In a process of its own: Sphinx changes what it is imported into."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert built.returncode == 0, built.stderr
    assert "group_by" in (tmp_path / "reference" / "streams.html").read_text()
    notebook = (tmp_path / "notebooks" / "first_steps.html").read_text()
    assert notebook.count('class="shown"') > 3
    assert "lane" in notebook  # the reason of the late row


def test_every_page_is_in_the_list_for_programs() -> None:
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if page.is_relative_to(ROOT / "docs")]
    wanted = {str(page.with_suffix(".html")) for page in pages if page.parts[0] not in ("adr", "index.md")}
    assert set(re.findall(r"\((\S+\.html)\)", (ROOT / "docs" / "llms.txt").read_text())) == wanted


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    for page in (ROOT / "docs" / "index.md", ROOT / "docs" / "adr" / "index.md"):
        named = re.findall(r"^[\w/*-]+$", page.read_text(), re.MULTILINE)
        reached |= {found for pattern in named for found in page.parent.glob(f"{pattern}.md")}
    assert [p for p in (ROOT / "docs").rglob("*.md") if p not in reached] == []


def test_every_decision_has_a_line_in_their_index() -> None:
    folder = ROOT / "docs" / "adr"
    linked = re.findall(r"^\| \[\d+\]\((\S+)\) \| \S", (folder / "index.md").read_text(), re.MULTILINE)
    assert sorted(linked) == sorted(page.name for page in folder.glob("0*.md"))


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "adr").glob("0*.md")), ids=lambda p: p.stem)
def test_every_file_that_a_decision_names_exists(page: Path) -> None:
    """Tests and documentation by their path from here, code also by its path in the package."""
    named = re.findall(r"`((?:\w+/)+(?:[\w-]+\.\w+)?)`", page.read_text())
    roots = (ROOT, ROOT / "src" / "caesura")
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []


def test_every_public_name_stands_in_the_reference() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    whole = set(vars(errors))  # listed as a module
    missing = [
        n
        for n in cz.__all__
        if n not in whole and not re.search(rf"caesura\.{n}\b|:members:.*\b{n}\b", pages)
    ]
    assert missing == []


@pytest.mark.parametrize(
    "room", [cz, qre, contracts, testing, punctuation, events, spark], ids=lambda r: r.__name__
)
def test_every_public_name_has_a_docstring(room: ModuleType) -> None:
    missing = []
    for name in room.__all__:
        thing = getattr(room, name)
        if callable(thing) and not inspect.getdoc(thing):
            missing.append(name)
        if inspect.isclass(thing):
            members = inspect.getmembers(thing, lambda m: inspect.isfunction(m) or isinstance(m, property))
            ours = [(n, m) for n, m in members if getattr(m, "fget", m).__module__.startswith("caesura")]
            missing += [f"{name}.{n}" for n, m in ours if not n.startswith("_") and not inspect.getdoc(m)]
    assert missing == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/laws.md"])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`", (ROOT / page).read_text())
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_room_stands_on_the_map() -> None:
    rooms = [p.name for p in (ROOT / "src" / "caesura").iterdir() if (p / "__init__.py").exists()]
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert [name for name in rooms if f"{name}/" not in page] == []
