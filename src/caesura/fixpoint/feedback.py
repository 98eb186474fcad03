"""What a loop does when some of its output will be ignored.

     seed ──x──┐                 x: rows of an ignored value stop at both inputs of the loop's end,
               v                    where the value goes around unchanged: they derive no others
     step ──x─ fixpoint ──o──>   o: all other patterns are kept back on the way out only, since
        ^         │                 such rows derive rows that are wanted
        └─────────┘

Law: a row is stopped on its way around only if every row that is derived from it is covered too.

That needs steps whose rows come each from one row of the loop, or from some with the same value. In a
loop where every derivation is a row of its own, what was sent stays, and times are translated too.

A loop that keeps one row of each, or the best per key, replaces rows later. There the value must be part
of the key, so that rows of different values never meet, and all of it is given up at once: as long as the
loop holds a row with the value, what it has sent may have to be corrected, and the seed is not told.
"""

from __future__ import annotations

from caesura.fixpoint.node import Fixpoint
from caesura.plan import FeedbackRule, walk
from caesura.plan.feedback import OUTPUT_ONLY, Translation
from caesura.plan.lifetimes import Inside, Lifetimes, Whole
from caesura.plan.loops import kept_around, on_loop


def loop_rules(loop: Fixpoint) -> tuple[FeedbackRule, ...]:
    """The rule of a loop: by the columns that go around, or at its output alone."""
    lives = _lifetimes(loop)
    columns = kept_around(loop) if lives is not None else ()
    if loop.keep is not None:
        columns = tuple(c for c in columns if c in loop.keys(0) and not loop.across)
        lives = Whole(1) if isinstance(lives, Inside) else Whole()
    if not columns:
        return OUTPUT_ONLY
    ports = tuple(Translation.of(columns, child.properties, lives) for child in loop.inputs)
    return (FeedbackRule(ports, "rows" if loop.keep is None else "groups", "input"),)


def _lifetimes(loop: Fixpoint) -> Lifetimes | None:
    """How rows live beside the seed they are derived from; None where steps do more than add rows."""
    circle = on_loop(loop.inputs[1], loop.loop)
    steps = [(n, circle[n.fingerprint]) for n in walk(loop.inputs[1]) if n.fingerprint in circle]
    if not all(step.on_loop(ports, once=False).adds for step, ports in steps):
        return None
    return Whole() if any(step.moves_time for step, _ in steps) else Inside()
