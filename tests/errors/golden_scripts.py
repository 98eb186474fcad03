"""Golden files: one per room; in each, scripts called flow.py and what they say.

== name_of_the_case
a script
----
what it says
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from typer.testing import CliRunner

import caesura as cz
from caesura.cli import app
from caesura.errors import CaesuraError

FOLDER = Path(__file__).parent / "golden"
LINE = "----\n"
Site = tuple[str, int]
"""A file and a line in it."""


@dataclass(frozen=True)
class Golden:
    """A script and the text that was approved for it."""

    room: str
    name: str
    script: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.room}-{self.name}"


def read(room: Path) -> list[Golden]:
    _, *parts = re.split(r"^== (\w+)\n", room.read_text(), flags=re.MULTILINE)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [Golden(room.stem, name, *_halves(text)) for name, text in pairs]


def _halves(text: str) -> tuple[str, str]:
    script, wanted = text.split(LINE)
    return script, wanted.rstrip() + "\n"


def write(room: str, said: dict[Golden, str]) -> None:
    parts = [f"== {g.name}\n{g.script}{LINE}{text}" for g, text in said.items() if g.room == room]
    (FOLDER / f"{room}.txt").write_text("\n".join(parts))


ALL = [golden for room in sorted(FOLDER.glob("*.txt")) for golden in read(room)]


def late(stream: cz.Stream) -> str:
    """The rows that a source refuses, with the reason, and what the others say."""
    result = stream.run()
    shown = ("reason", "offset", "kind", "LE", "RE", "RE_new")
    rows = [{n: row[n] for n in shown} for table in result.late.values() for row in table.to_pylist()]
    told = [" | ".join(f"{name} {value}" for name, value in row.items()) for row in rows]
    return "\n".join([*told, str(result)])


def file(name: str, content: str | bytes) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def caesura(words: str) -> str:
    """What a command says when it fails, and its exit code."""
    result = CliRunner().invoke(app, shlex.split(words))
    return f"exit code {result.exit_code}\n{result.stderr}"


BROKERS: dict[str, Any] = {}
"""Brokers that live in this process, by their address; a real one is in tests/connectors."""


def kafka(topic: str, *values: bytes) -> str:
    """The address of a broker with a topic of one partition."""
    from confluent_kafka import Producer

    from caesura.io.kafka import cluster

    cluster.ID_SECONDS = 0.1  # this broker has no answer to what the id of a topic is
    producer = Producer({"test.mock.num.brokers": 1, "allow.auto.create.topics": True})
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush()
    [broker] = producer.list_topics().brokers.values()
    BROKERS[f"{broker.host}:{broker.port}"] = producer
    return f"{broker.host}:{broker.port}"


def said(golden: Golden) -> str:
    """What the script says: its diagnostic, or what it shows."""
    names: dict[str, Any] = {"cz": cz, "col": cz.col, "late": late, "file": file, "folder": os.mkdir}
    names |= {"caesura": caesura, "kafka": kafka, "shown": None, "__name__": "flow"}
    # A query that a script leaves open may renew its lease while the folder goes.
    with TemporaryDirectory(ignore_cleanup_errors=True) as here, chdir(here):
        try:
            exec(compile(golden.script, "flow.py", "exec", dont_inherit=True), names)
            text = str(names["shown"])
        except CaesuraError as error:
            text = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - a script that breaks fails in its own test
            text = f"broken by {error!r}"
        text = text.replace(str(Path.cwd()), "<here>").replace(here, "<here>")
        for address in BROKERS:
            text = text.replace(address, "<broker>")
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


# Compiled under a name that is nobody's file, so that it is never taken for the user's line.
_NOTING = """
def noted(self, *args, **kwargs):
    caller = getframe(1)
    sites.add((caller.f_code.co_filename, caller.f_lineno))
    make(self, *args, **kwargs)
"""


@contextmanager
def noting_sites() -> Iterator[set[Site]]:
    """Collects where diagnostics are made."""
    sites: set[Site] = set()
    make = CaesuraError.__init__
    names: dict[str, Any] = {"getframe": sys._getframe, "sites": sites, "make": make}
    exec(compile(_NOTING, "<string>", "exec"), names)
    CaesuraError.__init__ = names["noted"]  # type: ignore[method-assign]
    try:
        yield sites
    finally:
        CaesuraError.__init__ = make  # type: ignore[method-assign]
