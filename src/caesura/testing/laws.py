"""The laws that every operator obeys, checked on random legal streams.

Each check stands alone on a `Trial` (what is fed, and how) and its `TrialRun` (what came out);
`check_laws` draws a trial and makes them all.

>>> from caesura.testing.case import LawCase
>>> from caesura.testing.spec import InputSpec
>>> case = LawCase("identity", lambda a: a, lambda a, **_: a, (InputSpec({"id": "key"}, key="id"),))
>>> trial = Trial(case, case.undraw([("a", " LE RE | id |\\n 1 4 | 7 | +\\n-- 3 --\\n-- definite: * --")]))
>>> check_all(trial)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from caesura.errors import StreamError
from caesura.events import History, Item, Page, draw, violations
from caesura.events.history import Row
from caesura.plan import Node
from caesura.punctuation import INFINITY, Intent, Pattern, Promises
from caesura.runtime.query.result import delivered
from caesura.testing.case import LABELS, Fed, LawCase
from caesura.testing.host import OUT, Host, Pace, RunningPlan, embedded
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import PunctuationKind, plain_rows
from caesura.testing.strategies import KINDS, interleaved, streams


class LawError(AssertionError):
    """A law does not hold; says which, on what, and how."""


@dataclass
class Trial:
    """What is fed in which order, and how it is run."""

    case: LawCase
    fed: Fed
    schedule: int = 0
    pace: Pace = "arrival"
    waits: frozenset[int] = frozenset()
    """Positions behind which the query is not run: items queue up."""
    saves: tuple[int, int, int] = (0, 0, 0)
    """Positions of two snapshots; a fresh query goes on from the second, and again from the third."""
    host: Host = embedded

    @cached_property
    def plan(self) -> Node:
        return self.case.plan()

    def start(self) -> RunningPlan:
        return self.host(self.plan, self.schedule, self.pace)

    def given(self, number: int) -> list[Item]:
        """What one input is fed."""
        return [item for n, item in self.fed if n == number]

    @cached_property
    def expected(self) -> History:
        """What must come out."""
        specs = self.case.inputs
        rows = [plain_rows(self.given(i), spec.schema.names) for i, spec in enumerate(specs)]
        return as_history(self.case.expected(rows, self.fed), self.plan)

    def broken(self, law: str, *lines: str) -> LawError:
        """The failure of a law, with all that it takes to see it again."""
        how = f"schedule {self.schedule}, pace {self.pace}, waits {sorted(self.waits)}, saves {self.saves}"
        head = f"{self.case.name}: the law of {law} does not hold ({how})"
        return LawError("\n".join([head, "", "fed:", self.drawn(), "", *lines]))

    def drawn(self) -> str:
        """The input as drawn streams, in the order fed."""
        parts = []
        for number, some in groupby(self.fed, key=lambda pair: pair[0]):
            text = draw([item for _, item in some], schema=self.case.inputs[number].schema)
            parts.append(f"[{LABELS[number]}]\n{text}")
        return "\n".join(parts)


@dataclass
class TrialRun:
    """What came out, and what was held, after each item fed."""

    outs: list[list[Item]] = field(default_factory=list)
    state: list[dict[str, int]] = field(default_factory=list)

    @property
    def items(self) -> list[Item]:
        return [item for out in self.outs for item in out]


def play(trial: Trial) -> TrialRun:
    """Feeds a trial to its plan, and notes what happens."""
    run, query = TrialRun(), trial.start()
    try:
        for position, (number, item) in enumerate(trial.fed):
            query.feed(LABELS[number], item)
            if position not in trial.waits:
                query.run()
            run.outs.append(list(query.take(OUT)))
            run.state.append({step: c.state_rows for step, c in query.counters().items()})
        return run
    except Exception as error:
        error.add_note(
            str(trial.broken("meaning", "it raised instead", draw(run.items, schema=trial.plan.schema)))
        )
        raise


def as_history(rows: Rows, node: Node) -> History:
    """An oracle's rows under a node's output schema; a missing column is null."""
    names = node.schema.names
    strangers = {name for _, _, p in rows for name in p} - set(names)
    if strangers:
        raise ValueError(f"the oracle gives columns that the plan does not: {sorted(strangers)}")
    return History.from_rows([(le, re, tuple(p.get(n) for n in names)) for le, re, p in rows], node.schema)


def check_meaning(trial: Trial, items: Sequence[Item], law: str = "meaning") -> None:
    """Law 1: the history that came out is the oracle's."""
    wanted = trial.expected
    try:
        got = History.of(items, trial.plan.schema)
    except StreamError as error:
        raise trial.broken(law, str(error), "came out:", draw(items, schema=trial.plan.schema)) from error
    if got != wanted:
        missing, extra = wanted.difference(got)
        shown = ["wanted:", repr(wanted), "got:", repr(got)]
        lost = [f"only wanted: {row}" for row in missing] + [f"only got: {row}" for row in extra]
        out = ["came out:", draw(items, schema=trial.plan.schema)]
        raise trial.broken(law, *shown, *lost, *out)


