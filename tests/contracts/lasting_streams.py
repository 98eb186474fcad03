"""Streams that never stop, for every law case: what a plan holds on them, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import pyarrow as pa
from contract_streams import pool

from caesura.contracts import Scheme
from caesura.contracts.samples import sample_value
from caesura.events import Item, Page
from caesura.events.page import NO_NEW_END
from caesura.ops.input import Input
from caesura.plan import Node, walk
from caesura.punctuation import INFINITY, TIME, Pattern, Punctuation, le, lt, one_of
from caesura.runtime import Query
from caesura.testing.case import LABELS, LawCase
from caesura.testing.spec import DOMAINS, InputSpec

FIRST_TICK = 1000
"""Times and values begin here, so that numbers do not get longer on the way."""
LONGEST = 4
"""The longest life where lives end."""
RECENT = 12
"""For so many ticks a value goes on being named where time is promised value by value."""
ROWS_PER_TICK = 3
Tick = list[tuple[str, Item]]


@dataclass(frozen=True)
class Lasting:
    """What a stream for a law case looks like; the same for each of its inputs."""

    case: LawCase
    marked: frozenset[str]
    """Templates by their form: those of `FORMS`."""
    endless: bool
    """Whether rows may have no end, as far as the case allows that."""
    lag: int = 0

    def schemes(self) -> dict[str, Scheme]:
        """What each input promises."""
        made = {}
        for label, spec in zip(LABELS, self.case.inputs, strict=False):
            templates = sorted(pool(spec), key=lambda t: set(t.payload) == {spec.key})  # of its key, if any
            forms = {_form(t): t for t in templates}
            chosen = [forms[name] for name in sorted(self.marked) if name in forms]
            made[label] = Scheme.of(*(chosen or [forms["time"]]))
        return made

    def lifetimes(self) -> dict[str, int]:
        """How long rows of each input live at most, where that has to be said."""
        told = {} if self.endless else dict.fromkeys(LABELS[: len(self.case.inputs)], LONGEST)
        lives = zip(LABELS, self.case.inputs, strict=False)
        known = {label: LONGEST for label, spec in lives if spec.lifetimes == "finite"}
        points = {n: 1 for n, s in zip(LABELS, self.case.inputs, strict=False) if s.lifetimes == "points"}
        return {**told, **known, **points}

    def ticks(self, count: int) -> Iterator[Tick]:
        """The stream: rows of all inputs, then all punctuation that is true by then."""
        schemes = self.schemes()
        for number in range(count):
            items: Tick = []
            for label, spec in zip(LABELS, self.case.inputs, strict=False):
                items.append((label, self._page(spec, schemes[label], number)))
            for label, spec in zip(LABELS, self.case.inputs, strict=False):
                for template in schemes[label]:
                    told = _promise(template, spec, number, self.lag)
                    items += [] if told is None else [(label, Punctuation(told))]
            yield items

    def _page(self, spec: InputSpec, scheme: Scheme, number: int) -> Page:
        """Rows with values of their own, and others with values that come again; some are corrected."""
        t = FIRST_TICK + number
        closing = {name for template in scheme for name in template.payload}
        changes = []
        for place in range(ROWS_PER_TICK):
            again = place > 0 and not closing
            row = {n: _value(spec, n, number, place, again=again and n != "n") for n in spec.columns}
            row |= {"s": "a"} if self.case.name == "changelog" else {}  # it says whether a row is there
            end = self._end(spec, t, place)
            changes.append((t, end, NO_NEW_END, row))
            if not spec.insert_only and spec.lifetimes != "points" and place == number % 4:
                changes.append((t, end, t + (1 if number % 8 < 4 else 0), row))
        return spec.page(changes)

    def _end(self, spec: InputSpec, t: int, place: int) -> int:
        if spec.lifetimes == "points":
            return t + 1
        if spec.lifetimes == "endless" or (self.endless and spec.lifetimes == "any" and place != 1):
            return INFINITY
        return t + 1 + (t + place) % LONGEST


def _form(template: object) -> str:
    marks = template.marked.items()  # type: ignore[attr-defined]
    return " ".join("time" if n == TIME else f"key{m}" for n, m in marks)


FORMS = (
    frozenset({"time"}),
    frozenset({"key#"}),
    frozenset({"time", "key#"}),
    frozenset({"time key#"}),
    frozenset({"key+"}),
    frozenset({"time", "key+"}),
)


def _value(spec: InputSpec, name: str, number: int, place: int, *, again: bool) -> object:
    kind = spec.columns[name]
    if again or pa.types.is_boolean(spec.schema.field(name).type):
        domain = DOMAINS[kind]
        return domain[(number + place) % len(domain)]
    return sample_value(spec.schema.field(name).type, FIRST_TICK + number)


def _promise(template: object, spec: InputSpec, number: int, lag: int) -> Pattern | None:
    told: dict[str, object] = {}
    marked = template.marked  # type: ignore[attr-defined]
    upto = number - lag
    if upto < 0:
        return None
    for name, mark in marked.items():
        if name == TIME:
            told[name] = lt(FIRST_TICK + upto + 1)
            continue
        type_ = spec.schema.field(name).type
        first = max(0, upto - RECENT) if TIME in marked else upto
        some = [sample_value(type_, FIRST_TICK + n) for n in range(first, upto + 1)]
        told[name] = le(some[-1]) if mark == "+" else one_of(some)
    return Pattern.of(told)  # type: ignore[arg-type]


class Held(NamedTuple):
    """What a plan holds: rows of each step, the most in a tick and those left; bytes of checkpoints."""

    rows: list[dict[str, int]]
    bytes: list[int]
    left: dict[str, int]

    def last(self) -> int:
        """Rows of all steps in the end."""
        return sum(self.left.values())

    def totals(self) -> list[int]:
        """Rows of all steps together."""
        return [sum(rows.values()) for rows in self.rows]


SAMPLES = 16


def held(node: Node, stream: Iterator[Tick], count: int) -> Held:
    """Runs a plan for so many ticks."""
    query = Query({"out": node}, unused=LABELS)
    found = Held([], [], {})
    sizes: dict[str, int] = {}
    every = max(1, count // SAMPLES)
    for number, items in enumerate(stream):
        most: dict[str, int] = {}
        for label, item in items:
            query.feed(label, item)
            query.run()
            query.take("out")
            for name, counters in query.counters().items():
                most[name] = max(most.get(name, 0), counters.state_rows)
        found.rows.append(most)
        if number % every == 0:
            sizes |= {name: _size(name, data) for name, data in query.snapshot().items()}
            found.bytes.append(sum(sizes.values()))
    found.left.update({name: counters.state_rows for name, counters in query.counters().items()})
    return found


def _size(name: str, data: bytes | None) -> int:
    """Bytes of a checkpoint's part, but for promises: what is remembered of closed values is said."""
    if data is None or not name.endswith("meta"):
        return len(data or b"")
    state = json.loads(data)["state"]
    return len(json.dumps({k: v for k, v in state.items() if k not in ("promises", "alignment", "given")}))


def labels_of(node: Node) -> set[str]:
    """The inputs that a plan reads."""
    return {step.label for step in walk(node) if isinstance(step, Input)}


def variants(cases: Mapping[str, LawCase], lags: tuple[int, ...] = (0, 3)) -> Iterator[Lasting]:
    """Every case under every form of promises, with lives that end and with lives that do not."""
    for case, form, endless, lag in product(cases.values(), FORMS, (False, True), lags):
        kinds = {spec.lifetimes for spec in case.inputs}
        if (kinds & {"any", "endless"} or not endless) and (endless or "endless" not in kinds):
            yield Lasting(case, form, endless, lag)
