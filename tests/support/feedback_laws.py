"""Law 6 on random streams: with feedback f the history lies between SR - subset(SR, f) and SR.

Random patterns are assumed, desired, demanded, and some withdrawn, at random moments; the streams that
feed the plan may leave out a random part of what they are told they may. What is missing must be covered,
nothing may be there that would not be there otherwise, and in the end no guard is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from caesura.errors import StreamError
from caesura.events import History, Item, Page, draw
from caesura.events.chunks import Chunks
from caesura.events.history import Row
from caesura.feedback.guard import Guard
from caesura.kernels.hashing import Mask
from caesura.ops.input import Input
from caesura.plan import Node, Properties
from caesura.plan.feedback import Switches
from caesura.plan.node import rebuilt
from caesura.punctuation import (
    INFINITY,
    NOT_NULL,
    NULL,
    Intent,
    Pattern,
    Promises,
    Values,
    between,
    ge,
    le,
    lt,
    one_of,
    value,
)
from caesura.runtime import Query
from caesura.testing.case import LABELS, Fed, LawCase
from caesura.testing.host import OUT, embedded
from caesura.testing.laws import Trial, check_truth, draw_trial
from caesura.testing.spec import DOMAINS, PunctuationKind
from caesura.testing.strategies import KINDS

Act: TypeAlias = tuple[Literal["assume", "desire", "demand", "withdraw", "restart"], Pattern | int]
TICKS = st.integers(-6, 24)


@cache
def value_sets(t: pa.DataType) -> st.SearchStrategy[Values]:
    """Random sets of values of a column's type."""
    some: Sequence[Any] = DOMAINS["name"]
    if pa.types.is_boolean(t):
        return st.sampled_from([value(True), value(False), value(True).complement(), NULL, NOT_NULL])
    if pa.types.is_integer(t):
        some = (0, 1, 2, 3, 7, -3, None)
    elif pa.types.is_floating(t):
        some = (0.0, 1.0, 0.1, -2.5, 2.0, None)
    plain = [v for v in some if v is not None]
    points = st.sampled_from(some).map(value)
    sets = st.lists(st.sampled_from(some), min_size=1, max_size=3).map(one_of)
    bounds = st.tuples(st.sampled_from([lt, ge, le]), st.sampled_from(plain)).map(lambda p: p[0](p[1]))
    other = st.sampled_from(plain).map(lambda v: value(v).complement())
    return st.one_of(points, sets, bounds, other, st.sampled_from([NULL, NOT_NULL]))


@cache
def time_sets() -> st.SearchStrategy[Values]:
    """Random sets of times."""
    ranges = st.tuples(TICKS, st.integers(0, 9)).map(lambda p: between(p[0], p[0] + p[1]))
    bounds = st.tuples(st.sampled_from([lt, ge]), TICKS).map(lambda p: p[0](p[1]))
    return st.one_of(bounds, ranges, TICKS.map(value))


@cache
def patterns(schema: pa.Schema) -> st.SearchStrategy[Pattern]:
    """Random feedback patterns over a stream."""
    columns = [f for f in schema if _can_be_named(f.type)]
    parts = [st.tuples(st.just(f.name), value_sets(f.type)) for f in columns]
    parts += [st.tuples(st.sampled_from(["LE", "LE", "RE"]), time_sets())]
    some = st.lists(st.one_of(parts), min_size=1, max_size=2)
    return some.map(lambda pairs: Pattern(**dict(pairs)).check(schema, ticks=("LE", "RE")))


def _can_be_named(t: pa.DataType) -> bool:
    return not pa.types.is_nested(t) and not pa.types.is_decimal(t)


class Sieve(Guard):
    """A stream that leaves out a random part of what it may."""

    def __init__(self, schema: pa.Schema, seed: int) -> None:
        super().__init__(schema, Properties())
        self._random = Random(seed)
        self.standing: list[Pattern] = []

    def matches(self, page: Page) -> Mask:
        mask = super().matches(page)
        return mask & np.array([self._random.random() < 0.6 for _ in range(len(page))], np.bool_)


