"""How events enter a window and how results leave it: clipping, stamping, and what they allow.

     clip    none, left, right, full         which ends of a member are cut to its window
     stamp   aligned        the window itself
             unchanged      as the operator stamped them; one before the window is refused when it comes
             clipped        as stamped, cut to the window
             point_at_end   a point where the window ends
             time_bound     what was known at each moment: only the future of a change changes

(StreamInsight, sections III.C and V.F; what cannot keep its CTIs is refused.)
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from caesura.errors import PlanError
from caesura.kernels.hashing import I64
from caesura.ops.windows.frames import Count, Frame, Grid, Session
from caesura.punctuation import INFINITY

Clip = Literal["none", "left", "right", "full"]
Stamp = Literal["aligned", "unchanged", "clipped", "point_at_end", "time_bound"]


def clip(how: Clip, le: I64, re: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """The lifetimes of members as a module sees them; an overlap is never empty."""
    if how in ("left", "full"):
        le = np.maximum(le, start)
    if how in ("right", "full"):
        re = np.minimum(re, end)
    return le, re


def reads_ends(how: Clip, timed: bool) -> bool:
    """Whether a result depends on ends beyond the window, which may change after it."""
    return timed and how in ("none", "left")


def stamp(
    how: Stamp, le: I64, re: I64, start: I64, end: I64, low: I64, high: I64
) -> tuple[I64, I64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The lifetimes of rows, and which of them have any."""
    every = np.ones(len(le), np.bool_)
    if how == "aligned":
        return start, end, every
    if how == "point_at_end":
        there = end != INFINITY
        return end, np.where(there, end + there, INFINITY), there
    if how == "unchanged":
        return le, re, le < re
    a, b = (low, high) if how == "time_bound" else (start, end)
    le, re = np.maximum(le, a), np.minimum(re, b)
    return le, re, le < re


def check(frame: Frame, clip: Clip, stamp: Stamp, *, timed: bool, stamps: bool, bound: bool) -> None:
    """Refuses policies that cannot keep their CTIs, or that mean nothing here, and says why."""
    for word, known, what in ((clip, get_args(Clip), "clip"), (stamp, get_args(Stamp), "stamp")):
        if word not in known:
            raise PlanError(f"{what}={word!r} is no policy.", remedy=f"There are: {', '.join(known)}.")
    if stamp in ("unchanged", "clipped") and not stamps:
        raise PlanError(
            f"stamp='{stamp}' keeps the stamps of a module that gives none.",
            remedy="Return list[Event[...]] from a udo, or leave stamp='aligned'.",
        )
    if isinstance(frame, Count) and frame.by == "end" and clip in ("left", "full"):
        raise PlanError(
            f"clip='{clip}' over {frame.kind} windows would empty events that end where their window begins.",
            remedy="Take clip='none' or 'right'.",
        )
    if clip != "none" and not timed:
        raise PlanError(
            f"clip='{clip}' changes lifetimes that nothing here reads.",
            remedy="Leave clip out, or use a time-sensitive module (one that takes Event[...] or window).",
        )
    if stamp == "time_bound":
        _check_time_bound(frame, timed, bound)


def _check_time_bound(frame: Frame, timed: bool, bound: bool) -> None:
    if not bound:
        raise PlanError(
            "stamp='time_bound' needs a module that depends on nothing that happens later.",
            remedy="Declare it: @uda(time_bound=True) or @udo(time_bound=True), and let check_module try it.",
        )
    if isinstance(frame, Count):
        raise PlanError(
            "stamp='time_bound' over count windows: such a window exists only once its last end point has "
            "come, so nothing in it is known in time.",
            remedy="Take stamp='aligned', or another window.",
        )
    if isinstance(frame, Session):
        raise PlanError(
            "stamp='time_bound' over session windows: whether a session lasts over a silence is known only "
            "after it.",
            remedy="Take stamp='aligned' or 'point_at_end', or another window.",
        )
    if timed and not isinstance(frame, Grid):
        raise PlanError(
            f"stamp='time_bound' over {frame.kind} windows with a time-sensitive module: the module sees "
            "where its window ends, which is known only later.",
            remedy="Take tumbling or hopping windows, or a module that looks at payloads only.",
        )