def check_truth(trial: Trial, items: Sequence[Item], law: str = "truth") -> None:
    """Law 2: no item contradicts a definite punctuation before it."""
    lies = violations(items)
    if lies:
        out = draw(items, schema=trial.plan.schema)
        raise trial.broken(law, *(str(lie) for lie in lies), "came out:", out)


def check_liveness(trial: Trial, run: TrialRun) -> None:
    """Law 3: output punctuation follows input punctuation, to the very end."""
    ins = [Promises() for _ in trial.case.inputs]
    out = Promises()
    for position, (number, item) in enumerate(trial.fed):
        _promise(ins[number], [item])
        _promise(out, run.outs[position])
        if trial.case.liveness is None or position in trial.waits:
            continue
        least = trial.case.liveness(tuple(p.cti for p in ins))
        if out.cti < least:
            where = f"after item {position + 1} the output's CTI is {out.cti}; wanted at least {least}"
            raise trial.broken("liveness", where, "came out:", draw(run.items, schema=trial.plan.schema))
    if all(p.covers(Pattern()) for p in ins) and not out.covers(Pattern()):
        raise trial.broken("liveness", f"at the end the output promises only {out}")


def check_thrift(trial: Trial, run: TrialRun) -> None:
    """Law 4: state is bounded by what may still change, and gone at the end."""
    lives = [_Live() for _ in trial.case.inputs]
    for position, (number, item) in enumerate(trial.fed):
        lives[number].take(item)
        held = sum(run.state[position].values())
        if trial.case.state_bound is None or position in trial.waits or not held:
            continue
        counts = _live_rows(lives, trial.case.linger)
        bound = trial.case.state_bound(counts)
        if held > bound:
            where = (
                f"after item {position + 1}, with live rows {counts}, {held} rows are held; wanted <= {bound}"
            )
            raise trial.broken("thrift", where, str(run.state[position]))
    closed = all(live.promises.covers(Pattern()) for live in lives)
    if closed and run.state and any(run.state[-1].values()):
        raise trial.broken("thrift", f"at the end there is state: {run.state[-1]}")


def check_prefix(trial: Trial, run: TrialRun) -> None:
    """Nothing before an output CTI changes once it is given."""
    schema = trial.plan.schema
    final = History.of(run.items, schema)
    given, so_far = Promises(), list[Item]()
    for item in run.items:
        so_far.append(item)
        before = given.cti
        _promise(given, [item])
        if before < given.cti < INFINITY:
            was, now = History.of(so_far, schema).before(given.cti), final.before(given.cti)
            if was != now:
                lost = [f"gone: {row}" for row in (was - now)] + [f"new: {row}" for row in (now - was)]
                raise trial.broken("the frozen prefix", f"before the CTI {given.cti}", *lost)


def check_final(trial: Trial) -> None:
    """`final` has delivered what `marked` has marked, after every item.

    Rows without end are left aside: `final` sends their starts before anything can be marked.
    """
    run, noted = (_delivered(trial, mode) for mode in ("final", "marked"))
    schema = trial.plan.schema
    sent, marks = list[Item](), list[Item]()
    for position, (out, marked) in enumerate(zip(run.outs, noted.outs, strict=True)):
        sent += out
        marks += [replace(p, settled=False) for p in marked if isinstance(p, Page) and p.settled]
        if position in trial.waits:
            continue
        got, wanted = (_ended(History.of(items, schema)) for items in (sent, marks))
        if got != wanted:
            late, early = wanted - got, got - wanted
            lost = [f"only marked: {row}" for row in late] + [f"only delivered: {row}" for row in early]
            raise trial.broken("finality", f"after item {position + 1}", *lost)


def _ended(history: History) -> Counter[Row]:
    return Counter({row: n for row, n in history.bag.items() if row[1] < INFINITY})


def _delivered(trial: Trial, mode: Literal["final", "marked"]) -> TrialRun:
    """A trial's run under one way of output, at the pace that users of it get."""
    made = replace(trial, pace="watermark" if mode == "final" else "arrival")
    made.__dict__["plan"] = delivered(trial.plan, mode)
    return play(made)


def check_recovery(trial: Trial) -> None:
    """Law 7 in process: fresh queries go on from snapshots, and nothing shows."""
    query, items = trial.start(), list[Item]()
    chunks: dict[str, bytes] = {}
    first, second, third = sorted(trial.saves)
    for position, (number, item) in enumerate(trial.fed):
        for restart in [r for at, r in ((first, False), (second, True), (third, True)) if at == position]:
            if position not in trial.waits:
                query.run()
            items += query.take(OUT)
            query = _saved(trial, query, chunks, restart=restart)
        query.feed(LABELS[number], item)
        if position not in trial.waits:
            query.run()
        items += query.take(OUT)
    check_meaning(trial, items, "recovery")
    check_truth(trial, items, "recovery")
    left = {step: c.state_rows for step, c in query.counters().items() if c.state_rows}
    if left and all(_closed(trial.given(i)) for i in range(len(trial.case.inputs))):
        raise trial.broken("recovery", f"after a restart there is state at the end: {left}")


