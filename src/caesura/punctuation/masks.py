"""Which items of an array lie in a set of values, column at a time.

Every cut becomes the first value of the column's type that lies behind it; an item is inside when it has
reached an odd number of them (an even number if the set starts at the bottom).

>>> import numpy as np
>>> from caesura.punctuation.values import between
>>> mask(between(2, 4), np.array([1, 2, 4, 5])).tolist()
[False, True, True, False]
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from caesura.punctuation import kinds
from caesura.punctuation.cuts import Cut

if TYPE_CHECKING:
    from caesura.punctuation.values import Values

Mask = npt.NDArray[np.bool_]

_EXACT = decimal.Context(prec=90)
_PER_UNIT = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}
_MICROSECOND = timedelta(microseconds=1)


def mask(values: Values, array: Any) -> Mask:
    """The mask of an Arrow array (nulls by the set's flag) or of a NumPy array of numbers."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind == "i" and values.kind in ("", "int"):
            return _numbers(values, array.astype(np.int64, copy=False))
        array = pa.array(array)
    if isinstance(array, pa.Int64Array) and values.kind == "int" and not array.null_count:
        return _numbers(values, array.to_numpy())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count == len(array):
        return np.full(len(array), values.null)
    inside = _inside(values, array)
    if array.null_count:
        inside[array.is_null().to_numpy(zero_copy_only=False)] = values.null
    return inside


def _inside(values: Values, array: pa.Array) -> Mask:
    from caesura.punctuation.coercion import fit  # it knows Values, which know masks

    if not values.cuts:
        return np.full(len(array), values.low)
    values = fit(values, array.type)
    if values.kind in ("str", "bytes", "decimal"):
        return _objects(values, array)
    if values.kind == "float":
        return _numbers(values, _filled(array.cast(pa.float64())))
    if values.kind == "bool":
        return _numbers(values, _filled(array.cast(pa.int64())))
    if values.kind == "date":
        return _numbers(values, _filled(array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())))
    if values.kind in ("datetime", "instant"):
        return _numbers(values, _filled(array.cast(pa.int64())), array.type.unit)
    if array.type != pa.uint64():
        array = array.cast(pa.int64())
    return _numbers(values, _filled(array))


def _filled(array: pa.Array) -> npt.NDArray[Any]:
    whole = pc.fill_null(array, 0) if array.null_count else array
    return np.asarray(whole.to_numpy(zero_copy_only=False))


def _numbers(values: Values, items: npt.NDArray[Any], unit: str = "us") -> Mask:
    key = (items.dtype, unit)
    if key not in values.memo:
        bounds = [_number(values.kind, cut, unit) for cut in values.cuts]
        values.memo[key] = _within(values.low, bounds, items.dtype)
    low, starts = values.memo[key]
    return _stepped(low, starts, items)


def _number(kind: str, cut: Cut, unit: str) -> Any:
    """The least number, in the column's own unit, that lies behind a cut."""
    at, side = cut
    match kind:
        case "float":
            if not side:
                return float(at)
            return math.nan if at == math.inf else math.nextafter(at, math.inf)
        case "date":
            return (at - date(1970, 1, 1)).days + side
        case "datetime" | "instant":
            epoch = datetime(1970, 1, 1, tzinfo=UTC if kind == "instant" else None)
            times, per = _PER_UNIT[unit]
            exact = (at - epoch) // _MICROSECOND * times
            return exact // per + 1 if side else -(-exact // per)
    return int(at) + side


def _within(low: bool, bounds: list[Any], dtype: np.dtype[Any]) -> tuple[bool, npt.NDArray[Any]]:
    if dtype.kind == "f":
        return low, np.array(bounds, dtype=dtype)
    least, greatest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    below = sum(bound <= least for bound in bounds)
    kept = [bound for bound in bounds[below:] if bound <= greatest]
    return low ^ bool(below & 1), np.array(kept, dtype=dtype)


def _stepped(low: bool, starts: npt.NDArray[Any], items: npt.NDArray[Any]) -> Mask:
    if len(starts) == 0:
        return np.full(len(items), low)
    if len(starts) == 1:
        odd = _reached(items, starts[0])
    elif len(starts) == 2:
        odd = _reached(items, starts[0]) & ~_reached(items, starts[1])
    else:
        odd = (np.searchsorted(starts, items, side="right") & 1).astype(np.bool_)
    return ~odd if low else odd


def _reached(items: npt.NDArray[Any], start: Any) -> Mask:
    if start != start:
        return np.asarray(np.isnan(items), dtype=np.bool_)
    below = np.less(items, start)  # NaN is below nothing: it has reached every number
    return np.asarray(~below, dtype=np.bool_)


def _objects(values: Values, array: pa.Array) -> Mask:
    array = _plain(array, values.kind)
    if values.kind != "decimal" and len(values.cuts) > 2:
        outside = values.low
        spans = (values.complement() if outside else values).intervals
        if all(span.is_point for span in spans):
            named = pa.array([span.lo for span in spans], type=array.type)
            found = pc.is_in(array, value_set=named).to_numpy(zero_copy_only=False)
            return np.array(~found if outside else found, dtype=np.bool_)
    low, starts = _object_starts(values, array.type)
    if len(starts) > 2:
        items = pc.fill_null(array, pa.scalar(_zero(values.kind), type=array.type))
        boxed = np.empty(len(array), dtype=object)
        boxed[:] = items.to_pylist()
        bounds = np.empty(len(starts), dtype=object)
        bounds[:] = starts
        odd = (np.searchsorted(bounds, boxed, side="right") & 1).astype(np.bool_)
    else:
        odd = np.zeros(len(array), dtype=np.bool_)
        for start in starts:
            reached = pc.fill_null(pc.greater_equal(array, pa.scalar(start, type=array.type)), False)
            odd ^= reached.to_numpy(zero_copy_only=False)
    return ~odd if low else odd


def _plain(array: pa.Array, kind: str) -> pa.Array:
    if kind == "decimal" or pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        return array
    return array.cast(pa.string() if kind == "str" else pa.binary())


def _zero(kind: str) -> Any:
    return {"str": "", "bytes": b"", "decimal": decimal.Decimal(0)}[kind]


def _object_starts(values: Values, type_: pa.DataType) -> tuple[bool, list[Any]]:
    after: Callable[[Cut], Cut]
    if values.kind == "decimal":
        after = lambda cut: _on_grid(cut, type_)  # noqa: E731
    else:
        end: Any = "\0" if values.kind == "str" else b"\0"
        after = lambda cut: (cut[0] + end if cut[1] else cut[0], 0)  # noqa: E731
    low, cuts = kinds.settle(values.kind, values.low, [after(cut) for cut in values.cuts])
    return low, [at for at, _ in cuts]


def _on_grid(cut: Cut, type_: pa.DataType) -> Cut:
    """The first decimal behind a cut that the column's precision and scale can hold."""
    at, side = cut
    if at.is_infinite():
        return kinds.TOP if at > 0 else kinds.BOTTOM
    scaled = _EXACT.scaleb(at, type_.scale)
    rounding = decimal.ROUND_FLOOR if side else decimal.ROUND_CEILING
    whole = int(scaled.to_integral_value(rounding=rounding)) + side
    if abs(whole) >= 10**type_.precision:
        return kinds.TOP if whole > 0 else kinds.BOTTOM
    return (_EXACT.scaleb(decimal.Decimal(whole), -type_.scale), 0)
