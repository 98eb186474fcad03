"""A step of a plan: frozen, checked when it is built, and able to make its physical operator.

A node knows its inputs, its output schema, what it promises of every event (`properties`), and how
punctuation on its inputs becomes punctuation on its output (`carry`). Equal sub-plans have equal
fingerprints, so that they run once.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, TypeVar

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError, closest, here, lacking
from caesura.events.types import check_schema
from caesura.expr.code import code_key
from caesura.expr.paths import with_paths
from caesura.plan.feedback import FeedbackRule, OwnFeedback, Switches
from caesura.plan.holds import Holding
from caesura.plan.operator import Operator
from caesura.plan.properties import Properties
from caesura.plan.roles import ROW_BY_ROW, OnLoop, PunctuatedBy, RowForm
from caesura.punctuation import MIN_TIME, Pattern, Promises
from caesura.punctuation.scheme import Scheme

TICKS = pa.int64()
"""The time of a stream whose time column holds plain integers."""


N = TypeVar("N", bound="Node")

ALL_ON = Switches()
UNTOLD = ("inputs", "place", "name")
"""Fields in which steps may differ that do the same."""
PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """What all steps have: inputs, a name, the user's line."""

    inputs: tuple[Node, ...] = ()
    name: str = ""
    place: str = field(default_factory=here)
    switches: Switches = field(default_factory=Switches)
    """What the step may do about feedback."""

    kind: ClassVar[str] = "step"
    """What users call the step."""
    partitioning: ClassVar[str] = "any"
    """Where rows must lie: in 'any' place, by 'key', equal ones together (see `keys`), or all in 'one'."""
    row_wise: ClassVar[bool] = False
    """Whether the step looks at one row at a time and keeps nothing."""
    narrows_first: ClassVar[bool] = False
    """Whether it reads fewer columns of its input once nobody wants all of its own."""
    sends_feedback: ClassVar[bool] = False
    """Whether the step may tell those above it, at run time, what it can do without."""
    arrival_dependent: ClassVar[bool] = False
    """Whether rows are let go by when they arrive, so that no state behind it is that of a prefix."""
    demands: ClassVar[bool] = False
    """Whether results are asked for before they are final, by when rows arrive."""
    moves_time: ClassVar[bool] = False
    """Whether a row-wise step changes lifetimes; it then runs behind the gate that judges lateness."""
    behind_gate: ClassVar[bool] = False
    """Whether a row-wise step runs behind the gate, which then judges rows as they came."""
    forward: ClassVar[bool] = False
    """Whether the step may stand on a loop: it waits for no punctuation, and moves nothing back in time."""
    waits: ClassVar[bool] = False
    """Whether rows leave only when punctuation allows it."""
    shows_early: ClassVar[bool] = False
    """Whether the step holds rows until they are final, and shows and corrects them earlier on demand."""
    loop_remedy: ClassVar[str] = "Do this before the loop or behind it."
    """What to do instead of putting the step on a loop, where it may not stand there."""
    joins_intervals: ClassVar[bool] = False
    """Whether a row is what is left of several events, and grows as more of them come."""
    punctuated_by: ClassVar[PunctuatedBy] = "rows"
    """What the punctuation that leaves depends on, for those who recompute it."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise PlanError(
                f"a step is named by a text; got {self.name!r}.",
                remedy="Write name='speeds', or .named('speeds').",
                step=self.kind,
                place=self.place,
            )
        try:
            self._reach_into_structs()
            object.__setattr__(self, "_schema", check_schema(self.output_schema()))
            self._check_switches()
        except CaesuraError as error:
            error.remedy = self._above_as_time(error.missing) or error.remedy
            raise error.at(self.step, self.place) from None

    def as_time(self, name: str) -> str:
        """How to read a column that is not there because a source took it for the time of its rows."""
        side = self.time_columns.get(name)
        if side is None:
            return self._above_as_time(name)
        return f"'{name}' was read as the {side} of the rows' lifetimes: write cz.{side}()."

    def _above_as_time(self, name: str) -> str:
        return next((told for node in self.inputs if name and (told := node.as_time(name))), "")

    @property
    def time_columns(self) -> Mapping[str, Literal["start", "end"]]:
        """The columns that were taken for lifetimes where rows are read; none for most steps."""
        return {}

    def _reach_into_structs(self) -> None:
        """Dotted names in the step's expressions, as fields of the inputs' columns."""
        if not any(pa.types.is_nested(t) for node in self.inputs for t in node.schema.types):
            return
        columns = {field.name: field.type for node in self.inputs for field in node.schema}
        for f in dataclasses.fields(self):
            given = getattr(self, f.name)
            reached = with_paths(given, columns)
            if reached is not given:
                object.__setattr__(self, f.name, reached)

    def _check_switches(self) -> None:
        if self.switches.exploit or not self.switches.propagate:
            return
        if any(rule.means == "groups" for rule in self.feedback() or ()):
            raise PlanError(
                "feedback may not be sent on without being acted on here: results would be made from a part "
                "of their rows.",
                remedy="Leave exploit on, or switch propagate off too.",
            )

    @property
    def scheme(self) -> Scheme | None:
        """The forms of punctuation that a source is declared to give; None where it is not said."""
        return None

    @property
    def declares(self) -> tuple[str, ...] | None:
        """The attributes that a source's punctuation comes on; '*' where any may, None for no source."""
        return None

    @property
    def is_table(self) -> bool:
        """Whether it reads rows that are all there from the start, so that every bucket can hold them."""
        return False

    @property
    def bounded(self) -> bool:
        """Whether it reads columns that have few values at any time, so that state may be kept for each."""
        return False

    @property
    def carries_ends(self) -> bool:
        """Whether it reads events that have their ends with them."""
        return False

    @property
    def caution(self) -> str:
        """What it does that may well leave no row, and why, as words behind its name; or nothing."""
        return ""

    @property
    def start_delay(self) -> int | None:
        """How much later than its inputs' rows its own start; None where that is not known of all of them."""
        return 0 if self.row_wise and not self.moves_time else None

    @property
    def rounds_starts(self) -> bool:
        """Whether its rows start at few times only, where those of other streams may start too."""
        return False

    @property
    def results_endless(self) -> bool:
        """Whether no event ends behind it, whatever ends events had before."""
        return False

    @property
    def results_end(self) -> bool:
        """Whether every result ends, also those of events that never do."""
        return False

    @property
    def ends_with_first(self) -> bool:
        """Whether every result has the lifetime of an event of the first input."""
        return False

    @property
    def fed(self) -> str:
        """The label under which the step is fed from outside; none for most steps."""
        return ""

    @property
    def opens(self) -> str:
        """The loop whose rows come in here; none for most steps."""
        return ""

    @property
    def closes(self) -> str:
        """The loop that ends here; none for most steps."""
        return ""

    @property
    def crosses(self) -> bool:
        """Whether the loop that ends here may cross buckets in every round."""
        return False

    @property
    def step(self) -> str:
        """How messages call this step."""
        return self.name or self.kind

    @property
    def schema(self) -> pa.Schema:
        """The payload columns of the output."""
        return self._schema  # type: ignore[attr-defined]

    def output_schema(self) -> pa.Schema:
        """The payload columns of the output; refuses a step that makes no sense."""
        raise NotImplementedError

    @property
    def time(self) -> pa.DataType:
        """Whether time is plain ticks (int64) or microseconds of a timestamp."""
        return self.inputs[0].time

    @cached_property
    def properties(self) -> Properties:
        """What holds for every event of the output."""
        return self.derive(*(node.properties for node in self.inputs))

    def derive(self, *inputs: Properties) -> Properties:
        """The output's properties from the inputs'."""
        raise NotImplementedError

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A definite punctuation on an input, as the most it says about the output; None for nothing.

        Where several inputs must agree, this is one input's share.
        """
        raise NotImplementedError

    def limited(self, port: int) -> Mapping[str, Literal["few", "bounded"]]:
        """The columns of which only some values pass: a few that are known, or those up to a bound."""
        return {}

    def together(self, port: int, known: Promises) -> int:
        """Up to where an input's promises on a few values say all about the output, which none says alone."""
        return MIN_TIME

    def holds(self) -> tuple[Holding, ...] | None:
        """The state the step keeps and what frees it, for contracts; None where it does not say."""
        return () if self.row_wise else None

    @property
    def remark(self) -> str:
        """What is to be known of the state of a safe plan's step, as a sentence; empty for most."""
        return ""

    def feedback(self) -> tuple[FeedbackRule, ...] | None:
        """How the step answers feedback, the best way first; None where it takes none."""
        return None

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        """The forms of assumed feedback that the step sends by itself."""
        return ()

    def closed(self, pattern: Pattern) -> Pattern | None:
        """A second punctuation that leaves because of the same one, such as a window number's."""
        return None

    def alone(self, port: int, pattern: Pattern) -> Pattern | None:
        """What leaves because of one input alone, once no row that it speaks of is held; None for most."""
        return None

    def row_form(self) -> RowForm | None:
        """The step as expressions of one row; None where it is none, or moves lifetimes."""
        return None

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        """What the step does with a loop's rows that enter by these ports; ``once``: rows count once."""
        return ROW_BY_ROW if self.row_wise else OnLoop()

    def fits(self, inputs: tuple[Node, ...]) -> bool:
        """Whether the step needs no checks over these inputs, because they say what its own say."""
        return all(_alike(new, old) for new, old in zip(inputs, self.inputs, strict=True))

    def schema_over(self, inputs: tuple[Node, ...]) -> pa.Schema | None:
        """The columns of the output over inputs that fit; None where they are the same as before."""
        return None

    def widened(self, inputs: tuple[Node, ...], names: tuple[str, ...]) -> Node:
        """The same step over inputs with more columns, which leave with its rows and do not change it."""
        return rebuilt(self, inputs)

    @property
    def shows_all(self) -> bool:
        """Whether the output lacks nothing on account of what the step has not seen yet."""
        return self.row_wise or not self.inputs

    def keys(self, port: int) -> tuple[str, ...]:
        """The input columns whose equal values must meet in one place; empty when any place will do."""
        return ()

    def output_keys(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        """The output columns that hold these columns of the first input; None where some are not there."""
        return keys if all(key in self.schema.names for key in keys) else None

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        """The columns of an input that are read when these output columns are wanted; all by default."""
        return set(self.inputs[port].schema.names)

    def narrowed(self, wanted: set[str]) -> Node:
        """The step without the output columns that nobody wants, where that can be had."""
        return self

    def pushed(self) -> Node:
        """The same output by less work, where the step may change places with the one below it."""
        return self

    def push_filter(self, where: Node) -> Node | None:
        """This step over an input that a filter of its output has passed; None where that is not the same."""
        return None

    def combined(self) -> Node | None:
        """The same output from a part in every bucket and a part over those; None where there is none."""
        return None

    @property
    def spreads(self) -> bool:
        """Whether rows shall lie in as many buckets as there are, whatever steps behind it ask for."""
        return False

    def copied(self, port: int) -> bool:
        """Whether every bucket needs all rows of the input on this port."""
        return False

    def steers(self, port: int) -> bool:
        """Whether the input on this port only tells the step what to do: no row of it leaves."""
        return False

    def notes_copied(self) -> bool:
        """Whether what the step has to say of rows is the same in every bucket, so that one tells it."""
        return False

    def looks_up(self, port: int) -> bool:
        """Whether the input on this port may be a table that every bucket holds."""
        return False

    def in_front_of_final(self) -> Node:
        """The same step for somebody who takes final rows only."""
        return self

    def operator(self) -> Operator:
        """The step at work."""
        raise NotImplementedError

    def describe(self) -> str:
        """The step's parameters, for explain."""
        return ""

    @cached_property
    def fingerprint(self) -> str:
        """Equal for steps that do the same to the same inputs; names and lines do not count."""
        parts = [self._parameters, *(node.fingerprint for node in self.inputs)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @cached_property
    def _parameters(self) -> str:
        """All that tells the step from others over the same inputs."""
        parts = [type(self).__name__]
        for name in _fields(type(self).__mro__):
            if self.counts(name):
                parts.append(f"{name}={canonical(getattr(self, name))}")
        return "\n".join(parts)

    def counts(self, name: str) -> bool:
        """Whether a field tells the step from others that do something else."""
        if name == "switches":
            return self.switches != ALL_ON
        return name not in UNTOLD

    def refuse_twin(self, other: Node) -> None:
        """Refuses another step with the same fingerprint that still does not do the same."""

    def column(self, name: str, port: int = 0) -> pa.Field:
        """An input column, or an error that lists what there is."""
        schema = self.inputs[port].schema
        if name not in schema.names:
            where = "there is" if len(self.inputs) == 1 else f"the {('left', 'right')[port]} stream has"
            error = PlanError(f"{where} no column '{name}'.", remedy=closest(name, schema.names))
            raise lacking(error, name)
        return schema.field(name)


def canonical(value: Any) -> str:
    """A text that is equal for equal parameters."""
    if type(value) in PLAIN:
        return repr(value)
    if type(value) is not tuple:  # the most frequent, which has no key
        key = getattr(value, "key", None)
        if key is not None and not callable(key):
            return str(key)
    if isinstance(value, (tuple, list)):
        return "(" + ",".join([canonical(v) for v in value]) + ")"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{canonical(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ",".join(sorted(canonical(v) for v in value)) + "}"
    plain: object = type(value).__repr__
    if callable(value) or plain is object.__repr__:
        return f"{type(value).__name__}#{code_key(value)}"
    return repr(value)


def walk(*roots: Node) -> Iterator[Node]:
    """Every node once, inputs before their consumers; equal sub-plans count as one."""
    seen: dict[str, Node] = {}
    looked: set[Node] = set()
    for root in roots:
        yield from _walk(root, seen, looked)


def _walk(root: Node, seen: dict[str, Node], looked: set[Node]) -> Iterator[Node]:
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if not ready:
            if node not in looked:
                looked.add(node)
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.inputs))
            continue
        first = seen.setdefault(node.fingerprint, node)
        if first is node:
            yield node
        else:
            node.refuse_twin(first)


def rebuilt(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same step on other inputs; it is not checked again on some that look the same."""
    if not inputs or not node.fits(inputs):
        return dataclasses.replace(node, inputs=inputs)
    return unchecked(node, node.schema_over(inputs), inputs=inputs)


def unchecked(node: N, schema: pa.Schema | None = None, **changes: Any) -> N:
    """The step with other parameters, which are known to suit it, and perhaps fewer columns."""
    made, kind = object.__new__(type(node)), type(node).__mro__
    derived = _derived(kind) - ({"_parameters"} if set(changes) <= {"inputs"} else set())
    made.__dict__.update({n: v for n, v in node.__dict__.items() if n not in derived} | changes)
    if schema is not None:
        made.__dict__["_schema"] = schema
    return made


@cache
def _fields(kind: tuple[type, ...]) -> tuple[str, ...]:
    """The parameters of steps of a class, which is given with those above it."""
    return tuple(f.name for f in dataclasses.fields(kind[0]))


@cache
def _derived(kind: tuple[type, ...]) -> frozenset[str]:
    """What steps of a class, given with those above it, work out of their parameters when it is asked for."""
    return frozenset(n for c in kind for n, v in vars(c).items() if isinstance(v, cached_property))


def _alike(a: Node, b: Node) -> bool:
    """Whether a step says the same of its rows as another."""
    return bool(a.schema.equals(b.schema)) and a.properties == b.properties and a.time == b.time


def alike_for(new: Node, old: Node, columns: Collection[str]) -> bool:
    """Whether a step says the same of its rows as another, to somebody who reads these columns."""
    here, there = new.schema, old.schema
    same = here.equals(there) or (
        all(n in here.names and here.field(n).equals(there.field(n)) for n in columns)
    )
    return same and new.properties == old.properties and new.time == old.time
