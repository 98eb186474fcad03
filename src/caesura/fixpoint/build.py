"""Closes a loop: calls the step on a placeholder, checks what came, and names the loop by what it does.

Equal loops get equal names, so that they run once and a restarted query finds its state again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from caesura.errors import CaesuraError, PlanError
from caesura.fixpoint.admission import refuse_depthless, refuse_steps
from caesura.fixpoint.depth_column import carry_rank
from caesura.fixpoint.node import PROGRESS, Fixpoint, Keep, Progress, Recursive
from caesura.fixpoint.termination import why_it_ends
from caesura.ops.layers import Layers
from caesura.plan import Node, Properties, both, here
from caesura.plan.loops import on_loop
from caesura.plan.node import rebuilt

_open: list[Recursive] = []
"""The placeholders of the loops that are being built, outermost first."""


def fixpoint(
    seed: Node,
    step: Callable[[Node], Node],
    *,
    progress: Progress = "hybrid",
    keep: Keep | None = None,
    max_rounds: int | None = None,
    across: bool = False,
    name: str = "",
) -> Fixpoint:
    """The loop in which ``step`` is applied to the seed and to whatever it gives."""
    try:
        return _closed(seed, step, progress, keep, max_rounds, across, name)
    except CaesuraError as error:
        raise error.at(name or "fixpoint", here()) from None


def _closed(
    seed: Node,
    step: Callable[[Node], Node],
    progress: Progress,
    keep: Keep | None,
    max_rounds: int | None,
    across: bool,
    name: str,
) -> Fixpoint:
    if progress not in PROGRESS:
        raise PlanError(
            f"there is no progress='{progress}'.", remedy=f"Choose one of: {', '.join(PROGRESS)}."
        )
    if max_rounds is not None and max_rounds < 1:
        raise PlanError(f"{max_rounds} rounds derive nothing.", remedy="Allow at least one round.")
    loose = Recursive(loop=f"?{len(_open)}", payload=seed.schema, time_type=seed.time, known=seed.properties)
    body = _stepped(step, loose)
    if keep is None and isinstance(body, Layers) and body.count == "distinct":
        keep, body = Keep(), body.inputs[0]
    _check(body, loose)
    Fixpoint(inputs=(seed, body), loop=loose.loop)  # refuses columns that differ around the loop
    refuse_steps(body, loose.loop, keep=keep)
    if keep is not None or max_rounds is not None:
        refuse_depthless(body, loose.loop, once=keep is not None)
    because = why_it_ends(seed, body, loose.loop, keep=keep, max_rounds=max_rounds)
    made = Fixpoint(
        inputs=(seed, body),
        loop=loose.loop,
        progress=progress,
        keep=keep,
        max_rounds=max_rounds,
        because=because,
        across=across,
        name=name,
    )
    return _named(made, loose)


def _stepped(step: Callable[[Node], Node], loose: Recursive) -> Node:
    _open.append(loose)
    try:
        return step(loose)
    finally:
        _open.pop()


def _check(body: Node, loose: Recursive) -> None:
    if not on_loop(body, loose.loop) and body is not loose:
        raise PlanError(
            "the step does not use the stream it is given, so nothing goes around.",
            remedy="Derive the step's result from its argument, or use union without a loop.",
        )
    if not on_loop(body, loose.loop):
        raise PlanError(
            "the step gives its own input back, so every row goes around for ever.",
            remedy="Join it with another stream, or change and test a column.",
        )
    _refuse_strangers(body, loose)


def _refuse_strangers(node: Node, loose: Recursive) -> None:
    if isinstance(node, Recursive) and node is not loose and node.loop == loose.loop:
        raise PlanError(
            "the step uses the recursive stream of another loop.",
            remedy="Use a recursive stream only inside the step that it was given to.",
        )
    for child in node.inputs:
        _refuse_strangers(child, loose)


def _named(made: Fixpoint, loose: Recursive) -> Fixpoint:
    """The loop under its lasting name, with what is known of its rows."""
    seed, body = made.inputs
    parts = [made.fingerprint, *(str(part) for part in (made.progress, made.keep, made.max_rounds))]
    loop = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    known = _known(seed, body, loose)
    if made.keep is not None:  # rows are taken back, and live no longer than what they are derived from
        known = Properties(max_duration=known.max_duration)
    rec = replace(loose, loop=loop, known=known)
    body = placed(body, loose, rec)
    if made.keep is None and made.max_rounds is None:
        return replace(made, inputs=(seed, body), loop=loop)
    ranked = carry_rank(body, rec)
    return replace(made, inputs=(seed, ranked), loop=loop, ranked=True)


def _known(seed: Node, body: Node, loose: Recursive) -> Properties:
    """What holds for every row of the loop: assumed as strong as the seed, weakened until it holds."""
    known = seed.properties
    for _ in range(4):
        found = both(known, placed(body, loose, replace(loose, known=known)).properties)
        if found == known:
            return known
        known = found
    return known.but(max_duration=None, insert_only=False, points=False, aligned=False, endless=False)


def placed(node: Node, old: Node, new: Node, made: dict[Node, Node] | None = None) -> Node:
    """The same steps with another node in the place of one."""
    made = {} if made is None else made
    if node is old:
        return new
    if node not in made:
        inputs = tuple(placed(child, old, new, made) for child in node.inputs)
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        made[node] = node if same else rebuilt(node, inputs)
    return made[node]
