"""`bucket(attr, size, slide, origin)`: one row per window of an ordered attribute, with its number `wid`.

     b  | v |     bucket("b", size=10)      wid b  v
     3  | x | +          ->                  0  3  x
     12 | y | +                              1  12 y

Window w holds the values from origin + w * slide on, ``size`` of them. The origin is declared, never
taken from the first event. (The BUCKET of the feedback thesis.) The attribute may be ``LE``, the start of
events: then promises on time close windows, as far as events that started before may not change any more.

Laws: punctuation on the attribute becomes punctuation on `wid` for the windows that it closes whole; a
pattern on `wid` says exactly which values of the attribute it means.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.events.columns import words
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.kernels.grid import LONGEST, PIECES_LIMIT, spread, tally
from caesura.kernels.hashing import I64
from caesura.plan import FeedbackRule, Holding, Node, Operator, Properties, Translation, definite
from caesura.plan.feedback import LE
from caesura.plan.lifetimes import Unchanged
from caesura.punctuation import (
    INFINITY,
    MIN_TIME,
    NOT_NULL,
    NOTHING,
    Image,
    Pattern,
    SchemaMapping,
    Values,
    ge,
    lt,
)

WID = "wid"


@dataclass(frozen=True, eq=False, kw_only=True)
class Bucket(Node):
    """Numbers the windows that each row's attribute falls into."""

    attr: str
    size: int
    slide: int
    origin: int = 0

    kind = "bucket"

    def output_schema(self) -> pa.Schema:
        t = pa.int64() if self.by_start else self.column(self.attr).type
        if not (pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date32(t)):
            raise PlanError(
                f"bucket on '{self.attr}', which is {t}; its windows need whole steps.",
                remedy="Bucket an integer, a date or a timestamp; scale and cast a fraction first.",
            )
        if self.size <= 0 or self.slide <= 0:
            raise PlanError(
                f"buckets of {self.size} every {self.slide} hold nothing or never move on.",
                remedy="Give a positive size and slide.",
            )
        if max(self.size, self.slide) > LONGEST:
            raise PlanError(
                f"buckets of {self.size} every {self.slide} are longer than buckets can be: {LONGEST}.",
                remedy="Give a shorter size and slide.",
            )
        if abs(self.origin) > INFINITY:
            raise PlanError(
                f"the origin of the buckets is {self.origin}, which no value of '{self.attr}' can be near.",
                remedy="Give an origin within 64 bits; where buckets begin repeats with every slide.",
            )
        if WID in self.inputs[0].schema.names:
            raise PlanError(f"there is a column '{WID}' already.", remedy="Rename it before bucket.")
        return pa.schema([*self.inputs[0].schema, pa.field(WID, pa.int64())])

    @property
    def by_start(self) -> bool:
        """Whether the windows are over the stream's own time: the starts of its events."""
        return self.attr == LE

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def closed(self, pattern: Pattern) -> Pattern | None:
        """A pattern that bounds the attribute from above, as the windows that it closes whole."""
        if self.by_start:
            return self._passed(pattern)
        if self.attr not in pattern:
            return None
        first = next(iter(pattern[self.attr].intervals), None)
        if first is None or first.lo is not None or first.hi is None:
            return None
        upto = self._plain(first.hi) + int(first.hi_closed)
        rest = {name: values for name, values in pattern.items() if name != self.attr}
        return Pattern.of({**rest, WID: self._closed_before(upto)})

    def _passed(self, pattern: Pattern) -> Pattern | None:
        """The windows that time has passed: no event of theirs begins, ends otherwise or goes any more."""
        known, bound = self.inputs[0].properties, pattern.time_bound
        reach = 0 if known.fixed_ends else known.max_duration
        if bound is None or reach is None or not MIN_TIME + reach < bound < INFINITY:
            return None
        return Pattern.of({**dict(pattern.without_time().items()), WID: self._closed_before(bound - reach)})

    def _closed_before(self, upto: int) -> Values:
        """The windows whose every value is below one."""
        return lt((upto - self.origin - self.size) // self.slide + 1)

    def back(self, pattern: Pattern) -> Pattern | None:
        """The rows of the input all of whose windows match: exactly what the pattern takes away there.

        ``wid < n`` becomes ``attr < lower(n)``; of overlapping windows a single one takes nothing away.
        """
        if WID not in pattern:
            return pattern
        spans = NOTHING
        for part in pattern[WID].intervals:
            low = None if part.lo is None else self.lower(part.lo - 1) + self.size
            high = None if part.hi is None else self.lower(part.hi + 1)
            if low is not None and high is not None and low >= high:
                continue
            above = NOT_NULL if low is None else ge(self._value(low))
            below = NOT_NULL if high is None else lt(self._value(high))
            spans = spans.union(above.intersect(below))
        rest = {name: values for name, values in pattern.items() if name != WID}
        known = rest.get(self.attr)
        return Pattern.of({**rest, self.attr: spans if known is None else known.intersect(spans)})

    def lower(self, wid: int) -> int:
        """The least value of a window."""
        return self.origin + wid * self.slide

    def _plain(self, value: Any) -> int:
        if isinstance(value, int):
            return value
        t = self.inputs[0].schema.field(self.attr).type
        whole = pa.int32() if pa.types.is_date32(t) else pa.int64()
        return int(pa.scalar(value, t).cast(whole).as_py())

    def _value(self, plain: int) -> Any:
        if self.by_start:
            return plain
        t = self.inputs[0].schema.field(self.attr).type
        if pa.types.is_integer(t):
            return plain
        whole = pa.int32() if pa.types.is_date32(t) else pa.int64()
        return pa.scalar(plain, whole).cast(t).as_py()

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Window numbers read as values of the attribute (thesis, 4.2.6, corrected)."""
        mapping = SchemaMapping({n: Image(n) for n in self.inputs[0].schema.names}, time=None)
        return (FeedbackRule((Numbered(mapping, Unchanged(), self.inputs[0].properties, self),)),)

    def holds(self) -> tuple[Holding, ...]:
        return ()

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return (wanted - {WID}) | ({self.attr} if not self.by_start else set())

    def operator(self) -> Operator:
        return Bucketing(self)

    def describe(self) -> str:
        return f"{self.attr} by {self.size} every {self.slide} from {self.origin}"


@dataclass(frozen=True)
class Numbered(Translation):
    """As `Translation`, with the window's number as the values of the attribute that fall into it."""

    node: Bucket

    def up(self, pattern: Pattern) -> Pattern | None:
        back = self.node.back(pattern)
        return None if back is None else super().up(back)


class Bucketing(Operator):
    """A page at a time: one copy of a row for each window that it falls into."""

    def __init__(self, node: Bucket) -> None:
        super().__init__()
        self.node = node
        self._place = node.inputs[0].schema.get_field_index(node.attr)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        node = self.node
        values, there = self._values(page)
        first, last = self._numbers(np.where(there, values, values.dtype.type(0)))
        count, total = tally(first, np.where(there, last + 1, first))
        if total > PIECES_LIMIT:
            raise StreamError(f"rows of one page fall into {total:,} buckets.", remedy="Take a longer slide.")
        rows, wid = spread(first, count)
        copies = page.take(rows)
        columns = [*copies.payload.columns, pa.array(wid)]
        return [copies.with_payload(pa.RecordBatch.from_arrays(columns, schema=node.schema))]

    def _values(self, page: Page) -> tuple[Any, Any]:
        """What windows are taken of, and where there is anything."""
        if self.node.by_start:
            return page.le, np.ones(len(page), bool)
        column = page.payload.column(self._place)
        values = words(column)
        values = values if values.dtype == np.uint64 else values.astype(np.int64)
        return values, column.is_valid().to_numpy(zero_copy_only=False)

    def _numbers(self, values: Any) -> tuple[I64, I64]:
        """The first and the last bucket of each value, by parts that stay within 64 bits."""
        node = self.node
        number, over = np.divmod(values, values.dtype.type(node.slide))
        shift, offset = divmod(node.origin, node.slide)
        first = (over.astype(np.int64) - offset - node.size) // node.slide + 1
        last = (over.astype(np.int64) - offset) // node.slide
        whole, low, high = number.astype(np.int64), int(number.min(initial=0)), int(number.max(initial=0))
        least, largest = low - shift + int(first.min(initial=0)), high - shift + int(last.max(initial=0))
        if least < MIN_TIME or max(largest, high) >= INFINITY:
            raise StreamError(
                f"'{node.attr}' is so far from the origin {node.origin} that its bucket has no number.",
                remedy="Give an origin nearer to the values, or a longer slide.",
            )
        return whole - shift + first, whole - shift + last

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return [*definite(self.node.carry(port, pattern)), *definite(self.node.closed(pattern))]
