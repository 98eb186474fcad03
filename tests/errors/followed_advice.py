"""What a remedy says, done to the script by a program: names set right, arguments left out or given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from golden_scripts import Golden

NAME = re.compile(r"Did you mean '\.?([^']+)'\?")
ONE_OF = re.compile(r"[Gg]ive one of (\w+)= and (\w+)=")
LEFT_OUT = re.compile(r"[Ll]eave (?:out )?([a-z_]+)(?:=|\(\))?(?: out\b|(?<==))")
IT = re.compile(r"[Ll]eave (?:it|them|one|one of the two|one of them) out\b")
GIVEN = re.compile(r"(?<![\w.])([a-z_]+)=(?!=)")
SHOWN = re.compile(r"(?<![\w.])'([^'\n]+)'|(?<![\w'])([A-Za-z_]\w*)(?=[:=.,\s])")
MOST = 60
"""So many ways to follow one remedy are tried."""
WORDS = {"it", "one", "them", "such", "the", "a", "items", "rows", "columns"}


def problem_of(told: str) -> str:
    """A diagnostic without the places in it: a script that was written anew has other lines."""
    kind, _, text = told.partition("\n")[0].partition(": ")
    return kind + re.sub(r"\(?flow\.py:\d+\)?:? ?", "", text)


def remedy_of(golden: Golden) -> str:
    return golden.wanted.partition("\n")[2]


def template_of(golden: Golden) -> str:
    """A remedy without what is of its case."""
    return re.sub(r"There are.*|'[^']*'|\"[^\"]*\"|\d+", "_", remedy_of(golden), flags=re.DOTALL).strip()


def followed(golden: Golden) -> list[str]:
    """The scripts that come of doing what the remedy says, in each way that it may be meant."""
    return list(islice(dict.fromkeys(_followed(golden)), MOST))


def _followed(golden: Golden) -> Iterator[str]:
    problem, remedy = golden.wanted.partition("\n")[0], remedy_of(golden)
    if right := NAME.search(remedy):
        for found in reversed(list(SHOWN.finditer(problem))):
            wrong = found[1] or found[2]
            there = rf"(?<!\w){re.escape(wrong)}(?!\w)"
            if wrong != right[1] and re.search(there, golden.script):
                yield re.sub(there, lambda _: right[1], golden.script)
    names = {name for name in LEFT_OUT.findall(remedy) if name not in WORDS}
    names |= set(GIVEN.findall(problem)) if IT.search(remedy) else set()
    names |= {name for pair in ONE_OF.findall(remedy) for name in pair}
    for name in sorted(names):
        for script in _without(golden.script, name):
            yield script
    for name, value in _arguments(remedy):
        for script in _with(golden.script, name, value):
            yield script


def _without(script: str, name: str) -> Iterator[str]:
    """A script without an argument, in one call or another."""
    calls = [c for c in ast.walk(ast.parse(script)) if isinstance(c, ast.Call)]
    for number, call in enumerate(calls):
        if any(k.arg == name for k in call.keywords):
            tree = ast.parse(script)
            there = [c for c in ast.walk(tree) if isinstance(c, ast.Call)][number]
            there.keywords = [k for k in there.keywords if k.arg != name]
            yield ast.unparse(tree)


def _with(script: str, name: str, value: ast.expr) -> Iterator[str]:
    """A script with an argument, in one call or another."""
    count = sum(isinstance(c, ast.Call) for c in ast.walk(ast.parse(script)))
    for number in reversed(range(count)):
        tree = ast.parse(script)
        there = [c for c in ast.walk(tree) if isinstance(c, ast.Call)][number]
        there.keywords = [k for k in there.keywords if k.arg != name] + [ast.keyword(name, value)]
        yield ast.unparse(tree)


def _arguments(remedy: str) -> Iterator[tuple[str, ast.expr]]:
    """The arguments that a remedy gives in full."""
    for found in GIVEN.finditer(remedy):
        rest = remedy[found.end() :]
        for end in range(min(len(rest), 60), 0, -1):
            try:
                tree = ast.parse(f"f({found[1]}={rest[:end]})", mode="eval")
            except (SyntaxError, ValueError):
                continue
            call = tree.body
            if isinstance(call, ast.Call) and len(call.keywords) == 1 and not call.args:
                value = call.keywords[0].value
                if not isinstance(value, ast.Constant) or value.value is not Ellipsis:
                    yield found[1], value
                break
