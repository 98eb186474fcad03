"""Filters behind windows: which may go in front of them, and which let windows alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from caesura.expr import Column, attributes, col, has_call, pattern_of, reads_time, substitute
from caesura.ops.where import Where, below, on_keys
from caesura.ops.windows.frames import Grid
from caesura.plan import Node
from caesura.udm import Use
from caesura.udm.mapping import mapping

if TYPE_CHECKING:
    from caesura.ops.windows.node import Windows


def pushed(windows: Windows, where: Node) -> Node | None:
    """Whole groups may always go first; rows, where the module says so and windows lie fast."""
    if (keys := on_keys(where, windows, windows.group)) is not None or not isinstance(where, Where):
        return keys
    return _commuted(windows, where) or _bounded(windows, where)


def _bounded(windows: Windows, where: Where) -> Node | None:
    """A filter that keeps small results of a monotone module lets windows that are past it alone."""
    use = windows.outputs[0][1] if len(windows.outputs) == 1 and windows.stepwise else None
    if not isinstance(use, Use) or not use.module.traits.monotone or windows.past is not None:
        return None
    known, name = pattern_of(where.predicate, windows.schema), windows.outputs[0][0]
    if known is None or name not in known or not known[name].intervals:
        return None
    past = known[name].intervals[-1].hi
    if past is None or not windows.inputs[0].properties.insert_only:
        return None
    return replace(where, inputs=(replace(windows, past=past),))


def _commuted(windows: Windows, where: Where) -> Node | None:
    use = windows.apply
    if use is None or not commutes(windows) or has_call(where.predicate):
        return None
    taken = {**{name: col(name) for name in windows.group}, **dict(mapping(use, windows.inputs[0].schema))}
    if reads_time(where.predicate) or not attributes(where.predicate) <= set(taken):
        return None
    return below(where, windows, substitute(where.predicate, taken))


def commutes(windows: Windows) -> bool:
    """Whether leaving rows out of windows leaves out just what a module makes of them."""
    if windows.apply is None or not isinstance(windows.frame, Grid):
        return False
    known = windows.apply.module.traits
    return known.filter_commutes and known.empty_preserving


def passed(windows: Windows) -> tuple[tuple[str, str], ...]:
    """Columns that a module gives on from its rows, where leaving rows out leaves out just those.

    Each with the input's column that it comes from.
    """
    use = windows.apply
    if use is None or not commutes(windows) or use.module.incremental:
        return ()
    here, there = windows.schema, windows.inputs[0].schema
    taken = [(name, e.name) for name, e in mapping(use, there) if isinstance(e, Column)]
    mine = [(name, column) for name, column in taken if name in here.names and name not in windows.group]
    return tuple((n, c) for n, c in mine if here.field(n).type == there.field(c).type)
