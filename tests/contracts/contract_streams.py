"""Streams that obey a scheme, and what the three guarantees ask of a plan that is fed with them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from stray_punctuation import may_come

from caesura.contracts import Scheme, Template, Verdict, Watch
from caesura.events import Item, Page
from caesura.expr import col
from caesura.ops.aggregate import Aggregate, Totals, Tumbling
from caesura.ops.impute import Impute
from caesura.ops.input import Input
from caesura.ops.join import Join
from caesura.ops.top import Top
from caesura.plan import Node, walk
from caesura.punctuation import INFINITY, NULL, TIME, Intent, Pattern, Punctuation, Values, lt, value
from caesura.runtime import Query
from caesura.testing import oracles
from caesura.testing.case import LABELS, LawCase, cases
from caesura.testing.oracles.rows import Rows, same
from caesura.testing.spec import DOMAINS, InputSpec, plain_rows

for room in ("laws", "windows", "udm", "qre", "fixpoint"):
    sys.path.append(str(Path(__file__).parents[1] / room))
import fixpoint_law_cases  # noqa: E402
import law_cases  # noqa: E402, F401  (registers every operator's case)
import qre_law_cases  # noqa: E402
import udm_law_cases  # noqa: E402
import window_law_cases  # noqa: E402

END = 64
"""No event of a test stream starts or ends so late after its origin, unless it never ends."""
MARKABLE = ("key", "name", "int")
PAIRED = InputSpec({"id": "key", "s": "name", "n": "int"}, lifetimes="finite", max_rows=4)
OTHERS = InputSpec({"id": "key", "s": "name", "m": "key"}, lifetimes="finite", max_rows=4)
COUNTED = {"c": ("count", None)}
BY = ("id", "s")
PART_OF_A_KEY = (
    LawCase(
        "join on two columns",
        build=lambda a, b: Join(inputs=(a, b), on=(("id", "id"), ("s", "s"))),
        oracle=lambda a, b, **_: oracles.join(a, b, on=[("id", "id"), ("s", "s")], how="inner"),
        inputs=(PAIRED, OTHERS),
    ),
    LawCase(
        "left join on two columns",
        build=lambda a, b: Join(inputs=(a, b), on=(("id", "id"), ("s", "s")), how="left"),
        oracle=lambda a, b, **_: oracles.join(a, b, on=[("id", "id"), ("s", "s")], how="left"),
        inputs=(PAIRED, OTHERS),
    ),
    LawCase(
        "totals of two columns",
        build=lambda a: Totals(inputs=(a,), group=BY, aggregates=(("c", Aggregate("count")),)),
        oracle=lambda a, **_: oracles.totals(a, BY, COUNTED),
        inputs=(PAIRED,),
    ),
    LawCase(
        "tumbling by two columns",
        build=lambda a: Tumbling(inputs=(a,), group=BY, size=5, aggregates=(("c", Aggregate("count")),)),
        oracle=lambda a, **_: oracles.tumbling(a, BY, 5, 0, COUNTED),
        inputs=(PAIRED,),
    ),
)
POINTS = InputSpec({"id": "key", "s": "name", "n": "int"}, lifetimes="points", insert_only=True, max_rows=5)
OTHER_POINTS = InputSpec({"id": "key", "m": "key"}, lifetimes="points", insert_only=True, max_rows=5)


def sevens(batch: pa.RecordBatch) -> list[int]:
    return [7] * batch.num_rows


def filled(rows: Rows) -> Rows:
    return [(le, re, {**p, "n": 7 if p["n"] is None else p["n"]}) for le, re, p in rows]


SPEAKING = tuple(
    LawCase(
        f"join, {way}",
        build=lambda a, b, way=way: Join(inputs=(a, b), on=(("id", "id"),), **{way: True}),
        oracle=lambda a, b, **_: oracles.join(a, b, on=[("id", "id")], how="inner"),
        inputs=(POINTS, OTHER_POINTS),
    )
    for way in ("thrifty", "impatient")
)
FILLING = LawCase(
    "impute",
    build=lambda a: Impute(inputs=(a,), value="n", by=sevens, missing=col("n").is_null()),
    oracle=lambda a, **_: filled(a),
    inputs=(POINTS,),
)
EVERYWHERE = (
    *cases(),
    *PART_OF_A_KEY,
    *SPEAKING,
    FILLING,
    *window_law_cases.CASES,
    *udm_law_cases.CASES,
    *qre_law_cases.CASES,
    *fixpoint_law_cases.CASES,
)
CASES = [case for case in EVERYWHERE if not any(spec.origin for spec in case.inputs)]
"""Without those at the ends of time, where a promise up to a time is one for ever, and so of another form."""


def pool(spec: InputSpec) -> list[Template]:
    """Templates that a stream of this shape can be given."""
    names = (TIME, *spec.columns)
    columns = [name for name, kind in spec.columns.items() if kind in MARKABLE]
    marks: list[dict[str, str]] = [{TIME: "+"}]
    marks += [{name: "#"} for name in columns] + [{TIME: "+", name: "#"} for name in columns]
    marks += [{spec.key: "+"}] if spec.key else []
    return [Template.of(names, some) for some in marks]


def late(spec: InputSpec, by: int) -> int:
    """A time behind the origin of a stream; all events of one before the beginning come before it."""
    return min(max(spec.origin, 0) + by, INFINITY)


def obeying(items: Sequence[Item], spec: InputSpec, scheme: Scheme, random: Random) -> list[Item]:
    """The same events with truthful punctuation of the scheme's forms, every event covered at the end."""
    result: list[Item] = []
    for place, item in enumerate(items):
        result.append(item)
        later = [row for rest in items[place + 1 :] for row in changes(rest, spec)]
        for template in scheme:
            if random.random() < 0.5:
                told = promise(template, spec, later, random)
                result += [] if told is None else [Punctuation(told)]
    for end in (END, END + 1):  # what waited for keys to close needs another word on time
        for template in scheme:
            result += [Punctuation(pattern) for pattern in closing(template, spec, end)]
    return result


