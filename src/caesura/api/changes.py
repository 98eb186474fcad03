"""Rows with a column of changes, as Delta's change feed has it, become the current row of every key."""

from __future__ import annotations

from collections.abc import Sequence

from caesura.api.stream import Stream
from caesura.expr import col, when
from caesura.io.changes.lake_reader import CHANGE, DELETE, INSERT, VERSION

BEFORE, AFTER = "update_preimage", "update_postimage"
RANK = "_change_rank"


def current(changes: Stream, key: str | Sequence[str], name: str) -> Stream:
    """The current row of every key; of a version's changes of one key the row that it leaves counts.

    What a row was before an update is deleted: the update may have given it another key.
    """
    kind = col(CHANGE)
    leaves = when((kind == INSERT) | (kind == AFTER), 1).otherwise(0)
    ranked = changes.with_columns({RANK: leaves})
    rows = ranked.changelog(
        key,
        op=CHANGE,
        insert=INSERT,
        update=AFTER,
        delete=(DELETE, BEFORE),
        order=(VERSION, RANK),
        name=name,
    )
    return rows.drop(VERSION, RANK)
