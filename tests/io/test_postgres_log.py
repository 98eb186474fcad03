"""What Postgres' log says becomes rows: by whole transactions, an update of a key deletes the old one."""

from __future__ import annotations

import struct

from caesura.io.postgres.columns import TableColumn
from caesura.io.postgres.messages import UNIX_2000, Message
from caesura.io.postgres.reader import Changes

TABLE = "public.t"
COLUMNS = (TableColumn("id", "int8"), TableColumn("v", "text"))


def row(*values):
    """A row as it is sent: `...` for a large value that was not touched."""
    parts = [struct.pack(">H", len(values))]
    for value in values:
        text = str(value).encode()
        known = {None: b"n", ...: b"u"}
        parts.append(known[value] if value in known else b"t" + struct.pack(">I", len(text)) + text)
    return b"".join(parts)


def change(kind, *parts):
    return Message(kind + struct.pack(">I", 7) + b"".join(name + row(*values) for name, values in parts))


def described(*names):
    columns = b"".join(b"\0" + name.encode() + b"\0" + struct.pack(">Ii", 20, -1) for name in names)
    return Message(b"R" + struct.pack(">I", 7) + b"public\0t\0d" + struct.pack(">H", len(names)) + columns)


def commit(end, time=0):
    return Message(b"C" + struct.pack(">bqqq", 0, end - 8, end, time - UNIX_2000))


def gathered(*messages):
    changes = Changes(COLUMNS, 100)
    for at, message in enumerate(messages, 101):
        changes.take(at, message, TABLE)
    return changes


BEGIN = Message(b"B" + struct.pack(">qqI", 0, 0, 1))


def rows(raw):
    return [(r["_op"], r["id"], r["v"]) for r in raw.batch.to_pylist()]


def test_columns_go_by_name_and_an_update_of_the_key_deletes_the_old_one():
    changes = gathered(
        described("more", "v", "id"),
        BEGIN,
        change(b"I", (b"N", (0, "a", 1))),
        change(b"U", (b"K", (None, None, 1)), (b"N", (0, None, 2))),
        change(b"D", (b"K", (None, None, 2))),
        commit(200, 5),
    )
    raw = changes.taken(changes.position)
    assert rows(raw) == [("put", 1, "a"), ("delete", 1, None), ("put", 2, None), ("delete", 2, None)]
    assert (raw.offset, raw.end, raw.offsets.tolist()) == (100, 200, [199] * 4)
    order = raw.batch.column("_position").to_pylist()
    assert order == sorted(set(order))


def test_what_is_not_committed_waits():
    changes = gathered(
        described("id", "v"),
        BEGIN,
        change(b"I", (b"N", (1, "a"))),
        commit(150),
        BEGIN,
        change(b"I", (b"N", (2, "b"))),
    )
    first = changes.taken(changes.position)
    changes.take(160, commit(170), TABLE)
    second = changes.taken(changes.position)
    assert (rows(first), rows(second)) == ([("put", 1, "a")], [("put", 2, "b")])
    assert (first.end, second.offset, second.end) == (150, 150, 170)


def test_a_large_value_that_was_not_touched_is_taken_from_the_row_before():
    changes = gathered(
        described("id", "v"), BEGIN, change(b"U", (b"O", (1, "long")), (b"N", (1, ...))), commit(150)
    )
    assert rows(changes.taken(150)) == [("delete", 1, "long"), ("put", 1, "long")]


def test_commits_are_never_told_earlier_than_those_before():
    changes = gathered(
        described("id", "v"),
        BEGIN,
        change(b"I", (b"N", (1, "a"))),
        commit(150, 20),
        BEGIN,
        change(b"I", (b"N", (2, "b"))),
        commit(170, 10),
    )
    times = changes.taken(170).batch.column("_committed")
    assert times[0] == times[1]


def test_other_tables_of_the_publication_are_passed_over():
    other = Message(described("id").__dict__["_data"].replace(b"public\0t\0", b"public\0u\0"))
    changes = gathered(other, BEGIN, change(b"I", (b"N", (1,))), commit(150))
    raw = changes.taken(150)
    assert (rows(raw), raw.end) == ([], 150)
