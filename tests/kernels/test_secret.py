"""Nobody who supplies rows can make two of them one, or crowd a table: identities begin with a secret."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from crafted import PAIR, crowded, scramble, steps, unkeyed, unscramble

import caesura as cz
from caesura import Stream
from caesura.events import History, parse
from caesura.events.identity import LOCAL, Secret, identity
from caesura.io.ingress.runs import RetractTargets
from caesura.kernels.hashing import VALUE, sip_word
from caesura.kernels.keys import KeyTable
from caesura.ops.input import Input
from caesura.qre.kernels.key_slots import IntKeys
from caesura.runtime import Query

MANY = 40_000
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
ROWS = "".join(f" {t} 9 | {a} {b} | +\n" for t, (a, b) in enumerate(PAIR))
PLANS = {
    "group_by": lambda s: s.group_by("a", "b").totals(n=cz.count()),
    "windows": lambda s: s.group_by("a", "b").tumbling(10).agg(n=cz.count()),
    "snapshots": lambda s: s.group_by("a", "b").snapshot().agg(n=cz.count()),
    "distinct": lambda s: s.distinct(),
    "join": lambda s: s.join(s.select("a", "b", c="a"), on=["a", "b"]),
}


def test_the_old_hash_is_inverted_and_takes_two_rows_for_one() -> None:
    assert unscramble(scramble(12345)) == 12345
    assert unkeyed(PAIR[0]) == unkeyed(PAIR[1])
    assert {unkeyed((int(n),))[0] & 0xFFFFFFFF for n in crowded(50).view(np.uint64)} == {0}


@pytest.mark.parametrize("name", PLANS)
def test_two_crafted_rows_stay_two(name: str) -> None:
    stream = PLANS[name](Stream(Input(label="in", payload=SCHEMA)))
    query = Query({"out": stream.node})
    for item in parse(f" LE RE | a b |\n{ROWS}-- definite: * --", SCHEMA):
        query.feed("in", item)
    query.run()
    found = History.of(query.take("out"), stream.node.schema).bag
    assert sorted(row[2][:2] for row in found.elements()) == sorted(PAIR)


def test_crafted_keys_do_not_crowd_a_table() -> None:
    table = KeyTable()
    table.encode(*identity([pa.array(crowded(MANY))], MANY, Secret.drawn()))
    assert table.count == MANY
    home = (table.k1[:MANY] & np.uint64(len(table._index) - 1)).astype(np.int64)
    assert steps(table._index, home) < 2 * MANY


@pytest.mark.slow
def test_crafted_keys_do_not_crowd_the_table_of_a_pattern() -> None:
    golden, low = pow(0x9E3779B97F4A7C15, -1, 1 << 64), np.arange(MANY, dtype=np.int64) << 20
    spread = np.array([n * golden & (1 << 64) - 1 for n in range(MANY)], np.uint64).view(np.int64)
    for keys in (low, spread):
        table = IntKeys()
        assert table.encode(keys).tolist() == list(range(MANY))
        known, mask = table.keys[:MANY], len(table.index) - 1
        home = known & mask
        if len(table.scatter):
            hashed = [sip_word(*table.scatter, key, VALUE)[0] for key in known.view(np.uint64)]
            home = np.array(hashed, np.uint64).view(np.int64) & mask
        assert steps(table.index, home) < 4 * MANY


def test_crafted_lifetimes_do_not_crowd_the_table_of_retracts() -> None:
    le = np.arange(MANY, dtype=np.int64) << 38
    wants = RetractTargets(le, le + (1 << 62), lambda: np.zeros((0, 6), np.int64))
    used = np.flatnonzero(wants.lifetimes >= 0)
    gaps = np.diff(np.flatnonzero(wants.lifetimes < 0)) - 1
    assert len(used) == MANY
    assert gaps.max(initial=0) < 200


def test_identities_differ_under_two_secrets_and_agree_under_one() -> None:
    columns = [pa.array([1, 2, None]), pa.array(["a", None, "b"])]
    first, again = (identity(columns, 3, Secret(bytes(16)))[0].tolist() for _ in range(2))
    other = identity(columns, 3, Secret(bytes(15) + b"1"))[0].tolist()
    assert first == again
    assert not set(first) & set(other)


def test_a_secret_is_shown_nowhere() -> None:
    secret = Secret(b"0123456789abcdef")
    stream = PLANS["join"](Stream(Input(label="in", payload=SCHEMA)))
    query = Query({"out": stream.node}, secret=secret)
    for item in parse(f" LE RE | a b |\n{ROWS}", SCHEMA):
        query.feed("in", item)
    query.run()
    said = [repr(secret), f"{secret}", query._repr_html_(), stream.explain(), repr(query.counters())]
    saved = query.snapshot()
    assert saved.pop("secret") == secret.key
    assert not any(secret.key in data for data in saved.values() if data is not None)
    assert not any("0123456789abcdef" in text or secret.key.hex() in text for text in said)


def test_rows_without_columns_do_not_tell_the_secret() -> None:
    none = identity([], 1, LOCAL)
    assert (none[0][0], none[1][0]) != LOCAL.start
