"""The oracle of `Top`: at every instant, the rows alive then, sorted; counted as layers per row and ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from caesura.ops.top import Order, Rank, Top
from caesura.testing.oracles.rows import Row, Rows, key, same
from caesura.testing.oracles.rows import place as placed
from caesura.testing.oracles.steps import StepInputs, recomputes


def top(
    rows: Rows,
    n: int | None,
    by: Sequence[tuple[Callable[[Row], Any], bool]],
    *,
    group: Sequence[str] = (),
    ranks: Sequence[tuple[str, Rank]] = (),
) -> Rows:
    """The first n rows of each group at every instant; ``by`` has values and whether they descend."""
    groups: dict[Any, Rows] = {}
    for row in rows:
        groups.setdefault(key(row[2], group), []).append(row)
    return [made for members in groups.values() for made in _of_group(members, n, by, ranks)]


def _of_group(rows: Rows, n: int | None, by: Sequence[Any], ranks: Sequence[tuple[str, Rank]]) -> Rows:
    ordered = _sorted(rows, by)
    times = sorted({t for le, re, _ in rows for t in (le, re)})
    layers: dict[Any, list[int]] = {}
    payloads: dict[Any, Any] = {}
    made: Rows = []
    for t in times:
        counts: dict[Any, int] = {}
        for le, shown in _at(ordered, t, n, by, ranks):
            name = (le, same(shown))
            counts[name] = counts.get(name, 0) + 1
            payloads[name] = shown
        for name in [*layers, *(c for c in counts if c not in layers)]:
            starts = layers.setdefault(name, [])
            while len(starts) < counts.get(name, 0):
                starts.append(t)
            while len(starts) > counts.get(name, 0):
                made.append((starts.pop(), t, payloads[name]))
    return made


def _at(ordered: Rows, t: int, n: int | None, by: Sequence[Any], ranks: Sequence[tuple[str, Rank]]) -> Any:
    return _ranked([row for row in ordered if row[0] <= t < row[1]], n, by, ranks)


def first_of(rows: Rows, n: int | None, by: Sequence[Any], ranks: Sequence[tuple[str, Rank]]) -> list[Any]:
    """The first n of some rows, with their ranks."""
    return [shown for _, shown in _ranked(_sorted(rows, by), n, by, ranks)]


def _ranked(rows: Rows, n: int | None, by: Sequence[Any], ranks: Sequence[tuple[str, Rank]]) -> Any:
    orders = [tuple(sortable(value(row)) for value, _ in by) for row in rows]
    for place, (le, _, payload) in enumerate(rows[:n]):
        found = {
            "row_number": place + 1,
            "rank": orders.index(orders[place]) + 1,
            "dense_rank": len(set(orders[: place + 1])),
        }
        yield le, {**payload, **{name: found[kind] for name, kind in ranks}}


def _sorted(rows: Rows, by: Sequence[Any]) -> Rows:
    """By the order, then by start, values, and the later end first: one stable sort after another."""
    found = sorted(rows, key=lambda row: -row[1])
    found.sort(key=lambda row: tuple(sortable(v) for v in row[2].values()))
    found.sort(key=lambda row: row[0])
    for value, descending in reversed(by):
        found.sort(key=lambda row: sortable(value(row)), reverse=descending)
    return found


def sortable(value: Any) -> Any:
    """A value that sorts: null is the least, NaN the greatest."""
    if value is None:
        return (0, 0, 0)
    if isinstance(value, float) and value != value:
        return (1, 1, 0)
    if isinstance(value, str):
        return (1, 0, value.encode())
    if isinstance(value, list | dict):
        return (1, 0, placed(value))
    return (1, 0, value + 0.0 if isinstance(value, float) else value)


@recomputes(Top)
def _top(node: Top, given: StepInputs) -> Rows:
    rows = top(given.rows[0], node.n, readers(node.order, given.values), group=node.group, ranks=node.ranks)
    if node.up_to is None:
        return rows
    name, greatest = node.up_to
    return [row for row in rows if row[2][name] <= greatest]


def readers(orders: Sequence[Order], values: Any) -> list[tuple[Callable[[Row], Any], bool]]:
    """What reads the values of an order from rows, and whether they descend."""

    def read(expr: Any) -> Callable[[Row], Any]:
        return lambda row: values.of(expr, row[2], row[0], row[1])

    return [(read(order.value), order.descending) for order in orders]
