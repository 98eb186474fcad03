"""What aggregates over groups and windows look like: their columns, and grids that hold nothing."""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.kernels.grid import LONGEST, PIECES_LIMIT
from caesura.ops.aggregate.kinds import Aggregate, result_field
from caesura.plan import Node
from caesura.punctuation import Pattern


def check_grid(size: int, hop: int) -> None:
    """Refuses windows without length, and hops that do not move on."""
    if size <= 0:
        raise PlanError(
            f"a window of {size} ticks can hold no event.",
            remedy="Give a positive size, like 10 ticks or '10s'.",
        )
    if hop <= 0:
        raise PlanError(
            f"windows every {hop} ticks would never move on.", remedy="Give a positive hop, like '1s'."
        )
    if max(size, hop) > LONGEST:
        raise PlanError(
            f"windows of {size} ticks every {hop} are longer than windows can be, which is {LONGEST} ticks.",
            remedy="Take totals() for one result over all time, or a shorter window.",
        )


def check_pieces(total: int, size: int) -> None:
    """Refuses a page whose events are in too many windows."""
    if total > PIECES_LIMIT:
        raise StreamError(
            f"events of one page overlap {total:,} windows of {size} ticks.",
            remedy="Take larger windows, or bound the lifetimes first with set_duration.",
        )


def aggregate_schema(
    node: Node, group: tuple[str, ...], aggregates: tuple[tuple[str, Aggregate], ...]
) -> pa.Schema:
    """The group's columns, then one column per aggregate."""
    if not aggregates:
        raise PlanError("nothing is aggregated.", remedy="Name at least one, for example n=cz.count().")
    fields = [node.column(name) for name in group]
    schema = node.inputs[0].schema
    fields += [result_field(name, a, schema, node.time) for name, a in aggregates]
    return pa.schema(fields)


def of_groups(pattern: Pattern, group: tuple[str, ...]) -> bool:
    """Whether a pattern speaks of whole groups, and of time."""
    return pattern.time_bound is not None and set(pattern.without_time().attributes) <= set(group)


def can_name(schema: pa.Schema, columns: tuple[str, ...]) -> bool:
    """Whether a pattern can name values of these columns: it cannot name lists, maps and structs."""
    return not any(pa.types.is_nested(schema.field(name).type) for name in columns)
