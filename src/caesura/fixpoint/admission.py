"""Which steps may stand on a loop: those that are speculation-friendly (section 3.3).

A step on a loop must not wait for punctuation, because the loop's own punctuation waits for the step
(S2), and must not move a change to an earlier time, because then no guess could be confirmed (S3).
"""

from __future__ import annotations

from caesura.errors import PlanError
from caesura.expr import reads_time
from caesura.fixpoint.node import Fixpoint, Keep
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.where import Where
from caesura.plan import Node, walk
from caesura.plan.loops import on_loop

REMEDIES = {
    "tumbling": "Window the input before it enters the loop, or use snapshot(), which moves nothing.",
    "hopping": "Window the input before it enters the loop, or use snapshot(), which moves nothing.",
    "session": "Window the input before it enters the loop.",
    "totals": "Aggregate what comes out of the loop, or use group_by(...).snapshot() inside.",
    "chop": "Cut lifetimes before the loop or behind it.",
    "qre": "Match over what comes out of the loop, or write the pattern with cz.automaton.",
}


def refuse_steps(body: Node, loop: str, *, keep: Keep | None) -> None:
    """Refuses a loop with a step on it that may not stand there."""
    circle = on_loop(body, loop)
    for node in walk(body):
        if node.fingerprint not in circle:
            continue
        if not node.forward:
            raise PlanError(
                f"'{node.step}' ({node.place}) stands on the loop, and {_reason(node)}.",
                remedy=REMEDIES.get(node.kind, "Do this before the loop or behind it."),
            )
        if keep is not None:
            _refuse_losing(node, circle[node.fingerprint])
            _refuse_whole(node)


def _reason(node: Node) -> str:
    if node.kind in ("totals", "chop", "qre", "output"):
        return "it waits for punctuation that only the loop itself could give"
    return "it gives changes at an earlier time than they come in at"


def _refuse_losing(node: Node, ports: tuple[int, ...]) -> None:
    """A loop that keeps distinct or best rows must only gain when its own rows gain."""
    monotone = True
    if isinstance(node, Join):
        preserved = {"left": (1,), "right": (0,), "full": (0, 1), "anti": (1,)}.get(node.how, ())
        monotone = not set(ports) & set(preserved) and node.kind == "join"
    elif isinstance(node, Layers):
        monotone = 1 not in ports
    elif isinstance(node, Fixpoint):
        monotone = node.keep is None or not node.keep.value
    elif node.kind == "snapshot":
        monotone = False
    if not monotone:
        raise PlanError(
            f"'{node.step}' ({node.place}) may take rows away when the loop finds more, "
            "so there is no one least result.",
            remedy="Put it behind the loop, or keep every derivation and bound the loop by a counter.",
        )


def _refuse_whole(node: Node) -> None:
    """Rows that count once go around in pieces, so no step may look at where they start and end."""
    match node:
        case Lifetime(rule="shift" | "extend"):
            return
        case Lifetime():
            pass
        case Where() if reads_time(node.predicate):
            pass
        case Select() if any(reads_time(expr) for _, expr in node.columns):
            pass
        case _:
            return
    raise PlanError(
        f"'{node.step}' ({node.place}) looks at whole lifetimes, and rows that count once have none on the "
        "loop: they hold instant by instant.",
        remedy="Do this before the loop or behind it, or keep every derivation.",
    )