def _saved(trial: Trial, query: RunningPlan, chunks: dict[str, bytes], *, restart: bool) -> RunningPlan:
    for name, data in query.snapshot().items():
        if data is None:
            chunks.pop(name, None)
        else:
            chunks[name] = data
    if not restart:
        return query
    fresh = trial.start()
    fresh.restore(dict(chunks))
    return fresh


def check_all(trial: Trial) -> None:
    """Every law on one trial: meaning, truth of promises, liveness, state, prefixes, recovery.

    Parameters
    ----------
    trial
        A plan with random inputs, as `draw_trial` gives it.

    Raises
    ------
    AssertionError
        With the law, and what was wanted and got.

    Examples
    --------
    >>> from hypothesis import given, settings, strategies as st
    >>> from caesura.testing.case import LawCase
    >>> from caesura.testing.laws import check_all, draw_trial
    >>> from caesura.testing.spec import InputSpec
    >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
    >>> case = LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(spec,))
    >>> @settings(max_examples=3, deadline=None)
    ... @given(st.data())
    ... def the_laws_hold(data):
    ...     check_all(draw_trial(case, data))
    >>> the_laws_hold()
    """
    run = play(trial)
    check_meaning(trial, run.items)
    check_truth(trial, run.items)
    check_liveness(trial, run)
    check_thrift(trial, run)
    check_prefix(trial, run)
    if trial.schedule % 3 == 0:  # two more runs: for some schedules
        check_final(trial)
    check_recovery(trial)


def draw_trial(
    case: LawCase, data: DataObject, *, kinds: Sequence[PunctuationKind] = KINDS, host: Host = embedded
) -> Trial:
    """A random trial: random deliveries of random histories, interleaved, under a random schedule."""
    given = [data.draw(streams(spec, kinds=kinds))[1] for spec in case.inputs]
    todo = [iter(items) for items in given]
    order = interleaved(
        [len(items) for items in given], data.draw(st.integers(0, 99)) if len(given) > 1 else 0
    )
    last = len(order) - 1
    places = data.draw(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)))
    return Trial(
        case,
        [(n, next(todo[n])) for n in order],
        schedule=data.draw(st.integers(0, 9)),
        pace=data.draw(st.sampled_from(case.paces)),
        waits=data.draw(st.frozensets(st.integers(0, 20), max_size=4)) - {last},
        saves=(min(places[0], last), min(places[1], last), min(places[2], last)),
        host=host,
    )


def check_laws(
    case: LawCase, data: DataObject, *, kinds: Sequence[PunctuationKind] = KINDS, host: Host = embedded
) -> None:
    """Draws a trial of a case and checks every law on it."""
    check_all(draw_trial(case, data, kinds=kinds, host=host))


def check_regressions(case: LawCase, host: Host = embedded, *, each_pace: bool = True) -> None:
    """Every law on the inputs that once broke one, saved and restarted at every place.

    With ``each_pace`` at every place under every pace; without it paces take turns, which takes less time.
    """
    for drawn in case.regressions:
        fed = case.undraw(drawn)
        for turn, pace in enumerate(case.paces):
            first, step = (0, 1) if each_pace else (min(turn, max(0, len(fed) - 1)), len(case.paces))
            for place in range(first, len(fed), step):
                trial = Trial(case, fed, pace=pace, saves=(0, place, place), host=host)
                if place == first:
                    check_all(trial)
                else:  # where it is saved shows in no other law
                    check_recovery(trial)


def _promise(promises: Promises, items: Sequence[Item]) -> None:
    for item in items:
        if not isinstance(item, Page) and item.intent is Intent.DEFINITE:
            promises.add(item.pattern)


def _closed(items: Sequence[Item]) -> bool:
    promises = Promises()
    _promise(promises, items)
    return promises.covers(Pattern())


class _Live:
    """The rows of one input that may still matter: their end is not past what every input promises."""

    def __init__(self) -> None:
        self.promises = Promises()
        self.items: list[Item] = []

    def take(self, item: Item) -> None:
        self.items.append(item)
        _promise(self.promises, [item])

    def count(self, others: int, linger: int) -> int:
        """How many, when the other inputs' CTI is `others` and rows matter some ticks past their end."""
        schema = next((item.schema for item in self.items if isinstance(item, Page)), None)
        if schema is None:
            return 0
        page = History.of(self.items, schema).page
        bound = np.minimum(self.promises.effective_cti(page.payload), others)
        ends = np.minimum(page.re, INFINITY - linger) + linger
        return int(((ends >= bound) & (bound < INFINITY)).sum())


def _live_rows(lives: Sequence[_Live], linger: int) -> tuple[int, ...]:
    slowest = [min([INFINITY, *(o.promises.cti for o in lives if o is not live)]) for live in lives]
    return tuple(live.count(others, linger) for live, others in zip(lives, slowest, strict=True))