def changes(item: Item, spec: InputSpec) -> list[dict[str, Any]]:
    """A page's rows with their sync times."""
    if not isinstance(item, Page):
        return []
    rows = item.payload.to_pylist()
    return [{TIME: int(t), **row} for t, row in zip(item.sync, rows, strict=True)]


def promise(
    template: Template, spec: InputSpec, later: list[dict[str, Any]], random: Random
) -> Pattern | None:
    """A pattern of this form that nothing later contradicts."""
    constraints: dict[str, Values] = {}
    for name in template.payload:
        domain = domain_of(spec, name)
        if template[name] == "#":
            constraints[name] = random.choice(domain)
            continue
        coming = [row[name] for row in later]
        if None in coming:
            return None
        constraints[name] = lt(min([*coming, 9])).union(NULL)
    left = [row for row in later if all(v.contains(row[n]) for n, v in constraints.items())]
    if template[TIME] == "+":
        constraints[TIME] = lt(min([row[TIME] for row in left], default=late(spec, 40)))
    elif left:
        return None
    return Pattern.of(constraints)


def domain_of(spec: InputSpec, name: str) -> list[Values]:
    """Every value that a column can have, each alone."""
    return [value(v) for v in DOMAINS[spec.columns[name]]]


def closing(template: Template, spec: InputSpec, end: int) -> Iterator[Pattern]:
    """Patterns of one form that together cover everything up to the end."""
    names = [name for name in template.payload if template[name] == "#"]
    fixed = {n: lt(1000).union(NULL) for n in template.payload if template[n] == "+"}
    if template[TIME] == "+":
        fixed[TIME] = lt(late(spec, end))
    for values in product(*(domain_of(spec, name) for name in names)):
        yield Pattern.of({**fixed, **dict(zip(names, values, strict=True))})


