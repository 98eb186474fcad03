"""Mergeable modules over all rows: a state per bucket first, then what the states make together."""

from __future__ import annotations

from dataclasses import replace

from caesura.errors import PlanError
from caesura.ops.lifetimes import Lifetime
from caesura.ops.windows.frames import Grid
from caesura.ops.windows.node import Windows
from caesura.plan import Node
from caesura.udm import Use
from caesura.udm.shares import meeting, share_of


def combined(node: Windows) -> Node | None:
    """The same rows from one state per bucket and window; None where states do not merge."""
    frame = node.frame
    plain = node.apply is None and node.stamp == "aligned" and not node.timed
    if node.group or node.scattered or not plain or not isinstance(frame, Grid) or not node.stepwise:
        return None
    uses = [(name, one) for name, one in node.outputs if isinstance(one, Use)]
    if len(uses) < len(node.outputs) or not all(one.module.traits.mergeable for _, one in uses):
        return None
    try:
        parts = tuple((name, share_of(one)) for name, one in uses)
    except PlanError as error:
        raise error.at(node.step, node.place) from None
    whole = tuple((name, meeting(one, name)) for name, one in uses)
    each: Node = replace(node, outputs=parts, scattered=True)
    if frame.hop == frame.size:
        return replace(node, inputs=(each,), outputs=whole)
    each = Lifetime(inputs=(each,), rule="points_at_start", name=node.step, place=node.place)
    met = replace(node, inputs=(each,), outputs=whole, frame=Grid(frame.hop, frame.hop, frame.offset))
    return Lifetime(inputs=(met,), rule="set_duration", amount=frame.size, name=node.step, place=node.place)
