"""From topic to topic in this process, with a checkpoint: every row is there once, whatever is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from topics import Topic

import caesura as cz

ROWS = pa.schema([("ts", pa.int64()), ("n", pa.int64())])
OUT = pa.schema([("kind", pa.string()), ("LE", pa.int64()), ("n", pa.int64())])


def test_a_query_that_is_made_again_goes_on_from_its_checkpoint(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()

    def start() -> Any:
        rows = cz.read.kafka(
            source.servers, source.name, value=cz.json(ROWS), time="ts", punctuate=cz.delay(0, closes=False)
        )
        sink = cz.kafka(target.servers, target.name)
        return rows.query(checkpoint=tmp_path / "checkpoint", sink=sink, every="1h")

    def read(query: Any) -> int:
        [reader] = query.runner._readers
        return int(reader.position.get("0", 0))

    source.rows([1, 2])
    killed = start()
    while read(killed) < 2:
        killed.step()
    killed.save()
    source.rows([3])
    while read(killed) < 3:
        killed.step()
    killed.close()  # the third row was read, and not saved
    again = start()
    while read(again) < 3:
        again.step()
    again.save()
    again.close()
    found = cz.read.kafka(target.servers, target.name, value=cz.json(OUT), time="LE", until="latest").run()
    assert sorted(found.table().column("n").to_pylist()) == [10, 20, 30]
