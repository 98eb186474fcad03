"""A stream that obeys what the sources declare and makes an unsafe plan's state grow.

Values grow with time, and each tick is followed by all the punctuation that the schemes have. At even
ticks all sources give a row with the same values, which meet in joins; at odd ticks one of them in turn
gives a row that meets none. So whatever is not freed piles up. A source that ends, such as a table, does
so after its first row. A step that holds everything back hides what would grow behind it; and where only a
burst of rows in one page makes state grow, none comes here.

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
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caesura.contracts.analysis import Step, longest
from caesura.contracts.samples import sample_value
from caesura.contracts.verdict import Verdict
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.punctuation import INFINITY, TIME, Pattern, Punctuation, le, lt, one_of
from caesura.punctuation.template import Template

SOME_END = 3
"""One in so many events ends, also where none needs to: some steps give nothing for one that never does."""
RECENT = 12
"""For so many ticks a value goes on being named where time is promised value by value."""


@dataclass(frozen=True)
class _Shape:
    """How a witness looks."""

    repeat: int
    """How often each row comes, one instant after the other, before its values are promised."""
    rows_per_tick: int
    """How many rows with values of their own come at an instant."""

    def numbers(self, tick: int) -> range:
        return range(tick * self.rows_per_tick, (tick + 1) * self.rows_per_tick)


def witness(verdict: Verdict, events: int, *, repeat: int = 1) -> Iterator[tuple[str, Item]]:
    """A stream that obeys what the sources declare and makes an unsafe plan grow.

    Parameters
    ----------
    verdict
        What `check` said of the plan.
    events
        How many events each source gives.
    repeat
        How often each value comes.

    Returns
    -------
    Iterator
        Pairs of a source's name and an item, in the order in which they are to be fed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura import contracts
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
    >>> verdict = contracts.check(counts.node)
    >>> [name for name, item in contracts.witness(verdict, 2)]
    ['clicks', 'clicks', 'clicks', 'clicks']
    """
    sources = [step for step in verdict.steps if step.origin is not None]
    shape = _Shape(repeat, max((_rows_per_tick(step) for step in verdict.steps), default=1))
    for tick in range(events):
        going = [step for step in sources if tick == 0 or not _ends(step)]
        alone = (tick // 2) % len(sources)
        for instant in range(tick * repeat, (tick + 1) * repeat):
            for number, step in enumerate(sources):
                if step in going and (tick % 2 == 0 or number == alone):
                    yield step.source, _event(step, tick, instant, shape)
        for step in going:
            for template in step.scheme:
                yield step.source, Punctuation(_promise(step, template, tick, shape))


def _ends(step: Step) -> bool:
    return any(not template.marked for template in step.scheme)


def _rows_per_tick(step: Step) -> int:
    """How many rows at a time are more than a step works off, where it has a budget for each item."""
    budget = getattr(step.node, "budget", None)
    return 8 * budget if isinstance(budget, int) and step.derived.unmet else 1


def _event(step: Step, tick: int, instant: int, shape: _Shape) -> Page:
    schema, rows_per_tick = step.node.schema, shape.rows_per_tick
    arrays = [pa.array([sample_value(f.type, n) for n in shape.numbers(tick)], f.type) for f in schema]
    endless = step.ends == "never" and instant % SOME_END != SOME_END - 1
    end = INFINITY if endless else instant + (longest(step.properties) or 1)
    return Page.of(
        pa.RecordBatch.from_arrays(arrays, schema=schema),
        le=[instant] * rows_per_tick,
        re=[end] * rows_per_tick,
    )


def _promise(step: Step, template: Template, tick: int, shape: _Shape) -> Pattern:
    constraints: dict[str, Any] = {}
    for name, mark in template.marked.items():
        if name == TIME:
            constraints[name] = lt((tick + 1) * shape.repeat)
            continue
        first = max(0, tick - RECENT) if template[TIME] == "+" else tick
        recent = [n for t in range(first, tick + 1) for n in shape.numbers(t)]
        some = [sample_value(step.node.schema.field(name).type, number) for number in recent]
        constraints[name] = le(some[-1]) if mark == "+" else one_of(some)
    return Pattern.of(constraints)