def restricted(rows: Rows, pattern: Pattern) -> Counter[Any]:
    """The piece of a history that a definite punctuation closes."""
    bound = pattern.time_bound
    assert bound is not None
    rest = pattern.without_time()
    piece: Counter[Any] = Counter()
    for le, re, payload in rows:
        if le < bound and rest.matches_row(payload):
            piece[(le, min(re, bound), repr(same(payload)))] += 1
    return piece


def drive(
    node: Node, fed: Sequence[tuple[str, Item]], speculate: Any, unasked: Container[str] = ()
) -> tuple[list[Item], dict[str, int]]:
    """What comes out of a plan, and what its steps hold in the end: rows, and guards but of some inputs."""
    query = Query({"out": node}, speculate=speculate)
    out: list[Item] = []
    for label, item in fed:
        query.feed(label, item)
        query.run()
        out += query.take("out")
    held = {label: counters.state_rows for label, counters in query.counters().items()}
    heard = [cell for cell in query.graph.cells if cell.responder is not None]
    cells = [c for c in heard if not isinstance(c.node, Input) or c.node.label not in unasked]
    return out, held | {f"guards of {cell.label}": cell.responder.state for cell in cells}


def timeless(verdict: Verdict) -> set[str]:
    """The inputs whose declared punctuation never covers a stretch of time.

    A stream that is fed by hand may be given any, so its step puts a guard up; a source would not.
    """
    read = [step for step in verdict.steps if isinstance(step.node, Input)]
    return {s.node.label for s in read if not any(set(t.marked) <= {TIME} for t in s.scheme)}


def always_held(node: Node, fed: Sequence[Item]) -> int:
    """How many rows steps hold whatever is promised: the last ones of all, and the first of open groups."""
    held = 0
    for step in walk(node):
        for hold in step.holds() or ():
            if isinstance(step, Top) and hold.one_per is not None:
                held += hold.each * (step.n or 1) * open_groups(hold.one_per, fed)
            elif hold.one_per == ():
                held += hold.each
    return held


def open_groups(columns: tuple[str, ...], fed: Sequence[Item]) -> int:
    """How many groups came of which more may come at some time."""
    pages = [item for item in fed if isinstance(item, Page)]
    rows = [row for page in pages for row in page.payload.select(columns).to_pylist()] if columns else [{}]
    said = [item.pattern for item in fed if isinstance(item, Punctuation) and item.intent is Intent.DEFINITE]
    closed = [pattern for pattern in said if set(pattern.attributes) <= set(columns)]
    groups = [row for place, row in enumerate(rows) if row not in rows[:place]]
    return sum(not any(pattern.matches_row(row) for pattern in closed) for row in groups)


def guarantees(case: LawCase, verdict: Verdict, fed: list[tuple[int, Item]], pace: Any) -> None:
    """The three guarantees of a contract, on one run of its operator."""
    node, output = verdict.steps[-1].node, verdict.output
    out, held = drive(node, [(LABELS[i], item) for i, item in fed], pace, timeless(verdict))
    assert sum(held.values()) <= always_held(node, [x for _, x in fed]), f"guarantee 2: state stays: {held}"
    watch = Watch(output, tolerates=may_come(verdict.steps))
    watch.see(out)
    assert not watch.strangers, f"guarantee 1, {output}: {watch.report()}"
    waiting = [int(t) for some in watch.open.values() for _, times in some for t in times]
    last = min(late(spec, END - 16) for spec in case.inputs)
    assert all(t >= last for t in waiting), f"guarantee 1, {output}: {watch.report()}"
    given = [plain_rows([x for n, x in fed if n == i], s.schema.names) for i, s in enumerate(case.inputs)]
    names = node.schema.names
    wanted = [(le, re, {n: p.get(n) for n in names}) for le, re, p in case.expected(given, fed)]
    for place, item in enumerate(out):
        if not isinstance(item, Page) and item.intent is Intent.DEFINITE:
            so_far = plain_rows(out[: place + 1], names)
            closed = restricted(so_far, item.pattern)
            assert closed == restricted(wanted, item.pattern), f"guarantee 3: the piece {item.pattern}"
    assert restricted(plain_rows(out, names), Pattern.before(INFINITY)) == restricted(wanted, Pattern())
