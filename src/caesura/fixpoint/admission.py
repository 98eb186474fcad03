"""Which steps may stand on a loop: those that are speculation-friendly (section 3.3).

A step on a loop must not wait for punctuation, because the loop's own punctuation waits for the step
(S2), and must not move a change to an earlier time, because then no guess could be confirmed (S3).
"""

from __future__ import annotations

from caesura.errors import PlanError
from caesura.fixpoint.node import Fixpoint, Keep
from caesura.plan import Node, walk
from caesura.plan.loops import on_loop
from caesura.plan.roles import OnLoop


def refuse_steps(body: Node, loop: str, *, keep: Keep | None) -> None:
    """Refuses a loop with a step on it that may not stand there."""
    circle = on_loop(body, loop)
    for node in walk(body):
        if node.fingerprint not in circle:
            continue
        if not node.forward:
            raise PlanError(
                f"'{node.step}' ({node.place}) stands on the loop, and {_reason(node)}.",
                remedy=node.loop_remedy,
            )
        if keep is not None:
            role = node.on_loop(circle[node.fingerprint], once=True)
            _refuse_losing(node, role)
            _refuse_whole(node, role)


def _reason(node: Node) -> str:
    if node.waits:
        return "it waits for punctuation that only the loop itself could give"
    return "it gives changes at an earlier time than they come in at"


def _refuse_losing(node: Node, role: OnLoop) -> None:
    """A loop that keeps distinct or best rows must only gain when its own rows gain."""
    if not role.monotone:
        raise PlanError(
            f"'{node.step}' ({node.place}) may take rows away when the loop finds more, "
            "so there is no one least result.",
            remedy="Put it behind the loop, or keep every derivation and bound the loop by a counter.",
        )


def _refuse_whole(node: Node, role: OnLoop) -> None:
    """Rows that count once go around in pieces, so no step may look at where they start and end."""
    if role.reads_lifetimes:
        raise PlanError(
            f"'{node.step}' ({node.place}) looks at whole lifetimes, and rows that count once have none on "
            "the loop: they hold instant by instant.",
            remedy="Do this before the loop or behind it, or keep every derivation.",
        )


def refuse_depthless(body: Node, loop: str, *, once: bool) -> None:
    """Refuses a step that cannot say how deep its rows' derivations are; ``once``: rows count once."""
    circle = on_loop(body, loop)
    for node in walk(body):
        ports = circle.get(node.fingerprint, ())
        if ports and (reason := node.on_loop(ports, once=once).no_depth):
            what = "keeps rows once" if once else "counts rounds"
            raise PlanError(
                f"'{node.step}' ({node.place}) stands on a loop that {what}, and {reason}.",
                remedy=_remedy(node, once),
            )


def _remedy(node: Node, once: bool) -> str:
    bounded = "bound the loop by a counter or a visited set in its own columns"
    if isinstance(node, Fixpoint):
        return f"Make one loop of both, with a dict of seeds; or let the outer one keep all, and {bounded}."
    aside = "Put it before the loop or behind it"
    return f"{aside}." if once else f"{aside}; or leave max_rounds out, and {bounded}."
