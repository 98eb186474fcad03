"""Whatever befalls a query, in any order: once it is at its end, its output is that of an undisturbed one.

A seed draws the plan, the form of the output, the input, where everything lies, and up to three faults.
"""

from __future__ import annotations

import errno
import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import examples
from faults import Kill, Killed

import caesura as cz
from caesura import Stream, col
from caesura.errors import CaesuraError
from caesura.events import History
from caesura.io.places import Place
from caesura.io.places.local import LocalStorage
from caesura.io.places.objects import ObjectStorage
from caesura.io.sinks.rows import changed_page
from caesura.runtime.sinks.parquet import ParquetSink

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
Made = Callable[[Stream], Stream]


def _joined(rows: Stream) -> Stream:
    slow = rows.where(col("v") < 4).extend(6).select("id", low="v")
    return rows.where(col("v") >= 4).join(slow, on="id")


PLANS: dict[str, Made] = {
    "tumbling": lambda rows: rows.group_by("id").tumbling(10).agg(n=cz.count(), v=cz.sum("v")),
    "hopping": lambda rows: rows.where(col("v") > 1).group_by("id").hopping(12, every=4).agg(v=cz.max("v")),
    "two steps": lambda rows: (
        rows.group_by("id").tumbling(5).agg(n=cz.count()).group_by("id").tumbling(10).agg(n=cz.sum("n"))
    ),
    "join": _joined,
    "filter": lambda rows: rows.where(col("v") != 3).select("id", twice=col("v") * 2),
}


class Scene:
    """One drawn query: its input, its plan, and where it lies."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.drawn = random.Random(f"faults {seed}")
        self.folder = folder
        self.plan = self.drawn.choice(sorted(PLANS))
        self.output = self.drawn.choice(["changes", "final"])
        self.steps = self.drawn.randrange(1, 4)
        (folder / "in").mkdir()
        for number in range(self.drawn.randrange(2, 5)):
            pq.write_table(self._rows(number), folder / "in" / f"{number}.parquet")

    def _rows(self, number: int) -> pa.Table:
        times = [12 * number + at - self.drawn.choice((0, 0, 1, 3, 9)) for at in range(12)]
        rows = [{"t": max(0, t), "id": self.drawn.randrange(3), "v": self.drawn.randrange(8)} for t in times]
        return pa.Table.from_pylist(rows, SCHEMA)

    def place(self) -> str:
        return (
            f"memory://{uuid.uuid4().hex}"
            if self.drawn.random() < 0.5
            else str(self.folder / uuid.uuid4().hex)
        )

    def stream(self) -> Stream:
        lag = cz.delay(4)
        rows = cz.read.parquet(self.folder / "in", time="t", punctuate=lag, name="in", batch_size=5)
        return PLANS[self.plan](rows)

    def query(self, place: str, **options: Any) -> Any:
        made = {"checkpoint": f"{place}/cp", "sink": f"{place}/out", "output": self.output}
        return self.stream().query(**made, every="1h", **options)

    def run(self, place: str, **options: Any) -> None:
        """Some epochs, and the last one."""
        query = self.query(place, **options)
        while all(query.step() for _ in range(self.steps)):
            query.save()
        query.run()

    def answer(self, place: str) -> tuple[History, Counter[str]]:
        """The history that the sink holds, and its late rows."""
        sink, node = ParquetSink(f"{place}/out"), self.stream().node
        sink.open({"out": node})
        page = changed_page(sink.read_back("out"), node.schema, node.time)
        return History.of([page], node.schema), self._late(place)

    def _late(self, place: str) -> Counter[str]:
        out = Place.of(f"{place}/out")
        commits = [json.loads(file.read_text()) for file in (out / "_commits").files(".json")]
        names = [part["file"] for one in commits for part in one["files"] if part["output"] == "_late"]
        tables = [pq.read_table((out / "_late" / name).open()) for name in names]
        return Counter(str(row) for table in tables for row in table.to_pylist())


@contextmanager
def failing(number: int, error: OSError) -> Iterator[None]:
    """From a put on nothing can be written."""
    count = [0]

    def of(real: Any) -> Any:
        def put(storage: Any, *args: Any, **options: Any) -> Any:
            count[0] += not str(args[0]).endswith("lease.json")
            if count[0] > number and not str(args[0]).endswith("lease.json"):
                raise error
            return real(storage, *args, **options)

        return put

    local, objects = of(LocalStorage.put), of(ObjectStorage.put)
    with patch.object(LocalStorage, "put", local), patch.object(ObjectStorage, "put", objects):
        yield


def killed(scene: Scene, place: str) -> None:
    """The process is gone before or after one of its puts or removals."""
    kill = Kill(scene.drawn.randrange(40), after=scene.drawn.random() < 0.5)
    with kill.armed(), suppress(Killed):
        scene.run(place, take_over=True)


def full(scene: Scene, place: str) -> None:
    """No room from some put on."""
    _lost(scene, place, OSError(errno.ENOSPC, "No space left on device"))


def away(scene: Scene, place: str) -> None:
    """The store does not answer from some put on."""
    _lost(scene, place, OSError(errno.EIO, "the store is away"))


def _lost(scene: Scene, place: str, error: OSError) -> None:
    with failing(scene.drawn.randrange(1, 30), error), suppress(OSError, CaesuraError):
        scene.run(place, take_over=True)


def taken_over(scene: Scene, place: str) -> None:
    """Another start takes over from one that goes on writing, and is refused."""
    first = scene.query(place, take_over=True)
    for _ in range(scene.drawn.randrange(4)):
        first.step()
    second = scene.query(place, take_over=True)
    for _ in range(scene.drawn.randrange(4)):
        second.step()
    second.save()
    with pytest.raises(CaesuraError):
        while first.step():
            pass
        first.save()


def upgraded(scene: Scene, place: str) -> None:
    """A start that would go on with another plan, if this were one."""
    query = scene.query(place, take_over=True, on_change="continue")
    for _ in range(scene.drawn.randrange(4)):
        query.step()
    query.save()
    query.close()


FAULTS = [killed, killed, full, away, taken_over, upgraded]


@pytest.mark.parametrize("seed", range(examples(50, short=3)))
def test_a_query_that_faults_befall_answers_as_an_undisturbed_one(seed: int, tmp_path: Path) -> None:
    scene = Scene(seed, tmp_path)
    quiet, place = scene.place(), scene.place()
    scene.run(quiet)
    befell = [scene.drawn.choice(FAULTS) for _ in range(scene.drawn.randrange(1, 4))]
    for fault in befell:
        fault(scene, place)
    scene.run(place, take_over=True)
    names = [fault.__name__ for fault in befell]
    (history, late), (wanted, wanted_late) = scene.answer(place), scene.answer(quiet)
    assert len(wanted) > 0
    assert history == wanted, (scene.plan, scene.output, names)
    assert late == wanted_late, (scene.plan, scene.output, names)
