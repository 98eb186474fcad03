"""Small faults, drawn and put into the package one at a time: does the short form find it, or the long one?

First ``python -m pytest -p reached --reached FOLDER --whole tests`` says which tests enter which functions;
then
``python tests/support/mutants.py FOLDER --count 300 --jobs 15 --out FILE`` draws faults in functions that are
entered, and runs for each the tests that enter it: those of the short form until one fails, and where none
does, those that are left to the long form. A test that hangs or cannot be read finds a fault as well.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from random import Random

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "caesura"
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A piece of a file's text, and what stands there instead."""

    file: str
    function: str
    line: int
    begin: int
    end: int
    before: str
    after: str

    def put(self, package: Path) -> None:
        path = package / self.file
        text = path.read_bytes()
        path.write_bytes(text[: self.begin] + self.after.encode() + text[self.end :])


@dataclass
class Test:
    """A test, what it takes, and whether only the long form has it."""

    name: str
    seconds: float
    left: bool


@dataclass(frozen=True)
class Found:
    """What became of a fault."""

    fault: Fault
    by: str
    """`short`, `long` or `nobody`"""
    test: str
    seconds: float


def faults_of(path: Path) -> Iterator[Fault]:
    text = path.read_bytes()
    starts = [0]
    for line in text.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for function, node in _within(ast.parse(text), ""):
        for where, instead in _changes(node):
            assert where.end_lineno is not None and where.end_col_offset is not None
            begin = starts[where.lineno - 1] + where.col_offset
            end = starts[where.end_lineno - 1] + where.end_col_offset
            before = text[begin:end].decode()
            file = str(path.relative_to(PACKAGE))
            yield Fault(file, f"{file}::{function}", where.lineno, begin, end, before, instead)


def _within(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Every piece of syntax in a function, with the name of the outermost function around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _within(child, f"{name}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in child.body:
                yield from ((f"{name}{child.name}", piece) for piece in ast.walk(statement))


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What may stand in the place of a piece, as text."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        ops = [OTHER[type(node.ops[0])](), *node.ops[1:]]
        yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"  # type: ignore[arg-type]
    elif isinstance(node, ast.BoolOp):
        yield node, f"({ast.unparse(ast.BoolOp(OTHER[type(node.op)](), node.values))})"  # type: ignore[arg-type]
    elif isinstance(node, ast.BinOp) and type(node.op) in OTHER:
        yield node, f"({ast.unparse(ast.BinOp(node.left, OTHER[type(node.op)](), node.right))})"  # type: ignore[arg-type]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, f"({node.value} + 1)"
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield node, str(not node.value)
    elif isinstance(node, ast.Return) and node.value is not None and not _nothing(node.value):
        yield node, "return None"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass"


def _nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def entered(folder: Path) -> dict[str, list[Test]]:
    """The tests that enter each function; without those that fail as it is."""
    by: dict[str, list[Test]] = defaultdict(list)
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            said = json.loads(line)
            if said["passed"] and said["test"].startswith("tests/"):
                for function in said["entered"]:
                    by[function].append(Test(said["test"], said["seconds"], said["left"]))
    return by


def some(tests: list[Test], room: str, *, left: bool, seconds: float) -> list[str]:
    """The cheap ones of a form first, the function's own room before others, as far as the time goes."""
    chosen: list[str] = []
    files: set[str] = set()
    wanted = (t for t in tests if t.left == left)
    for test in sorted(wanted, key=lambda t: (f"tests/{room}/" not in t.name, t.seconds)):
        file = test.name.partition("::")[0]
        if seconds < test.seconds or (len(files) > 25 and file not in files):
            continue
        seconds -= test.seconds + 0.005
        files.add(file)
        chosen.append(test.name)
    return chosen


def failing(source: Path, tests: list[str], limit: float) -> str:
    """The first of the tests that fails with this source; nothing where all pass."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as names:
        names.write("\n".join(tests))
    given = {
        **os.environ,
        "PYTHONPATH": f"{source}:{os.environ.get('PYTHONPATH', '')}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    try:
        ran = subprocess.run(
            [*command, f"@{names.name}"],
            cwd=ROOT, env=given, timeout=limit, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "took too long"
    finally:
        Path(names.name).unlink()
    if ran.returncode in (0, 5):
        return ""
    told = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not told and ran.returncode == 1:
        raise RuntimeError(f"no test ran: {ran.stdout[-500:]}")
    return told[0].split(" - ")[0] if told else f"ended with {ran.returncode}: {ran.stdout[-200:]}"


def tried(fault: Fault, tests: list[Test], source: Path, args: argparse.Namespace) -> Found:
    room = fault.file.partition("/")[0]
    began = time.monotonic()
    kept = (PACKAGE / fault.file).read_bytes()
    fault.put(source / "caesura")
    try:
        for form in ("short", "long"):
            names = some(tests, room, left=form == "long", seconds=args.seconds)
            if names and (test := failing(source, names, 3 * args.seconds + 60)):
                return Found(fault, form, test, time.monotonic() - began)
        return Found(fault, "nobody", "", time.monotonic() - began)
    finally:
        (source / "caesura" / fault.file).write_bytes(kept)


def drawn(by: dict[str, list[Test]], count: int, seed: int) -> list[Fault]:
    """Faults in functions that some test enters, each place as likely as another."""
    every = [f for path in sorted(PACKAGE.rglob("*.py")) for f in faults_of(path) if f.function in by]
    return Random(seed).sample(every, min(count, len(every)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reached", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--seconds", type=float, default=30, help="the time of tests tried for a fault, of each form"
    )
    parser.add_argument(
        "--within", type=float, default=3600, help="begin no other fault after so many seconds"
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    by = entered(args.reached)
    faults = drawn(by, args.count, args.seed)
    places: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as folder:
        for job in range(args.jobs):
            shutil.copytree(ROOT / "src", Path(folder) / str(job))
            places.put(Path(folder) / str(job))
        until = time.monotonic() + args.within

        def one(fault: Fault) -> None:
            if time.monotonic() > until:
                return
            place = places.get()
            try:
                found = tried(fault, by[fault.function], place, args)
            finally:
                places.put(place)
            with args.out.open("a") as out:
                out.write(json.dumps(asdict(found)) + "\n")

        with ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(one, faults))
    said = [json.loads(line)["by"] for line in args.out.read_text().splitlines()]
    counts = {form: said.count(form) for form in ("short", "long", "nobody")}
    sys.stdout.write(f"{counts} of {len(said)}\n")


if __name__ == "__main__":
    main()
