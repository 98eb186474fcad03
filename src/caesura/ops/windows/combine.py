"""Mergeable modules over all rows or skewed keys: a state per bucket first, then what those make together."""

from __future__ import annotations

from dataclasses import replace

from caesura.errors import PlanError
from caesura.ops.aggregate.combine import not_split
from caesura.ops.lifetimes import Lifetime
from caesura.ops.windows.frames import Grid
from caesura.ops.windows.node import Windows
from caesura.plan import Node
from caesura.udm import Use
from caesura.udm.shares import meeting, share_of


def combined(node: Windows) -> Node | None:
    """The same rows from one state per bucket, key and window; None where states do not merge."""
    frame = node.frame
    if node.scattered or (node.group and not node.skewed) or not _merges(node):
        return None
    assert isinstance(frame, Grid)
    uses = [(name, one) for name, one in node.outputs if isinstance(one, Use)]
    try:
        parts = tuple((name, share_of(one)) for name, one in uses)
    except PlanError as error:
        raise error.at(node.step, node.place) from None
    node, split = replace(node, skewed=False), node.skewed
    whole = tuple((name, meeting(one, name)) for name, one in uses)
    each: Node = replace(node, outputs=parts, scattered=True, skewed=split)
    if frame.hop == frame.size:
        return replace(node, inputs=(each,), outputs=whole)
    each = Lifetime(inputs=(each,), rule="points_at_start", name=node.step, place=node.place)
    met = replace(node, inputs=(each,), outputs=whole, frame=Grid(frame.hop, frame.hop, frame.offset))
    return Lifetime(inputs=(met,), rule="set_duration", amount=frame.size, name=node.step, place=node.place)


def _merges(node: Windows) -> bool:
    """Whether shares of a window make the whole."""
    plain = node.apply is None and node.first is None and node.stamp == "aligned" and not node.timed
    if not plain or not isinstance(node.frame, Grid) or not node.stepwise:
        return False
    return all(isinstance(one, Use) and one.module.traits.mergeable for _, one in node.outputs)


def check_skewed(node: Windows) -> None:
    """Refuses windows and modules that must see all rows of a key in one place."""
    if not isinstance(node.frame, Grid):
        raise PlanError(
            f"skewed=True: where {node.frame.kind} windows lie depends on all rows of a key.",
            remedy="Take tumbling or hopping windows, or leave skewed=True out.",
        )
    for name, one in node.outputs:
        if isinstance(one, Use) and not one.module.traits.mergeable:
            raise not_split(name, f"uda '{one.module.name}'")
    if not all(isinstance(one, Use) for _, one in node.outputs):
        raise PlanError(
            "skewed=True: aggregates of your own and built-in ones are put together in different ways.",
            remedy="Compute them in two steps and join them, or leave skewed=True out.",
        )
    if not _merges(node):
        raise PlanError(
            "skewed=True: these modules, or their stamps, read the times of all rows of a key.",
            remedy="Take stamp='aligned' and modules that read no times, or leave skewed=True out.",
        )
