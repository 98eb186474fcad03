"""The law of claims: where a query claims, its output is that of the claimed prefix, computed from scratch.

`check_claims` plays a trial of a law case under a way of making claims and a random schedule, and holds
each claimed state against the case's oracle on the claimed prefix alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from caesura.consistency import Claim, Mode, Prefix, broken_order
from caesura.consistency.token import is_token, number_of
from caesura.events import History, Item, Page, draw
from caesura.expr import lit
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.plan import Node
from caesura.punctuation import Intent, Promises
from caesura.runtime import Query
from caesura.testing.case import LABELS, LawCase
from caesura.testing.host import OUT, schedule_of
from caesura.testing.laws import Trial, as_history
from caesura.testing.spec import plain_rows


def first_items(items: Sequence[Item], prefix: Prefix) -> list[Item]:
    """The items of a prefix: so many rows and punctuations from the beginning of a stream."""
    out: list[Item] = []
    left = prefix.items
    for item in items:
        size = len(item) if isinstance(item, Page) else 1
        if left <= 0:
            break
        if isinstance(item, Page) and size > left:
            item = item.slice(0, left)
        out.append(item)
        left -= size
    return out


def states(items: Sequence[Item]) -> dict[int, list[Item]]:
    """What had left by each claim, by its number."""
    found: dict[int, list[Item]] = {}
    so_far: list[Item] = []
    for item in items:
        if is_token(item):
            found[number_of(item)] = list(so_far)
        else:
            so_far.append(item)
    return found


def twice(node: Node) -> Node:
    """A plan whose rows come out by two ways of different length."""
    return Union(inputs=(node, Where(inputs=(node,), predicate=lit(True) == lit(True))))


def check_claims(trial: Trial, mode: Mode, *, capacity: int = 8) -> list[Claim]:
    """Plays a trial with two ways to the output; every claimed state is the oracle's on its prefix."""
    plan = twice(trial.plan)
    query = Query({OUT: plan}, schedule=schedule_of(trial.schedule), capacity=capacity, claims=mode)
    for position, (number, item) in enumerate(trial.fed):
        query.feed(LABELS[number], item)
        if position not in trial.waits:
            query.run()
    query.run()
    given = [trial.given(number) for number in range(len(trial.case.inputs))]
    came = states(query.take(OUT))
    for claim in query.claims:
        check_time(trial, claim, given)
        wanted = twofold(trial.case, given, claim, plan)
        got = History.of(came[claim.number], plan.schema)
        if got != wanted:
            missing, extra = wanted.difference(got)
            lost = [f"only wanted: {row}" for row in missing] + [f"only got: {row}" for row in extra]
            out = draw(came[claim.number], schema=plan.schema)
            raise trial.broken("claims", f"{mode}: {claim}", *lost, "came out:", out)
    back = broken_order(query.claims)
    if back is not None:
        raise trial.broken("claims", f"{back} takes back part of the prefix of the one before it")
    return query.claims


def check_time(trial: Trial, claim: Claim, given: Sequence[Sequence[Item]]) -> None:
    """A synchronised claim's prefixes have all promised its time, and what they say is what was recorded."""
    for number, items in enumerate(given):
        prefix = claim.prefix[LABELS[number]]
        promised = Promises(
            i.pattern
            for i in first_items(items, prefix)
            if not isinstance(i, Page) and i.intent is Intent.DEFINITE
        )
        if promised.cti != Promises(prefix.definite).cti or (
            claim.time is not None and promised.cti < claim.time
        ):
            raise trial.broken("claims", f"{claim}: input {number + 1} has promised {promised}")


def twofold(case: LawCase, given: Sequence[Sequence[Item]], claim: Claim, plan: Node) -> History:
    """What the oracle says of a claimed prefix, each row twice."""
    some = [first_items(items, claim.prefix[LABELS[n]]) for n, items in enumerate(given)]
    rows = [plain_rows(items, spec.schema.names) for items, spec in zip(some, case.inputs, strict=True)]
    fed = [(n, item) for n, items in enumerate(some) for item in items]
    once = case.expected(rows, fed)
    return as_history([*once, *once], plan)
