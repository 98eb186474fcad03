"""User-defined modules in the law suite: kinds, windows, clipping and stamping, pairwise."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Any

from udm_modules import MODULES, Merging, plain

from caesura.errors import CaesuraError
from caesura.ops.windows import Count, Frame, Grid, Session, Snapshot, Windows
from caesura.testing import oracles
from caesura.testing.case import LawCase
from caesura.testing.oracles.windows import windowed
from caesura.testing.spec import InputSpec

INTS = InputSpec({"id": "key", "v": "int"}, key="id", max_rows=4)
FRAMES: dict[str, tuple[Frame, tuple[Any, ...]]] = {
    "tumbling": (Grid(5, 5, -1), ("grid", 5, 5, -1)),
    "hopping": (Grid(6, 4, 1), ("grid", 6, 4, 1)),
    "gaps": (Grid(3, 5), ("grid", 3, 5, 0)),
    "snapshot": (Snapshot(), ("snapshot",)),
    "start2": (Count(2, "start"), ("count_start", 2)),
    "end2": (Count(2, "end"), ("count_end", 2)),
    "session": (Session(3), ("session", 3, None)),
    "limited": (Session(4, 6), ("session", 4, 6)),
}
LINGER = {"tumbling": 5, "hopping": 6, "gaps": 5, "snapshot": 1, "session": 3, "limited": 6}
"""How long past its end a row may be in an open window; count windows wait for more rows instead."""
CLIPS = ("none", "left", "right", "full")
STAMPS = ("aligned", "unchanged", "clipped", "point_at_end", "time_bound")


def case(module: str, frame: str, clip: str, stamp: str, spec: InputSpec = INTS, more: str = "") -> LawCase:
    """One combination."""
    made, oracle = FRAMES[frame]
    use = (Merging if module == "Merging" else MODULES[module])("v")
    what: dict[str, Any] = {"outputs": (("w", use),)} if use.module.kind == "uda" else {"apply": use}

    def build(a: Any) -> Windows:
        return Windows(inputs=(a,), group=("id",), frame=made, clip=clip, stamp=stamp, **what)  # type: ignore[arg-type]

    def expected(a: Any, patterns: Any) -> Any:
        return windowed(
            a,
            ("id",),
            oracle,
            lambda members, start, end: plain(module, members, start, end),
            clip=clip,
            stamp=stamp,
            timed=use.module.timed,
            horizon=oracles.horizon(patterns[0]),
        )

    waits = use.module.timed and clip in ("none", "left")
    bounded = not waits and frame in LINGER
    return LawCase(
        f"{module}-{frame}-{clip}-{stamp}{more}",
        build=build,
        oracle=expected,
        inputs=(spec,),
        state_bound=(lambda live: 40 * live[0] + 8) if bounded else None,
        linger=LINGER.get(frame, 0),
    )


def allowed(one: LawCase) -> bool:
    """Whether the plan can be built at all, and its modules stamp no row before its window."""
    _, frame, clip, stamp = one.name.split("-")
    inside = FRAMES[frame][0].belongs == "start" or clip in ("left", "full")
    if stamp == "unchanged" and not inside:
        return False
    try:
        one.plan()
    except CaesuraError:
        return False
    return True


EVERY = [case(m, f, c, s) for m in MODULES for f in FRAMES for c in CLIPS for s in STAMPS]
ALLOWED = [one for one in EVERY if allowed(one)]


def pairwise_sample() -> list[LawCase]:
    """Allowed cases such that every pair of choices that can occur does."""
    todo: set[tuple[Any, ...]] = set()
    parts = {one.name: tuple(enumerate(one.name.split("-"))) for one in ALLOWED}
    pairs = {n: {(a, b) for a in p for b in p if a < b} for n, p in parts.items()}
    for some in pairs.values():
        todo |= some
    chosen: list[LawCase] = []
    while todo:
        best = max(ALLOWED, key=lambda one: len(pairs[one.name] & todo))
        todo -= pairs[best.name]
        chosen.append(best)
    return chosen


STEPS = [
    case(module, frame, clip, stamp, replace(INTS, insert_only=True, max_rows=6), "-inserts")
    for module, clip, stamp in (
        ("Total", "none", "aligned"),
        ("Different", "none", "point_at_end"),
        ("Weighing", "none", "aligned"),
        ("Weighing", "full", "aligned"),
        ("Keeping", "full", "clipped"),
        ("Keeping", "none", "clipped"),
        ("spread", "none", "aligned"),
    )
    for frame in ("tumbling", "hopping")
]
POINTS = replace(INTS, insert_only=True, lifetimes="points", max_rows=6)
STEPS += [case(m, "hopping", "none", "aligned", POINTS, "-points") for m in ("Merging", "Total", "Different")]
"""What only comes, under modules that keep states: sliding ones, and one per window."""
CASES = pairwise_sample() + STEPS
BUCKETS = dict(zip([one.name for one in CASES], cycle((1, 2, 5)), strict=False))
