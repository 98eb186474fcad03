"""Reads the rows that a `RowState` saved, without the operator that saved them.

>>> import numpy as np
>>> from caesura.events.rows import RowState
>>> rows = RowState({"le": np.int64}, pa.schema([("id", pa.int64())]))
>>> _ = rows.append({"le": np.array([5, 6])}, pa.record_batch({"id": [1, 2]}))
>>> first = rows.snapshot()
>>> rows.kill(np.array([0]))
>>> stored_rows({**first, **rows.snapshot()}).to_pylist()
[{'le': 6, 'id': 2}]
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from caesura.events.arrow_bytes import first_batch
from caesura.events.rows import MARK

RUN = re.compile(r"\d{6}/\d{6}[rx]")
"""How the chunks of a row state are called: generation, number, rows or tombstones."""


def is_run(name: str) -> bool:
    """Whether a chunk is part of a row state."""
    return RUN.fullmatch(name) is not None


def stored_rows(chunks: Mapping[str, bytes | None]) -> pa.Table:
    """The rows that live: of every row its last version, without those that died."""
    batches: list[pa.RecordBatch] = []
    where: dict[int, int] = {}
    count = 0
    for name in sorted(chunks):
        data = chunks[name]
        if data is None:
            continue
        batch = first_batch(data)
        numbers = batch.column(0).to_pylist()
        if name.endswith("x"):
            for number in numbers:
                where.pop(number, None)
            continue
        where.update(zip(numbers, range(count, count + len(numbers)), strict=True))
        count += len(numbers)
        batches.append(batch)
    if not batches:
        return pa.table({})
    places = pa.array(np.fromiter((where[number] for number in sorted(where)), np.int64, len(where)))
    table = pa.Table.from_batches(batches).take(places).drop_columns([batches[0].schema.names[0]])
    return table.rename_columns([name.removeprefix(MARK) for name in table.column_names])
