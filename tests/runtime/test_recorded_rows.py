"""A ring of what a query took in, beside its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import caesura as cz
from caesura.errors import CaesuraError
from caesura.io.places import Place
from caesura.plan import Raw
from caesura.runtime.durable.query import DurableQuery
from caesura.runtime.query.recorded_rows import RecordedRows, TakenIn

SCHEMA = pa.schema([("id", pa.int64())])


def fed(checkpoint: Path, *ids: int, at: int = 0) -> DurableQuery:
    """A query that was fed some rows, and saved behind each."""
    query = (
        cz.input_stream("clicks", SCHEMA)
        .tumbling(10)
        .agg(n=cz.count())
        .query(checkpoint=checkpoint, record="10m", every="1h")
    )
    assert isinstance(query, DurableQuery)
    for number, one in enumerate(ids, at):
        for item in cz.parse(f" LE RE | id |\n {number} {number + 1} | {one} | +", SCHEMA):
            query.feed("clicks", item)
        query.feed("clicks", cz.cti(number))
        while query.step():
            pass
        query.save()
    return query


def test_what_was_fed_and_saved_is_looked_into_also_by_the_next_start(tmp_path: Path) -> None:
    query = fed(tmp_path, 7, 8)
    origin = query.replay().trace_back("n = 2")
    assert [r.values for group in origin.needed for r in group] == [{"id": 7}, {"id": 8}]
    query.close()
    again = fed(tmp_path, 9, at=2)
    assert dict(again.replay().rows) == {"clicks": 3}
    again.close()
    files = sorted((tmp_path / "recorded").iterdir())
    assert len(files) == 3 and {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_rows_that_were_taken_in_and_not_saved_are_not_in_the_ring(tmp_path: Path) -> None:
    query = fed(tmp_path, 7)
    for item in cz.parse(" LE RE | id |\n 5 6 | 8 | +", SCHEMA):
        query.feed("clicks", item)
    assert dict(query.replay().rows) == {"clicks": 1}  # killed here, the next start is fed it again
    query.close()


def test_rows_of_a_source_are_kept_with_lanes_offsets_and_promises(tmp_path: Path) -> None:
    stream = cz.from_rows([{"ts": 1, "id": 0}], time="ts", punctuate=cz.delay(1))
    (label,) = stream.replay().sources.values()
    batch = pa.record_batch({"ts": [4, 5], "id": [1, 2]})
    raw = Raw(3, 10, batch, ((1, cz.cti(2).pattern),), gap=2)
    ring = RecordedRows.at(Place.of(tmp_path), "1m")
    ring.write(1, "", [(label, raw)])
    ((read,),) = ring.recording(stream.node).raws.values()
    assert (read.lane, read.offset, read.end, read.punctuations) == (3, 10, 14, raw.punctuations)
    assert read.batch.equals(batch)


def test_the_same_part_of_an_epoch_replaces_itself_and_what_was_cut_off_goes(tmp_path: Path) -> None:
    ring = RecordedRows.at(Place.of(tmp_path), "1m")
    for epoch in (1, 2, 2):
        ring.write(epoch, "a", [("clicks", cz.cti(epoch))])
    node = cz.input_stream("clicks", SCHEMA).node
    assert [item for _, item in ring.recording(node).fed] == [cz.cti(1), cz.cti(2)]
    ring.forget_behind(1)
    assert [item for _, item in ring.recording(node).fed] == [cz.cti(1)]


def test_a_ring_is_bounded_in_time_and_in_bytes(tmp_path: Path) -> None:
    ring = RecordedRows(Place.of(tmp_path) / "recorded", keep=60, max_bytes=2_000)
    page = cz.parse(" LE RE | id |\n" + "\n".join(f" {n} {n + 1} | {n} | +" for n in range(20)), SCHEMA)[0]
    for epoch in range(20):
        ring.write(epoch, "a", [("clicks", page)])
    ring.sweep()
    left = sorted((tmp_path / "recorded").iterdir())
    assert 0 < sum(file.stat().st_size for file in left) <= 2_000 and left[-1].name.startswith("0000000019")
    newest = left[-1].stat().st_mtime
    ring.sweep(now=newest + 61)
    assert not list((tmp_path / "recorded").iterdir())


def test_what_waits_for_an_epoch_is_bounded_too() -> None:
    waits = TakenIn(max_bytes=1_000)
    for number in range(100):
        waits.add("read", Raw(0, number * 10, pa.record_batch({"id": list(range(10))})))
    kept = waits.take()
    assert 0 < len(kept) <= 12 and isinstance(kept[-1][1], Raw) and kept[-1][1].offset == 990
    assert waits.take() == []


@pytest.mark.parametrize("damage", ["cut", "longer", "garbage", "later", "empty", "pickle"])
def test_a_file_that_is_not_whole_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    query = fed(tmp_path, 7)
    (file,) = (tmp_path / "recorded").iterdir()
    data = file.read_bytes()
    made = {
        "cut": data[:-30],
        "longer": data[:4] + b"x" + data[4:],
        "garbage": bytes(reversed(data)),
        "later": data.replace(b'"format": 1', b'"format": 9'),
        "empty": b"",
        "pickle": b"\x80\x04K\x01.",
    }[damage]
    file.write_bytes(made)
    with pytest.raises(CaesuraError, match="recorded rows, cannot be read") as error:
        query.replay()
    assert file.name in str(error.value) and "Take it away" in str(error.value)
    file.unlink()
    assert dict(query.replay().rows) == {}
    query.close()


@pytest.mark.parametrize("record", [10, "0s", "-1m"])
def test_a_time_to_keep_rows_for_that_is_none_is_refused(tmp_path: Path, record: object) -> None:
    with pytest.raises(CaesuraError):
        cz.from_rows([{"ts": 1}], time="ts").query(checkpoint=tmp_path, record=record)  # type: ignore[call-overload]


def test_what_is_recorded_needs_a_checkpoint() -> None:
    with pytest.raises(CaesuraError, match="beside a checkpoint"):
        cz.from_rows([{"ts": 1}], time="ts").query(record="10m")
