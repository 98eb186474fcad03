"""A process with a query over every kind of source, which dies at its own hand after some saves.

Usage: killed_sources.py FOLDER SAVES; goes on from what FOLDER holds, writes outputs beside it, and ends
when every source is at its end. Prints the fingerprints of more plans, which no process may change.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import caesura as cz
from caesura import Stream, col, io
from caesura.events import Item, draw, parse
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.runtime import Query

COUNT = 60
BATCH = 7


def table() -> pa.Table:
    return pa.table(
        {
            "ts": [n - 3 * (n % 5 == 4) for n in range(COUNT)],
            "id": [n % 4 for n in range(COUNT)],
            "word": [("a", "b", None, "longer")[n % 4] for n in range(COUNT)],
        }
    )


NAMES = pa.table({"ts": [0] * 4, "end": pa.nulls(4, pa.int64()), "id": range(4), "road": list("xyxz")})


def write(folder: Path) -> None:
    """The files that some sources read."""
    for number in range(4):
        part = table().slice(number * 15, 15)
        for kind in ("parquet", "csv", "json"):
            (folder / kind).mkdir(exist_ok=True)
        pq.write_table(part, folder / "parquet" / f"{number}.parquet", row_group_size=5)
        pc.write_csv(part, folder / "csv" / f"{number}.csv")
        lines = "\n".join(json.dumps(row) for row in part.to_pylist())
        (folder / "json" / f"{number}.json").write_text(lines + "\n")


def kinds(folder: Path) -> dict[str, Callable[[], Source]]:
    """Every kind of source that an embedded query reads, made from nothing but the folder and this file."""
    how: dict[str, Any] = {"time": "ts", "punctuate": cz.delay(4)}
    small: dict[str, Any] = {**how, "batch_size": BATCH}
    items = cz.from_rows(table().to_pylist(), **how).run().items
    return {
        "parquet": lambda: io.read_parquet(folder / "parquet", **small),
        "csv": lambda: io.read_csv(folder / "csv", schema=table().schema, **small),
        "json": lambda: io.read_json(folder / "json", schema=table().schema, **small),
        "table": lambda: io.from_arrow(table(), **small),
        "batch": lambda: io.from_arrow(table().combine_chunks().to_batches()[0], **small),
        "pandas": lambda: io.from_pandas(table().to_pandas(), **small),
        "rows": lambda: io.from_rows(table().to_pylist(), **small),
        "iterator": lambda: io.from_rows(iter(table().to_pylist()), table().schema, name="iterated", **small),
        "stream": lambda: io.from_arrow(table().to_reader(max_chunksize=BATCH), name="streamed", **small),
        "items": lambda: io.from_items(items),
    }


def plan(source: Node) -> Stream:
    """State behind the source, a table in memory, a function that captures one."""
    known = {"x": 1, "y": 2, "z": 3}
    named = cz.from_arrow(NAMES, time="ts", end="end")
    weigh = cz.udf(lambda road: known.get(road, 0), returns="bigint")
    joined = Stream(source).join(named, on="id").select("id", w=weigh(col("road")))
    return joined.group_by("id").tumbling(10).agg(n=cz.count(), w=cz.sum("w"))


class Saved:
    """A query whose state and output lie in a folder, changed together."""

    def __init__(self, folder: Path, name: str, queries: list[Query]) -> None:
        self.file = folder / f"{name}.saved"
        self.queries = queries
        fresh: dict[str, Any] = {"chunks": [{} for _ in queries], "out": [], "fed": 0}
        kept = json.loads(self.file.read_text()) if self.file.exists() else fresh
        self.chunks: list[dict[str, str]] = kept["chunks"]
        self.out: list[str] = kept["out"]
        self.fed: int = kept["fed"]
        for query, chunks in zip(queries, self.chunks, strict=True):
            if chunks:
                query.restore({n: base64.b64decode(d) for n, d in chunks.items()})

    def quiet_steps(self) -> Iterator[None]:
        """Steps; a pause wherever nothing is on its way."""
        last = self.queries[-1]
        for item in PUSHED[self.fed :] if "pushed" in last.inputs else ():
            last.feed("pushed", item)
            last.run()
            self.fed += 1
            yield
        while last.step():
            if not any(edge.items for query in self.queries for edge in query.graph.edges):
                yield

    def save(self) -> None:
        for query, chunks in zip(self.queries, self.chunks, strict=True):
            for name, data in query.snapshot().items():
                if data is None:
                    chunks.pop(name, None)
                else:
                    chunks[name] = base64.b64encode(data).decode()
        self.out += drawn(self.queries[-1])
        half = self.file.with_suffix(".partial")
        half.write_text(json.dumps({"chunks": self.chunks, "out": self.out, "fed": self.fed}))
        half.rename(self.file)


def drawn(query: Query) -> list[str]:
    """What has left a query since the last call."""
    items: list[Item] = query.take("out")
    return [draw([item], schema=query.outputs["out"].schema) for item in items]


PUSHED: list[Item] = parse(
    " LE RE | id |\n 1 2 | 1 | +\n 3 4 | 2 | +\n-- 3 --\n 12 13 | 1 | +\n-- 10 --\n 15 16 | 3 | +\n-- 20 --"
)


def queries(folder: Path) -> dict[str, Callable[[], list[Query]]]:
    """A query over each kind of source, over what is pushed to it, and over what another publishes."""

    def read(make: Callable[[], Node]) -> list[Query]:
        return [Query({"out": plan(make()).node})]

    def published() -> list[Query]:
        first = Query({"out": plan(kinds(folder)["rows"]()).node})
        again = cz.subscribe(first.publish("out")).select("id", "n").group_by("id").totals(n=cz.sum("n"))
        return [first, Query({"out": again.node})]

    ids = pa.schema([("id", pa.int64())])
    made = {name: partial(read, make) for name, make in kinds(folder).items()}
    return {
        **made,
        "pushed": lambda: read(lambda: cz.input_stream("pushed", ids).node),
        "published": published,
    }


def main() -> None:
    folder, saves = Path(sys.argv[1]), int(sys.argv[2])
    for name, make in queries(folder).items():
        saved = Saved(folder, name, make())
        for number, _ in enumerate(saved.quiet_steps()):
            if number == saves:
                break
            saved.save()
        else:
            saved.save()
            (folder / f"{name}.done").touch()
    if saves < COUNT:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