@dataclass
class FeedbackTrial:
    """A trial with feedback: what is sent before which item."""

    trial: Trial
    acts: dict[int, list[Act]]
    thin: int | None
    """The seed by which the inputs leave rows out; None when the plan's own inputs stop them all."""
    sent: list[Pattern] = field(default_factory=list)
    _chunks: Chunks = field(default_factory=dict)

    def play(self) -> tuple[list[Item], Query]:
        """Feeds the trial and sends feedback."""
        query, self.sent, self._chunks = self._start(), [], {}
        sieves = [Sieve(spec.schema, self.thin or 0) for spec in self.trial.case.inputs]
        items: list[Item] = []
        spoken: list[int] = []
        for position, (number, item) in enumerate(self.trial.fed):
            for act in self.acts.get(position, ()):
                if self.thin is not None:
                    self._hear(query, sieves)
                query = self._act(act, query, spoken, items)
            if self.thin is not None:
                self._hear(query, sieves)
                item = sieves[number].stop(item) if isinstance(item, Page) else item
            query.feed(LABELS[number], item)
            if position not in self.trial.waits:
                query.run()
            items += query.take(OUT)
        return items, query

    def _start(self) -> Query:
        query = self.trial.start()
        assert isinstance(query, Query)
        if self.thin is not None:
            for cell in query.graph.cells:
                if not cell.node.inputs:  # the stream itself leaves out what it will
                    cell.feedback.listen().switches = Switches(exploit=False)
        return query

    def _act(self, act: Act, query: Query, spoken: list[int], items: list[Item]) -> Query:
        match act:
            case ("assume", Pattern() as pattern):
                spoken.append(query.assume(pattern).number)
                self.sent.append(pattern)
            case ("desire", Pattern() as pattern):
                query.desire(pattern)
            case ("demand", Pattern() as pattern):
                query.demand(pattern)
            case ("withdraw", int(which)) if spoken:
                query.withdraw(spoken.pop(which % len(spoken)))
            case ("restart", _):
                query.run()
                items += query.take(OUT)
                self._chunks |= query.snapshot()
                self._chunks = {name: data for name, data in self._chunks.items() if data is not None}
                query = self._start()
                query.restore(self._chunks)  # type: ignore[arg-type]
        return query

    def _hear(self, query: Query, sieves: list[Sieve]) -> None:
        for label, sieve in zip(LABELS, sieves, strict=False):
            assumed = [m for m in query.upstream_feedback(label) if m.intent is Intent.ASSUMED]
            for message in assumed:
                if message.noted("withdrawn"):
                    sieve.standing.remove(message.pattern)
                else:
                    sieve.standing.append(message.pattern)
                sieve.replace(sieve.standing)

    def broken(self, *lines: str) -> AssertionError:
        acts = [
            f"before item {at + 1}: {kind} {what}" for at, some in self.acts.items() for kind, what in some
        ]
        return self.trial.broken("feedback", f"thin {self.thin}", *acts, *lines)


def covers(sent: Sequence[Pattern], schema: pa.Schema, rows: Sequence[Row]) -> list[bool]:
    """Per row of a history, whether some feedback covers it."""
    if not rows:
        return []
    page = History.from_rows(rows, schema).page
    columns: dict[str, Any] = dict(zip(schema.names, page.payload.columns, strict=True))
    columns |= {"LE": page.le, "RE": page.re}
    mask = np.zeros(len(rows), np.bool_)
    for pattern in sent:
        mask |= pattern.matches(columns)
    return [bool(b) for b in mask]


def check_feedback(played: FeedbackTrial) -> None:
    """Law 6, law 2, and that guards go."""
    items, query = played.play()
    trial, schema = played.trial, played.trial.plan.schema
    try:
        got = History.of(items, schema)
    except StreamError as error:
        raise played.broken(str(error), "came out:", draw(items, schema=schema)) from error
    wanted = trial.expected
    extra = list((got.bag - wanted.bag).elements())
    left = got.bag.copy()
    lost: list[Row] = []
    for row in wanted.rows():
        key = next(iter(History.from_rows([row], schema).bag))
        if left[key] > 0:
            left[key] -= 1
        else:
            lost.append(row)
    uncovered = [r for r, c in zip(lost, covers(played.sent, schema, lost), strict=True) if not c]
    if extra or uncovered:
        shown = [f"not there without feedback: {r}" for r in extra] + [f"lost: {r}" for r in uncovered]
        out = ["came out:", draw(items, schema=schema), "wanted:", repr(wanted)]
        raise played.broken(*shown, *out)
    check_truth(trial, items, "feedback")
    if all(_closed(trial.given(i)) for i in range(len(trial.case.inputs))):
        _check_rest(played, query)


def check_given_up(case: LawCase, data: DataObject, *, kinds: Sequence[PunctuationKind] = KINDS) -> None:
    """Results that are given up leave no more state than if their input had never come."""
    trial = draw_trial(case, data, kinds=kinds)
    node = trial.plan
    pattern = data.draw(patterns(node.schema))
    at = data.draw(st.integers(0, len(trial.fed)))
    fits = [(rule.means, up) for rule in node.feedback() or () if (up := rule.up(pattern)) is not None]
    if not fits or fits[0][0] != "groups":
        return  # nothing is given up whole
    if {"LE", "RE"} & set(pattern.attributes) and any(map(_endless, trial.fed)):
        return  # rows without end stay where only some of their results are given up
    alone = _on_ports(node)
    pace = "arrival" if trial.pace == "passed" else trial.pace  # what is left decides what has passed
    whole, without = (embedded(alone, trial.schedule, pace) for _ in range(2))
    assert isinstance(whole, Query) and isinstance(without, Query)
    for port, item in _into(node, trial.fed[:at]):
        whole.feed(LABELS[port], item)
        without.feed(LABELS[port], _left(item, fits[0][1][port]))
    whole.run()
    without.run()
    for query in (whole, without):
        query.assume(pattern)
        query.run()
    held = {f"{label} of {node.step}": q.cell(OUT) for label, q in (("state", whole), ("wanted", without))}
    responder = held[f"state of {node.step}"].responder
    if responder is None or responder.pending or responder.operator.counters.feedback.get("too late"):
        return
    for cell in held.values():
        cell.operator.rebuild()  # what windows that are gone leave behind goes when the rest is moved
    rows = [cell.operator.measure().state_rows for cell in held.values()]
    if rows[0] > rows[1]:
        found = dict(zip(held, rows, strict=True))
        raise trial.broken("what is given up is gone", f"after {at} items: assume {pattern}", str(found))


