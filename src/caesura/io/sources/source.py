"""The step that reads: where rows come from, what shape they have, and what the source promises.

>>> from caesura.io import delay, from_rows
>>> source = from_rows([{"ts": 1, "id": 7}], time="ts", punctuate=delay(5))
>>> print(source.describe())
rows, time 'ts' (point); gives time: 5 behind the latest event of the slowest lane; all at the end of input
>>> source.schema.names, source.properties.points, source.declares
(['id'], True, ('time',))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError, closest
from caesura.events import plain_schema
from caesura.events.types import plain_type
from caesura.io.ingress.ingress import Rules, SourceIngress
from caesura.io.ingress.policy import Policy, at_end
from caesura.io.ingress.refusals import Lateness
from caesura.io.ingress.shape import Shape
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.pruning import Pruning
from caesura.plan import (
    OUTPUT_ONLY,
    OWN,
    FeedbackRule,
    Holding,
    Need,
    Node,
    Properties,
    Raw,
    SourceBatch,
    SourceNode,
)
from caesura.plan.node import unchecked
from caesura.punctuation import Pattern
from caesura.punctuation.scheme import Scheme, check_scheme
from caesura.punctuation.template import Template


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(SourceNode):
    """A source of the embedded engine."""

    reader: Reader
    shape: Shape
    policy: Policy = field(default_factory=at_end)
    late: Lateness = "reject"
    limit: int | None = None
    """How many late rows are kept at most until they are asked for, the latest; all are counted."""

    kind: ClassVar[str] = "read"

    def __post_init__(self) -> None:
        if self.policy.node is not None and not self.inputs:
            object.__setattr__(self, "inputs", (self.policy.node,))
        super().__post_init__()

    def output_schema(self) -> pa.Schema:
        raw = self.reader.schema
        time = self.shape.check(raw)
        object.__setattr__(self, "_time", time)
        if self.limit is not None and self.limit < 0:
            raise PlanError(
                f"late_limit={self.limit} keeps less than nothing.",
                remedy="Give 0 or more, or None to keep all late rows.",
            )
        if self.late not in ("reject", "adjust", "error"):
            raise PlanError(
                f"late={self.late!r} is no way to treat late rows.",
                remedy="Write 'reject' (the default: they go to the late table), 'adjust' (those that live "
                "on start where the promise ends) or 'error' (the first one stops the query).",
            )
        self.policy.lags(time)
        self.policy.ahead(time)
        self.policy.stride(time)
        _ = self.policy.period
        self._check_column(raw)
        consumed = {*self.shape.columns, self.policy.column}
        payload = [f.with_name(self.shape.named(f.name)) for f in raw if f.name not in consumed]
        made = plain_schema(pa.schema(payload))
        object.__setattr__(self, "_scheme", self._declared(made))
        return made

    def _check_column(self, raw: pa.Schema) -> None:
        column = self.policy.column
        if column is None:
            return
        if column not in raw.names:
            raise PlanError(
                f"there is no column '{column}' for punctuation.", remedy=closest(column, raw.names)
            )
        if plain_type(raw.field(column).type) != pa.string():
            raise PlanError(
                f"the punctuation column '{column}' has the type {raw.field(column).type}.",
                remedy="It must hold texts such as 'time < 20, id = 4', and null for events.",
            )

    @property
    def time_columns(self) -> Mapping[str, Literal["start", "end"]]:
        end: dict[str, Literal["start", "end"]] = {} if self.shape.end is None else {self.shape.end: "end"}
        return {self.shape.time: "start", **end}

    @property
    def time(self) -> pa.DataType:
        return self._time  # type: ignore[attr-defined]

    def derive(self, *inputs: Properties) -> Properties:
        if self.shape.form != "point":
            return Properties(insert_only=self.shape.insert_only)
        return Properties(insert_only=True, points=True, aligned=True, max_duration=1)

    @cached_property
    def fingerprint(self) -> str:
        try:
            return super().fingerprint
        except CaesuraError as error:  # rows in memory count by content, and these make none
            raise error.at(self.step, self.place) from None

    def counts(self, name: str) -> bool:
        """The name of the step counts where nothing else tells what is read."""
        return (name == "name" and self.reader.origin is not None) or super().counts(name)

    def refuse_twin(self, other: Node) -> None:
        if not isinstance(other, Source) or self.reader.origin is other.reader.origin:
            return
        places = " and ".join(f"'{place}'" for place in (other.place, self.place) if place)
        raise PlanError(
            f"two inputs, read at {places or 'two places'}, have the same columns, options and name, so "
            "after a restart nothing would tell which state belongs to which.",
            remedy=f"Name each where it is read: name='{self.step}-1' for one, name='{self.step}-2' for the "
            "other; a name must stay the same from one start to the next.",
        ).at(self.step, self.place)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """An imported promise counts if it speaks of time alone."""
        return pattern if set(pattern.attributes) <= {"time"} else None

    def holds(self) -> tuple[Holding, ...]:
        """Versions that a retract may still name."""
        if self.shape.insert_only:
            return ()
        return (Holding("events that may be retracted", OWN, (Need(OWN, tuple(self.schema.names)),)),)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered does not enter; what need not be read is not read."""
        return OUTPUT_ONLY

    @property
    def declares(self) -> tuple[str, ...]:
        if self.policy.gives == "any" or self.reader.punctuates:
            return ("*",)
        return ("time",) if self.policy.gives == "time" else ()

    @property
    def promised(self) -> tuple[str, ...]:
        if self.declares != ("*",):
            return ()
        names = self.schema.names
        if self.scheme is None or self.scheme.kind == "any" or self.reader.punctuates:
            return tuple(names)
        return tuple(n for n in names if any(n in form.payload for form in self.scheme))

    @property
    def scheme(self) -> Scheme | None:
        """The forms of punctuation that the data is declared to hold, and time if the policy gives it."""
        return self._scheme  # type: ignore[attr-defined, no-any-return]

    def _declared(self, payload: pa.Schema) -> Scheme | None:
        if self.policy.scheme is None:
            return None
        names = ("time", *payload.names)
        own = Scheme.parse(self.policy.scheme, names)
        check_scheme(own, payload, self.step)
        timely = (
            self.policy.lag is not None or self.policy.clock_lag is not None or self.policy.node is not None
        )
        return Scheme.of(*own, Template.of(names, {"time": "+"})) if timely else own

    @cached_property
    def for_one_run(self) -> Source:
        """The same source for a query that is not saved, which need not know it by its rows."""
        reader = self.reader.for_one_run()
        return self if reader is self.reader else unchecked(self, reader=reader)

    @cached_property
    def _narrower(self) -> dict[frozenset[str], Source]:
        """What was made of a table in memory for those who want some of its columns."""
        return {}

    def narrowed(self, wanted: set[str]) -> Source:
        """The same source, read without the columns that nobody wants."""
        if not self.shape.insert_only:
            return self  # a retract names its event by all columns
        if not self.reader.in_memory:
            return self._narrowed(wanted)
        known, key = self._narrower, frozenset(wanted)
        return known.get(key) or known.setdefault(key, self._narrowed(wanted))

    def _narrowed(self, wanted: set[str]) -> Source:
        own = {*self.shape.columns, *([self.policy.column] if self.policy.column else [])}
        read = {*wanted, *self.promised}
        keep = [n for n in self.reader.schema.names if n in own or self.shape.named(n) in read]
        reader = self.reader.narrowed(keep)
        if reader is self.reader:
            return self
        renamed = tuple(pair for pair in self.shape.renamed if pair[0] in keep)
        shape = replace(self.shape, renamed=renamed)
        return replace(self, reader=reader, shape=shape, policy=self._brief())

    def _brief(self) -> Policy:
        """The policy, with a scheme that names only the columns it says something of."""
        if self.policy.scheme is None or self.scheme is None or self.scheme.kind != "some":
            return self.policy
        forms = (", ".join(f"{name}:{mark}" for name, mark in form.marked.items()) for form in self.scheme)
        return replace(self.policy, scheme="{" + ", ".join(f"[[{form}]]" for form in forms) + "}")

    @property
    def is_table(self) -> bool:
        return self.reader.in_memory or (self.reader.complete and not self.declares)

    @property
    def bounded(self) -> bool:
        return self.reader.bounded

    @property
    def stamped(self) -> bool:
        return self.shape.stamped

    @property
    def punctuated(self) -> bool:
        return self.policy.column is not None or self.reader.punctuates

    @property
    def carries_ends(self) -> bool:
        return self.shape.form == "interval"

    @property
    def heartbeat(self) -> int | None:
        return self.policy.period

    def pruned_by(
        self,
        ignored: Callable[[], list[Pattern]],
        wanted: Callable[[], list[Pattern]] | None = None,
        top: Callable[[], int] | None = None,
    ) -> Pruning | None:
        """What the reader need not read under feedback, and reads first; None where it reads as it is.

        Only inserted points tell by their own columns that nobody wants them.
        """
        if not self.reader.prunes or not self.properties.points or self.stamped:
            return None
        names = {self.shape.named(raw): raw for raw in self.reader.schema.names}
        pruning = Pruning(ignored, names, self.shape.time)
        if wanted is None or not self.permutable:
            return pruning
        lag, _, _ = self.policy.lags(self.time)
        return replace(pruning, wanted=wanted, lag=lag, top=top or pruning.top)

    @property
    def permutable(self) -> bool:
        """Whether promises follow from the times of the rows alone, or come at the end only."""
        own = (self.policy.column, self.policy.node, self.policy.clock_lag, self.policy.idle)
        return self.shape.insert_only and not self.reader.punctuates and own == (None,) * 4

    @property
    def unguarded(self) -> bool:
        """Whether one timestamp that is far too late would make all behind it late."""
        ordered = not self.reader.unordered or self.policy.period is not None
        bounded = ordered and self.policy.ahead(self.time) is not None
        return self.policy.lag is not None and not bounded and not pa.types.is_integer(self.time)

    def read(self, offsets: Offsets, pruning: Pruning | None = None) -> Iterator[SourceBatch]:
        with self._named():
            if pruning is None:
                yield from self.reader.read(offsets)
            else:
                yield from self.reader.read_pruned(offsets, pruning)

    def read_between(self, start: Offsets, end: Offsets | None = None) -> Iterator[Raw]:
        """The rows from some offsets up to others, once more, or up to what there is now."""
        with self._named():
            yield from self.reader.read_between(start, end)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """An error names the step and the user's line."""
        try:
            yield
        except CaesuraError as error:
            raise error.at(self.step, self.place) from None

    def operator(self) -> SourceIngress:
        """A fresh ingress."""
        any_promise = self.declares == ("*",)
        rules = Rules(
            self.schema,
            self.time,
            self.shape,
            self.policy if self.reader.finished else replace(self.policy, closes=False),
            self.late,
            self.reader.lanes,
            self.limit,
            any_promise,
            self.scheme,
        )
        return SourceIngress(rules)

    def describe(self) -> str:
        late = "" if self.late == "reject" else f"; late rows: {self.late}"
        promised = f"{self.policy}{', and what lies between the rows' if self.reader.punctuates else ''}"
        timed = "time of arrival" if self.stamped else f"time '{self.shape.time}'"
        return f"{self.reader.describe()}, {timed} ({self.shape.form}); gives {promised}{late}"
