"""A stream that obeys what the sources declare and makes an unsafe plan's state grow.

Values grow with time, and each tick is followed by all the punctuation that the schemes have. At even
ticks all sources give a row with the same values, which meet in joins; at odd ticks one of them in turn
gives a row that meets none. So whatever is not freed piles up. A source that ends, such as a table, does
so after its first row.

>>> import pyarrow as pa
>>> from caesura.contracts.check import check
>>> from caesura.events import draw
>>> from caesura.ops.aggregate import Aggregate, Totals
>>> from caesura.ops.input import Input
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> plan = Totals(inputs=(clicks,), group=("id",), aggregates=(("n", Aggregate("count")),))
>>> print(draw([item for _, item in witness(check(plan, advise=False), events=2)]))
 LE  RE  | id |
  0  inf | 0  | +
-- definite: time < 1 --
  1  inf | 1  | +
-- definite: time < 2 --
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from caesura.contracts.analysis import Step, longest
from caesura.contracts.samples import sample_value
from caesura.contracts.verdict import Verdict
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.punctuation import INFINITY, TIME, Pattern, Punctuation, le, lt, one_of
from caesura.punctuation.template import Template

RECENT = 12
"""For so many ticks a value goes on being named where time is promised value by value."""


def witness(verdict: Verdict, events: int) -> Iterator[tuple[str, Item]]:
    """Items for each source, by its name, in the order in which they are to be fed."""
    sources = [step for step in verdict.steps if step.origin is not None]
    for tick in range(events):
        going = [step for step in sources if tick == 0 or not _ends(step)]
        alone = (tick // 2) % len(sources)
        for number, step in enumerate(sources):
            if step in going and (tick % 2 == 0 or number == alone):
                yield step.source, _event(step, tick)
        for step in going:
            for template in step.scheme:
                yield step.source, Punctuation(_promise(step, template, tick))


def _ends(step: Step) -> bool:
    return any(not template.marked for template in step.scheme)


def _event(step: Step, tick: int) -> Page:
    schema = step.node.schema
    arrays = [pa.array([sample_value(f.type, tick)], f.type) for f in schema]
    end = INFINITY if step.ends == "never" else tick + (longest(step.properties) or 1)
    return Page.of(pa.RecordBatch.from_arrays(arrays, schema=schema), le=[tick], re=[end])


def _promise(step: Step, template: Template, tick: int) -> Pattern:
    constraints: dict[str, Any] = {}
    for name, mark in template.marked.items():
        if name == TIME:
            constraints[name] = lt(tick + 1)
            continue
        recent = range(max(0, tick - RECENT), tick + 1) if template[TIME] == "+" else (tick,)
        some = [sample_value(step.node.schema.field(name).type, number) for number in recent]
        constraints[name] = le(some[-1]) if mark == "+" else one_of(some)
    return Pattern.of(constraints)
