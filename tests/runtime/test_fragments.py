"""Fragments: what they save is what changed, and from it they continue exactly."""

from __future__ import annotations

import pyarrow as pa
import pytest
from bucket_plans import MADE, PLANS, Scripted, sources
from cluster import Cluster

import caesura as cz
from caesura import Stream
from caesura.events import Item, Page, draw, parse
from caesura.events.chunks import Chunks
from caesura.events.identity import Secret
from caesura.io import Source
from caesura.plan import Node, Raw
from caesura.punctuation import cti
from caesura.runtime.buckets.labels import OUT
from caesura.runtime.graph.edge import merged
from caesura.runtime.packets.packet import Packet, decode, encode


def epochs(a: Source, b: Source) -> list[list[tuple[Source, Raw]]]:
    return [[(a, raw)] for raw in a.read({})] + [[(b, raw)] for raw in b.read({})]


def keep(kept: dict[str, bytes], fresh: Chunks) -> None:
    """What a store does with a snapshot."""
    for name, data in fresh.items():
        if data is None:
            del kept[name]
        else:
            kept[name] = data


def played(node: Node, script: list[list[tuple[Source, Raw]]], *, restarts: bool) -> list[Item]:
    """The items of all epochs; with restarts, every epoch runs in a fresh cluster."""
    secret = Secret(bytes(Secret.SIZE))  # so that rows lie in the same buckets, and come out in one order
    cluster, kept, items = Cluster({"out": node}, 2, secret=secret), dict[str, bytes](), list[Item]()
    for number, batch in enumerate(script):
        cluster.epoch(batch, closes=number == len(script) - 1)
        items += cluster.items["out"]
        cluster.items["out"] = []
        keep(kept, cluster.snapshot())
        if restarts:
            cluster = Cluster({"out": node}, 2, stages=cluster.stages)
            cluster.restore(kept)
    return items


@pytest.mark.slow
@pytest.mark.thin(12)
@pytest.mark.parametrize("name", [n for n in PLANS if n != "join with a table"])
def test_a_fragment_restored_from_its_chunks_continues_exactly(name: str) -> None:
    a, b = sources()
    node = PLANS[name](Stream(a), Stream(b)).node
    known = {s.fingerprint for s in Cluster({"out": node}, 1).stages.sources}
    script = [batch for batch in epochs(a, b) if batch[0][0].fingerprint in known]
    through = played(node, script, restarts=False)
    assert draw(played(node, script, restarts=True)) == draw(through)
    assert sum(len(item) for item in through if isinstance(item, Page))


def test_only_what_changed_is_saved() -> None:
    a, b = sources()
    busy = Stream(a).group_by("id").totals(**MADE).node
    idle = Stream(b).group_by("id").totals(n=cz.count()).node
    cluster = Cluster({"busy": busy, "idle": idle}, 1)
    [[fragment]] = cluster.fragments
    first, *more = a.read({})
    cluster.epoch([(a, first), (b, next(b.read({})))])
    later = f"query/{fragment.query.outputs[OUT + 'idle'].fingerprint}/"
    assert any(name.startswith(later) for name in fragment.snapshot())
    cluster.epoch([(a, more[0])])
    again = fragment.snapshot()
    assert f"query/{fragment.query.outputs[OUT + 'busy'].fingerprint}/meta" in again
    assert not [name for name in again if name.startswith(later)]
    assert not [name for name in again if name.startswith("gate/") and idle.inputs[0].fingerprint in name]
    assert fragment.snapshot() == {}


def test_a_step_does_not_depend_on_the_order_of_its_packets() -> None:
    a, b = sources()
    node = PLANS["join full"](Stream(a), Stream(b)).node
    out = []
    for direction in (1, -1):
        cluster = Cluster({"out": node}, 1)
        [[fragment]] = cluster.fragments
        packets = [
            packet
            for place, (source, raw) in enumerate(batch[0] for batch in epochs(a, b))
            for packet in cluster.mappers[source.fingerprint].map(raw, (place,))
        ]
        out.append(draw([i for p in fragment.step(packets[::direction], closes=True) for i in p.items]))
    assert out[0] == out[1]


def test_a_later_punctuation_of_the_same_step_replaces_those_that_it_covers() -> None:
    some = parse(" LE RE | id |\n-- 5 --\n 7 8 | 1 | +\n-- 6 --\n 9 10 | 1 | +\n-- 9 --\n-- definite: * --")
    told = [str(item) for item in merged(some) if not isinstance(item, Page)]
    assert told == ["definite: time < 9", "definite: *"]


def test_a_packet_of_rows_without_columns_keeps_its_rows() -> None:
    page = Page.of(pa.record_batch({"id": [1, 2]}), le=[1, 2], re=[3, 4], re_new=[1, 3])
    bare = page.with_payload(page.payload.select([]))
    header, items = decode(encode({"n": 1}, (page, cti(5), bare)))
    assert header == {"n": 1}
    assert isinstance(items[0], Page)
    assert items[0].rows() == page.rows()
    assert isinstance(items[2], Page)
    assert len(items[2]) == 2


def test_a_large_packet_is_split_into_rows_in_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caesura.runtime.packets.packet.MAX_BYTES", 4000)
    page = Page.of(pa.record_batch({"id": list(range(1000))}), le=range(1000), re=range(1, 1001))
    parts = list(Packet(1, "in", 0, "a", 0, {"n": 1}, (page, cti(5))).split())
    assert len(parts) > 3
    assert [p.seq for p in parts] == list(range(len(parts)))
    assert all(p.header == {"n": 1} for p in parts)
    rows = [row for p in parts for item in p.items if isinstance(item, Page) for row in item.rows()]
    assert rows == page.rows()


def test_a_scripted_source_reads_again() -> None:
    a, _ = sources()
    assert isinstance(a.reader, Scripted)
    assert len(list(a.read({}))) == len(list(a.read({}))) == 5
