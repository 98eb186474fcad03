"""Which steps may stand on a loop: those that are speculation-friendly (section 3.3).

A step on a loop must not wait for punctuation, because the loop's own punctuation waits for the step
(S2), and must not move a change to an earlier time, because then no guess could be confirmed (S3).
"""

from __future__ import annotations

from caesura.errors import PlanError
from caesura.expr import reads_time
from caesura.fixpoint.node import Fixpoint, Keep
from caesura.ops.clip import Clip
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.union import Union
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


WHOLE = "what it gives stands for several rows, found in different rounds"
ALONE: dict[str, tuple[int, ...]] = {"left": (0,), "right": (1,), "anti": (0,)}
"""Joins that give rows which meet nothing: where the loop may enter them."""


def refuse_depthless(body: Node, loop: str, *, once: bool) -> None:
    """Refuses a step that cannot say how deep its rows' derivations are; ``once``: rows count once."""
    circle = on_loop(body, loop)
    for node in walk(body):
        if reason := _depthless(node, circle.get(node.fingerprint, ()), once):
            what = "keeps rows once" if once else "counts rounds"
            raise PlanError(
                f"'{node.step}' ({node.place}) stands on a loop that {what}, and {reason}.",
                remedy=_remedy(node, once),
            )


def _depthless(node: Node, ports: tuple[int, ...], once: bool) -> str:
    """Why there is no depth behind a step; empty where there is one."""
    if not ports:
        return ""
    match node:
        case Select() | Where() | Union() | Lifetime():
            return ""
        case Layers(count="distinct") if once:
            return ""
        case Fixpoint():
            return "a loop within it derives rows in rounds of its own"
        case Clip():
            return WHOLE
        case Join(how="inner"):
            return ""
        case Join(how="semi"):
            return "" if once or ports == (0,) else WHOLE
        case Join(how="full"):
            return "a row from outside that meets nothing has no round"
        case Join():
            return "" if ports == ALONE[node.how] else "a row that meets nothing has no round"
    return WHOLE


def _remedy(node: Node, once: bool) -> str:
    bounded = "bound the loop by a counter or a visited set in its own columns"
    if isinstance(node, Fixpoint):
        return f"Make one loop of both, with a dict of seeds; or let the outer one keep all, and {bounded}."
    aside = "Put it before the loop or behind it"
    return f"{aside}." if once else f"{aside}; or leave max_rounds out, and {bounded}."
