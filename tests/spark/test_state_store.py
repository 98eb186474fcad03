"""The rows of a bucket in Spark's state store, with a store of this process in its place."""

from __future__ import annotations

from caesura.spark.worker.state_store import STAMP, ChunkStore, as_text


class FakeMap:
    """A map of the state store, which has nothing for a key that it has not."""

    def __init__(self, rows: dict[str, str]) -> None:
        self.rows = rows

    def keys(self) -> list[tuple[str]]:
        return [(name,) for name in self.rows]

    def containsKey(self, key: tuple[str]) -> bool:
        return key[0] in self.rows

    def getValue(self, key: tuple[str]) -> tuple[str] | None:
        return (self.rows[key[0]],) if key[0] in self.rows else None

    def updateValue(self, key: tuple[str], value: tuple[str]) -> None:
        self.rows[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:
        del self.rows[key[0]]


class FakeHandle:
    """Gives the only state variable that there is."""

    def __init__(self, rows: dict[str, str]) -> None:
        self.map = FakeMap(rows)

    def getMapState(self, name: str, *types: object) -> FakeMap:
        assert name == "chunks"
        return self.map


def store_of(rows: dict[str, str]) -> ChunkStore:
    return ChunkStore(FakeHandle(rows))


def test_a_new_bucket_has_neither_stamp_nor_chunks() -> None:
    store = store_of({})
    assert store.stamp() is None
    assert store.read(None) is None


def test_what_is_written_is_read_and_the_stamp_is_no_chunk() -> None:
    rows: dict[str, str] = {}
    store_of(rows).write({"query/a": b"1", "query/b": b"2"}, "first", None)
    store_of(rows).write({"query/a": None, "query/b": b"3", "query/never": None}, "second", None)
    assert store_of(rows).stamp() == "second"
    assert store_of(rows).read(None) == {"query/b": b"3"}


def test_a_bucket_of_an_earlier_version_has_no_stamp_among_its_chunks_and_is_read() -> None:
    rows = {"query/a": as_text(b"1")}
    store = store_of(rows)
    assert store.stamp() is None
    assert store.read(None) == {"query/a": b"1"}
    store.write({}, "later", None)
    assert STAMP in rows
    assert store.stamp() == "later"


def test_a_bucket_that_keeps_nothing_is_no_new_one() -> None:
    rows: dict[str, str] = {}
    store_of(rows).write({}, "first", None)
    assert store_of(rows).read(None) == {}
