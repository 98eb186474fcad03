"""`bucket(attr, size, slide, origin)`: one row per window of an ordered attribute, with its number `wid`.

     b  | v |     bucket("b", size=10)      wid b  v
     3  | x | +          ->                  0  3  x
     12 | y | +                              1  12 y

Window w holds the values from origin + w * slide on, ``size`` of them. The origin is declared, never
taken from the first event. (The BUCKET of the feedback thesis.)

Laws: punctuation on the attribute becomes punctuation on `wid` for the windows that it closes whole; a
pattern on `wid` says exactly which values of the attribute it means.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError, StreamError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.kernels.hashing import I64
from caesura.plan import Node, Operator, Properties, definite
from caesura.punctuation import NOTHING, Pattern, Values, between, ge, lt

WID = "wid"
MOST_PIECES = 50_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Bucket(Node):
    """Numbers the windows that each row's attribute falls into."""

    attr: str
    size: int
    slide: int
    origin: int = 0

    kind = "bucket"
    row_wise = True

    def output_schema(self) -> pa.Schema:
        t = self.column(self.attr).type
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
        if WID in self.inputs[0].schema.names:
            raise PlanError(f"there is a column '{WID}' already.", remedy="Rename it before bucket.")
        return pa.schema([*self.inputs[0].schema, pa.field(WID, pa.int64())])

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """The pattern itself; on the attribute alone (and time) also as the windows it closes whole."""
        return pattern

    def closed(self, pattern: Pattern) -> Pattern | None:
        """A pattern that bounds the attribute from above, as the windows that it closes whole."""
        cuts = pattern[self.attr].cuts if self.attr in pattern.attributes else ()
        if self.attr not in pattern.attributes:
            return None
        values = pattern[self.attr]
        if not self._from_the_start(values) or not cuts:
            return None
        limit = self._plain(cuts[0][0])
        upto = limit + 1 if values.contains(cuts[0][0]) else limit
        return pattern.replace(self.attr, None).replace(WID, lt(self._closes(upto))) if upto else None

    def _from_the_start(self, values: Values) -> bool:
        return bool(values.low)

    def _plain(self, value: Any) -> int:
        t = self.inputs[0].schema.field(self.attr).type
        if isinstance(value, int):
            return value
        return int(pa.scalar(value, t).cast(pa.int64() if not pa.types.is_date32(t) else pa.int32()).as_py())

    def _closes(self, upto: int) -> int:
        """Windows below this number hold only values below ``upto``."""
        return (upto - self.origin - self.size) // self.slide + 1

    def lower(self, wid: int) -> int:
        """The least value of window ``wid``."""
        return self.origin + wid * self.slide

    def values_of(self, wids: Values) -> Values:
        """Exactly the values of the attribute that fall into no other windows than these... of them."""
        raise NotImplementedError

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return (wanted - {WID}) | {self.attr}

    def operator(self) -> Operator:
        return Bucketing(self)

    def describe(self) -> str:
        return f"{self.attr} by {self.size} every {self.slide} from {self.origin}"
