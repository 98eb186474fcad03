"""Results that are picked out of a multiset: first, last, top-k, quantiles, collect.

>>> from caesura.ops.aggregate.accumulators.multiset import Gathered
>>> two = Gathered(np.array([0, 0, 1]), np.array([3, 1, 1]), pa.array([10, 20, 7]))
>>> quantile(two, 2, 0.5).to_pylist(), last(two, 2).to_pylist()
([10, 7], [20, 7])
>>> collected(two, 2).to_pylist()
[[10, 10, 10, 20], [7]]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.nested import listed, offsets_of
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.accumulators.multiset import Gathered


def _ends(owner: I64, count: int) -> I64:
    """Where each slot's values begin, and where the last one's end."""
    return np.searchsorted(owner, np.arange(count + 1))


def _pick(values: pa.Array, rows: I64, there: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    return values.take(pa.array(rows, mask=~there))


def first(held: Gathered, count: int) -> pa.Array:
    """The first value of each slot."""
    ends = _ends(held.owner, count)
    return _pick(held.values, ends[:-1], ends[:-1] < ends[1:])


def last(held: Gathered, count: int) -> pa.Array:
    """The last value of each slot."""
    ends = _ends(held.owner, count)
    return _pick(held.values, ends[1:] - 1, ends[:-1] < ends[1:])


def _at_rank(held: Gathered, ends: I64, rank: I64) -> I64:
    """The row of the value with this rank, counted from 1 within its slot."""
    total = np.concatenate([[0], np.cumsum(held.n)])
    return np.searchsorted(total, total[ends[:-1]] + rank, side="left") - 1


def quantile(held: Gathered, count: int, q: float) -> pa.Array:
    """The least value that at least this share of the values does not exceed."""
    ends = _ends(held.owner, count)
    total = np.bincount(held.owner, weights=held.n, minlength=count).astype(np.int64)
    rank = np.clip(np.ceil(q * total).astype(np.int64), 1, np.maximum(total, 1))
    return _pick(held.values, _at_rank(held, ends, rank), total > 0)


LEAST_HALF = 2.0**-1020
"""Doubles of this size on have exact halves."""


def interpolated(held: Gathered, count: int, q: float) -> pa.Array:
    """The quantile between the two nearest values, as a double."""
    ends = _ends(held.owner, count)
    total = np.bincount(held.owner, weights=held.n, minlength=count).astype(np.int64)
    place = q * np.maximum(total - 1, 0)
    low = np.floor(place).astype(np.int64)
    some = total > 0
    plain = pc.cast(held.values, pa.float64(), safe=False)
    below = _pick(plain, _at_rank(held, ends, low + 1), some).fill_null(0.0).to_numpy()
    above_rank = np.minimum(low + 2, np.maximum(total, 1))
    above = _pick(plain, _at_rank(held, ends, above_rank), some).fill_null(0.0).to_numpy()
    share = place - low
    with np.errstate(invalid="ignore"):
        mean = (1 - share) * below + share * above  # halves are exact, so that a median is rounded once
        tiny = (share == 0.5) & (np.abs(below) < LEAST_HALF) & (np.abs(above) < LEAST_HALF)
        mean = np.where(tiny, (below + above) / 2, mean)  # halves of these are not
        between = np.where((share == 0) | (below == above), below, mean)
        endless = np.isinf(below) | np.isinf(above)  # from -inf to 5 lies -inf, not inf - inf
        between = np.where(endless & (share > 0), below + above, between)
    return pa.array(between, mask=~some)


def deviation(held: Gathered, count: int) -> pa.Array:
    """The median of the distances from the median, as a double."""
    middle = interpolated(held, count, 0.5).fill_null(0.0).to_numpy()
    with np.errstate(invalid="ignore"):
        away = np.abs(pc.cast(held.values, pa.float64(), safe=False).to_numpy() - middle[held.owner])
    order = np.lexsort((away, held.owner))  # NaN is the greatest
    return interpolated(Gathered(held.owner, held.n[order], pa.array(away[order])), count, 0.5)


def most_frequent(held: Gathered, count: int) -> pa.Array:
    """The value with the most copies in each slot; of several, the first."""
    order = np.lexsort((-held.n, held.owner))
    ends = _ends(held.owner, count)
    there = ends[:-1] < ends[1:]
    return _pick(held.values, order[np.where(there, ends[:-1], 0)] if len(order) else ends[:-1], there)


def top_fields(k: int, t: pa.DataType) -> pa.DataType:
    """The struct that holds the k greatest values, greatest first."""
    return pa.struct([(f"top{i + 1}", t) for i in range(k)])


def top(held: Gathered, count: int, k: int) -> pa.Array:
    """The k greatest values with their copies, greatest first; null where there are fewer."""
    ends = _ends(held.owner, count)
    total = np.bincount(held.owner, weights=held.n, minlength=count).astype(np.int64)
    parts = []
    for place in range(k):
        rank = np.maximum(total - place, 1)
        parts.append(_pick(held.values, _at_rank(held, ends, rank), total > place))
    return pa.StructArray.from_arrays(parts, fields=list(top_fields(k, held.values.type)))


def collected(held: Gathered, count: int) -> pa.Array:
    """All values of each slot in canonical order, as a list."""
    sizes = np.bincount(held.owner, weights=held.n, minlength=count).astype(np.int64)
    copies = held.values.take(pa.array(np.repeat(np.arange(len(held.n)), held.n)))
    return listed(pa.list_(held.values.type), offsets_of(sizes), copies)


def different(held: Gathered, count: int) -> pa.Array:
    """The values of each slot in canonical order, each once, as a list."""
    return collected(Gathered(held.owner, np.ones(len(held.n), np.int64), held.values), count)


def turned(held: Gathered) -> Gathered:
    """The same, the last of each slot first."""
    back = np.lexsort((-np.arange(len(held.owner)), held.owner))
    return Gathered(held.owner, held.n[back], held.values.take(pa.array(back)))


def joined(held: Gathered, count: int, separator: str) -> pa.Array:
    """The texts of each slot in canonical order, joined; null where there is none."""
    texts = pc.binary_join(collected(held, count), pa.scalar(separator, held.values.type))
    there = np.bincount(held.owner, minlength=count) > 0
    return pc.if_else(pa.array(there), texts, pa.scalar(None, texts.type))
