"""A stretch of a query's input as a test: its rows, and what the plan makes of them now.

The file holds literals only, so that whatever is in the data stays data.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pprint import pformat
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.io.sinks.rows import history_table
from caesura.io.sources.source import Source
from caesura.plan import Node, Raw, here
from caesura.plan.labelled import labelled
from caesura.punctuation import Punctuation
from caesura.punctuation.writers import promise_from_json
from caesura.runtime.inspect.literals import batch_of, row_literals
from caesura.runtime.inspect.subset import replayed
from caesura.runtime.query.recording import Recording

Recorded = Mapping[str, Any]
"""Rows of a source: source, lane, offset, rows, promises; or of an input that is fed: input, rows or said."""
NAME = re.compile(r"[A-Za-z_]\w{0,80}")
FILE = re.compile(r"(?P<file>[^:\n]+\.(?:py|sql)):(?P<name>[A-Za-z_]\w*)")
MODULE = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")


class _HasNode(Protocol):
    @property
    def node(self) -> Node: ...


def save_test(recording: Recording, path: Path, *, stream: str | None, name: str | None) -> Path:
    """Writes the file; one that is there is not written over."""
    if path.suffix != ".py" or not path.name.startswith("test_"):
        raise StreamError(
            f"pytest would not find '{path.name}'.", remedy="Call the file test_<something>.py."
        ).at("save_test", here())
    text = written_test(recording, stream or _found(recording.node), name, path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StreamError(f"there is a file '{path}' already.", remedy="Choose another name.").at(
            "save_test", here()
        ) from None
    return path


def written_test(recording: Recording, stream: str, name: str | None, folder: Path) -> str:
    """The text of a test of what a plan makes of a stretch."""
    lines, variable = _import_of(stream, folder)
    called = name or f"{variable}_says_of_a_recorded_stretch_what_it_said"
    if not NAME.fullmatch(called):
        raise StreamError(f"no test can be called {called!r}.", remedy="Take letters, digits and _.").at(
            "save_test", here()
        )
    output, late = said_of(recording)
    body = [
        f'"""What {variable!r} says of a stretch of its input, as it was when this was saved."""',
        "",
        *lines,
        "",
        f"INPUT = {_shown(list(recorded_literals(recording)))}",
        "",
        f"OUTPUT = {_shown(output)}",
        "",
        "",
        f"def test_{called}():",
        f"    assert_replay({variable}, INPUT, OUTPUT, late={late})",
        "",
    ]
    return "\n".join(body)


def recorded_literals(recording: Recording) -> Iterator[Recorded]:
    """What was recorded, as literals."""
    for source, label in recording.sources.items():
        for raw in recording.raws.get(source, []):
            made: dict[str, Any] = {"source": label, "lane": raw.lane, "offset": raw.offset}
            if raw.offsets is not None:
                made["offsets"] = [int(at) for at in raw.offsets]
            if raw.end != raw.offset + raw.batch.num_rows:
                made["end"] = int(raw.end)
            if raw.punctuations:
                made["promises"] = [[at, promise.to_json()] for at, promise in raw.punctuations]
            yield made | {"rows": row_literals(raw.batch)}
    for label, item in recording.fed:
        if isinstance(item, Page):
            times = {"LE": item.le, "RE": item.re} | ({} if item.re_new is None else {"RE_new": item.re_new})
            ticks = {name: [int(t) for t in column] for name, column in times.items()}
            yield {"input": label, **ticks, "rows": row_literals(item.payload)}
        else:
            yield {"input": label, "said": item.to_json()}


def recording_of(stream: _HasNode, recorded: Sequence[Recorded]) -> Recording:
    """A stretch of literals over a stream's plan."""
    made = Recording(stream.node, sys.maxsize)
    steps = labelled({"out": stream.node})
    made.raws = {own.fingerprint: [] for own in steps.values() if isinstance(own, Source)}
    for part in recorded:
        if "source" in part:
            source = steps.get(part["source"])
            if not isinstance(source, Source):
                raise StreamError(
                    f"the stretch is of a source '{part['source']}', and the stream has none of that name.",
                    remedy="Save the test anew.",
                ).at("assert_replay", here())
            made.raws[source.fingerprint].append(_raw(part, source.reader.schema))
        else:
            made.fed.append((part["input"], _item(part, stream.node)))
    return made


def said_of(recording: Recording) -> tuple[list[dict[str, Any]], int]:
    """The output's history over a stretch as literals, in order, and how many rows were refused."""
    table, late = replayed_table(recording)
    return sorted(row_literals(table), key=repr), late


def replayed_table(recording: Recording) -> tuple[pa.Table, int]:
    """The output's history over a stretch, and how many rows were refused."""
    query = replayed(recording)
    node = query.outputs["out"]
    table = history_table(query.take("out"), node.schema, node.time)
    return table, sum(rows.num_rows for rows in query.late().values())


def _raw(part: Recorded, schema: pa.Schema) -> Raw:
    batch = batch_of(part["rows"], schema)
    offsets = None if "offsets" not in part else np.array(part["offsets"], np.int64)
    promises = tuple((int(at), promise_from_json(data)) for at, data in part.get("promises", []))
    rows = batch.num_rows
    gap = part.get("end", part["offset"] + rows) - part["offset"] - rows
    return Raw(part["lane"], part["offset"], batch, promises, gap=gap, offsets=offsets)


def _item(part: Recorded, node: Node) -> Item:
    if "said" in part:
        return Punctuation.from_json(part["said"])
    schema = next(own.schema for own in labelled({"out": node}).values() if own.fed == part["input"])
    return Page.of(batch_of(part["rows"], schema), le=part["LE"], re=part["RE"], re_new=part.get("RE_new"))


def _shown(value: Any) -> str:
    return pformat(value, indent=1, width=108, sort_dicts=False)


def _found(node: Node) -> str:
    """Which variable of a module holds the stream of a plan."""
    for module_name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or module_name.partition(".")[0] == "caesura":
            continue
        for key, value in list(vars(module).items()):
            if key.startswith("_") or type(value).__module__.partition(".")[0] != "caesura":
                continue
            own = getattr(value, "node", None)
            if isinstance(own, Node) and own.fingerprint == node.fingerprint:
                return f"{file}:{key}" if file.endswith(".py") else f"{module_name}:{key}"
    raise StreamError(
        "no module has this stream in a variable.",
        remedy='Say where it is: save_test(path, stream="flow.py:speeds").',
    ).at("save_test", here())


def _import_of(stream: str, folder: Path) -> tuple[list[str], str]:
    """The lines that get a stream, and the variable that has it."""
    own = "from caesura.testing import assert_replay"
    if found := FILE.fullmatch(stream):
        file = os.path.relpath(Path(found["file"]).resolve(), folder.resolve())
        target = f"{Path(file).as_posix()}:{found['name']}"
        lines = ["from pathlib import Path", "", "from caesura.testing import assert_replay, load_stream", ""]
        return [*lines, f"{found['name']} = load_stream({target!r}, Path(__file__).parent)"], found["name"]
    if found := MODULE.fullmatch(stream):
        return [f"from {found['module']} import {found['name']}", "", own], found["name"]
    raise StreamError(
        f"{stream!r} names no stream.",
        remedy='Write "flow.py:speeds", "views.sql:speeds" or "package.module:speeds".',
    ).at("save_test", here())