def _on_ports(node: Node) -> Node:
    """A step on inputs of its own, one to a port: streams that come to two ports can be told apart."""
    return rebuilt(
        node,
        tuple(
            Input(label=label, payload=child.schema, time_type=child.time, known=child.properties)
            for label, child in zip(LABELS, node.inputs, strict=False)
        ),
    )


def _into(node: Node, fed: Fed) -> list[tuple[int, Item]]:
    """What comes to each port of a step when its plan is fed."""
    query = Query({LABELS[port]: child for port, child in enumerate(node.inputs)}, unused=LABELS)
    found: list[tuple[int, Item]] = []
    for number, item in fed:
        query.feed(LABELS[number], item)
        query.run()
        found += [(port, each) for port in range(len(node.inputs)) for each in query.take(LABELS[port])]
    return found


def _endless(fed: tuple[int, Item]) -> bool:
    """Whether an item has rows without end."""
    return isinstance(fed[1], Page) and bool((fed[1].re == INFINITY).any())


def _left(item: Item, pattern: Pattern | None) -> Item:
    """An item without the rows that match."""
    if not isinstance(item, Page) or pattern is None:
        return item
    columns: dict[str, Any] = dict(zip(item.schema.names, item.payload.columns, strict=True))
    return item.filter(~pattern.matches({**columns, "LE": item.le, "RE": item.re}))


def _check_rest(played: FeedbackTrial, query: Query) -> None:
    counters = query.counters()
    guards = {
        label: c.feedback["guard state"] for label, c in counters.items() if c.feedback.get("guard state")
    }
    if guards:
        raise played.broken(f"at the end there are guards: {guards}")
    state = {label: c.state_rows for label, c in counters.items() if c.state_rows}
    if state:
        raise played.broken(f"at the end there is state: {state}")


def _closed(items: Sequence[Item]) -> bool:
    promises = Promises()
    for item in items:
        if not isinstance(item, Page):
            promises.add(item.pattern)
    return promises.covers(Pattern())


def draw_feedback(
    case: LawCase, data: DataObject, *, kinds: Sequence[PunctuationKind] = KINDS
) -> FeedbackTrial:
    """A random trial with random feedback."""
    trial = draw_trial(case, data, kinds=kinds)
    places = st.integers(0, max(0, len(trial.fed) - 1))
    assume = st.tuples(st.just("assume"), patterns(trial.plan.schema))
    withdraw = st.tuples(st.just("withdraw"), st.integers(0, 3))
    again = st.tuples(st.just("restart"), st.just(0))
    ask = st.tuples(st.sampled_from(("desire", "demand")), patterns(trial.plan.schema))
    acts: dict[int, list[Act]] = {}
    for at, act in data.draw(
        st.lists(st.tuples(places, st.one_of(assume, assume, assume, ask, withdraw, again)), max_size=5)
    ):
        acts.setdefault(at, []).append(act)
    return FeedbackTrial(trial, acts, data.draw(st.none() | st.integers(0, 5)))


def by_group(node: Node) -> list[str]:
    """The columns by which a step gives results up whole."""
    rules = [rule for rule in node.feedback() or () if rule.means == "groups"]
    names = [f.name for f in node.schema if _can_be_named(f.type)]
    return [name for name in names if any(rule.up(Pattern(**{name: NULL})) for rule in rules)]


def check_withdrawal(case: LawCase, data: DataObject) -> None:
    """What was given up and is wanted again, soon or later, makes nothing up: the law on such feedback."""
    trial = draw_trial(case, data)
    named = [f.name for f in trial.plan.schema if _can_be_named(f.type)]
    name = data.draw(st.sampled_from(by_group(trial.plan) or named))
    pattern = Pattern(**{name: data.draw(value_sets(trial.plan.schema.field(name).type))})
    last = max(0, len(trial.fed) - 1)
    said = data.draw(st.integers(0, last))
    withdrawn = min(last, said + data.draw(st.integers(0, 2)))
    acts: dict[int, list[Act]] = {said: [("assume", pattern)]}
    acts.setdefault(withdrawn, []).append(("withdraw", 0))
    for again in data.draw(st.lists(st.integers(said, last), max_size=1)):
        acts.setdefault(again, []).append(("restart", 0))
    check_feedback(FeedbackTrial(trial, acts, thin=None))


def check_feedback_laws(case: LawCase, data: DataObject, *, kinds: Sequence[PunctuationKind] = KINDS) -> None:
    """Draws a trial of a case with feedback and checks law 6 on it."""
    check_feedback(draw_feedback(case, data, kinds=kinds))
