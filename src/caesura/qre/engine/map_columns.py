"""Maps as columns: all entries one behind the other, each map a piece of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64
from caesura.qre.compiler.packing import NONE, Scalars

Array = np.ndarray[Any, Any]


@dataclass
class Maps:
    """Maps as rows: map j came at ``rows[j]`` and has the entries from ``starts[j]`` on."""

    rows: I64
    starts: I64
    keys: pa.RecordBatch
    values: pa.Array
    void: I64 = field(default_factory=lambda: NONE)
    """The maps of which an entry has no value: such a map has none."""


def void_maps(starts: I64, scalars: Scalars) -> I64:
    """The maps that have no value, since an entry has none."""
    return np.unique(np.searchsorted(starts, scalars.beyond(), side="right") - 1)


@dataclass
class Syncs:
    """A page's synchronisation items: before which rows, and their columns (one row each, or one for all)."""

    places: I64
    step: int
    gap: int
    columns: list[Array]
