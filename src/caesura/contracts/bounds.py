"""How much a safe plan holds, and how far behind its output is, from rates and punctuation periods.

The thesis' chapter 8: "we punctuate on time every 5 seconds, and we know we see at most 1,000 tuples for
that range". A step holds at most the events that started since what frees them has last come.

>>> import pyarrow as pa
>>> from caesura.ops.input import Input
>>> from caesura.ops.layers import Layers
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> plan = Layers(inputs=(clicks,), count="distinct")
>>> for bound in bounds(plan, {"clicks": SourceRate(events=1000, per=5, within=5)}, lifetimes={"clicks": 1}):
...     print(bound)
r0 input: holds nothing; final 5 ticks behind
r1 distinct: holds at most 4000 rows, about 281 KiB; final 6 ticks behind
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from caesura.contracts.analysis import Analysis, Assumptions, Lifetime, Step, longest, source_names
from caesura.contracts.derive import frees
from caesura.contracts.verdict import found
from caesura.errors import closest
from caesura.plan import OWN, Duration, Holding, Node, ticks
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import ContractError, Template

Count = Callable[[int], int]
"""At most so many events start within a stretch of so many ticks."""


@dataclass(frozen=True)
class SourceRate:
    """How fast a source gives events, or rows go around a loop, and how soon punctuation covers them."""

    events: int
    """At most so many start ..."""
    per: Duration
    """... within any stretch of so much time."""
    within: Duration
    """An event is covered, for each template, before the stream is so far past its start."""

    def __post_init__(self) -> None:
        per, within = (given if isinstance(given, int) else 1 for given in (self.per, self.within))
        self._refuse(self.events < 1 or per < 1 or within < 0)

    def _refuse(self, wrong: bool) -> None:
        if wrong:
            raise ContractError(
                f"{self} describes no stream.", remedy="Give positive events and per, and within from 0 on."
            )

    def in_ticks(self, time: pa.DataType) -> tuple[int, int, int]:
        """Events, per and within, in the ticks of a stream's time."""
        per, within = (
            ticks(self.per, time, "time of a rate"),
            ticks(self.within, time, "time until it is covered"),
        )
        self._refuse(per < 1 or within < 0)
        return self.events, per, within


@dataclass(frozen=True)
class Bound:
    """What one step holds at most, and how far its final output is behind the newest event."""

    step: Step
    rows: int
    behind: int | None
    """In ticks; None where its output has no punctuation on time."""
    bytes: int | None = None
    """About how many bytes so many rows take; None where columns of any length have no width given."""

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", about {_written(self.bytes)}"
        holds = f"holds at most {self.rows} rows{size}" if self.rows else "holds nothing"
        late = "" if self.behind is None else f"; final {self.behind} ticks behind"
        return f"r{self.step.number} {self.step.node.kind}: {holds}{late}"


@dataclass(frozen=True)
class _Flow:
    """An edge: how many events, how soon covered per template, and how long they live."""

    count: Count
    within: Mapping[Template, int]
    longest: int


def bounds(
    node: Node,
    rates: Mapping[str, SourceRate],
    *,
    skew: int = 0,
    schemes: Mapping[str, Scheme | str] | None = None,
    lifetimes: Mapping[str, Lifetime] | None = None,
    widths: Mapping[str, int] | None = None,
) -> list[Bound]:
    """How much state each step holds at most, and how far its output lags.

    Parameters
    ----------
    node
        A plan's step: ``stream.node``.
    rates
        How many rows each source gives in what time, and how soon its punctuation covers them; of a
        loop, by its name, how many rows go around it.
    skew
        How many ticks one source may be read ahead of another.
    schemes
        What punctuation lies in data that no policy speaks for, by source.
    lifetimes
        The longest lifetime, by source or loop: ``"10m"``, or a number where times are numbers.
    widths
        The bytes of a value for columns of any length, by name.

    Returns
    -------
    list
        For each step the most rows of state, the lag in ticks, and the bytes where all widths are known.

    Raises
    ------
    PlanError
        Where the plan is not safe.

    Notes
    -----
    Users write `Stream.bounds`.

    See Also
    --------
    Stream.bounds : the same, of a stream.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura import contracts
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
    >>> rates = {"clicks": contracts.SourceRate(events=100, per=10, within=5)}
    >>> known = {"schemes": {"clicks": "{[[time:+]]}"}, "lifetimes": {"clicks": 1}}
    >>> [bound.rows for bound in contracts.bounds(counts.node, rates, **known)]
    [100, 1200]
    """
    analysis = Analysis(node)
    loops = _loop_names(analysis)
    lives = lifetimes or {}
    of_sources = {name: lived for name, lived in lives.items() if name not in loops.values()}
    steps = analysis.run(Assumptions(schemes or {}, of_sources))
    given = _check(steps, rates, lives, loops)
    flows: list[_Flow] = []
    result: list[Bound] = []
    for step in steps:
        before = [flows[i] for i in step.inputs]
        held = [] if step.origin else [_rows(step, hold, before, skew) for hold in step.rule.holds]
        own = given.get(step.number) or _out(step, before, skew, held)
        if step.origin:
            held = [own.count(_reach(hold, [own], skew)) for hold in step.rule.holds]
        flows.append(own)
        timely = [ticks for t, ticks in own.within.items() if not t.payload]
        rows, width = _whole(step, held), _width(step, widths or {})
        result.append(Bound(step, rows, min(timely, default=None), None if width is None else rows * width))
    return result


ROW_BYTES = 64
"""What a row of state takes besides its columns: its ends, count, identity and place in an index."""


def _width(step: Step, widths: Mapping[str, int]) -> int | None:
    """The bytes of a row that a step holds; of the widest of its inputs, or of its output."""
    schemas = [child.schema for child in step.node.inputs] or [step.node.schema]
    known = [_row_width(schema, widths) for schema in (*schemas, step.node.schema)]
    return None if any(w is None for w in known) else ROW_BYTES + max(w or 0 for w in known)


def _row_width(schema: pa.Schema, widths: Mapping[str, int]) -> int | None:
    total = 0
    for column in schema:
        if column.name in widths:
            total += widths[column.name]
        elif pa.types.is_primitive(column.type) or pa.types.is_fixed_size_binary(column.type):
            total += max(1, column.type.bit_width // 8)
        else:
            return None
    return total


def _written(size: int) -> str:
    """A size as people write it."""
    for unit, least in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= least:
            return f"{size / least:.0f} {unit}"
    return f"{size} bytes"


def loop_names(node: Node) -> set[str]:
    """How a caller names the loops of a plan."""
    return set(_loop_names(Analysis(node)).values())


def _loop_names(analysis: Analysis) -> dict[str, str]:
    """How a caller names loops, by what they are known by inside the plan."""
    names = source_names([node for node in analysis.nodes if node.closes])
    return {node.closes: names[node.fingerprint] for node in analysis.nodes if node.closes}


def _check(
    steps: tuple[Step, ...],
    rates: Mapping[str, SourceRate],
    lives: Mapping[str, Lifetime],
    loops: Mapping[str, str],
) -> dict[int, _Flow]:
    """The edges of which the caller says how much they carry: those of sources, and those around loops."""
    growth = " ".join(str(finding) for finding in found(steps))
    if growth:
        raise ContractError(
            f"an unsafe plan has no bounds. {growth}", remedy="Make it safe first: .check() says how."
        )
    called = {step.number: _called(step, loops) for step in steps}
    names = [name for name in dict.fromkeys(called.values()) if name]
    for name in rates:
        if name not in names:
            raise ContractError(f"the plan has no source '{name}'.", remedy=closest(name, names))
    return {n: _given_flow(steps[n], name, rates, lives) for n, name in called.items() if name}


def _called(step: Step, loops: Mapping[str, str]) -> str:
    """The source or loop whose rate is that of a step's output; empty where it follows from its inputs."""
    return step.source if step.origin else loops.get(step.node.opens or step.node.closes or "", "")


def _given_flow(
    step: Step, name: str, rates: Mapping[str, SourceRate], lives: Mapping[str, Lifetime]
) -> _Flow:
    rate, told = rates.get(name), lives.get(name)
    if rate is None:
        what = f"the rate of '{name}'" if step.origin else f"how many rows go around the loop '{name}'"
        raise ContractError(
            f"nothing is known of {what}.",
            remedy=f"Give it: stream.bounds({{'{name}': (events, per, within)}}), or for a node "
            f"bounds(node, {{'{name}': SourceRate(events=..., per=..., within=...)}}).",
        )
    time = step.node.time
    known = None if told in (None, "finite") else ticks(told, time, f"longest lifetime of '{name}'")
    longest_life = known or longest(step.properties)
    if longest_life is None:
        most = 10 if pa.types.is_integer(time) else "10m"
        raise ContractError(
            f"nothing bounds the lifetimes of '{name}'.",
            remedy=f"Give lifetimes={{'{name}': {most!r}}}, or set_duration "
            f"{'behind it' if step.origin else 'in it'}.",
        )
    events, per, soon = rate.in_ticks(time)
    return _Flow(lambda span: events * (span // per + 1), dict.fromkeys(step.scheme, soon), longest_life)


def _rows(step: Step, hold: Holding, before: list[_Flow], skew: int) -> int:
    if hold.endless:
        return 0
    if hold.one_per == () and hold.until == "forever" and not hold.holds_back:
        return hold.each  # of all rows together, whatever comes
    flow = before[hold.rows_of]
    per_window = flow.longest // hold.size + 2 if hold.size else 1
    return flow.count(_reach(hold, before, skew)) * hold.each * per_window


def _reach(hold: Holding, before: list[_Flow], skew: int) -> int:
    """How many ticks back from the newest event the oldest one lies that is still held."""
    waits = []
    for need in hold.needs:
        flow = before[0 if need.port == OWN else need.port]
        usable = [
            ticks
            for template, ticks in flow.within.items()
            if template.payload <= set(need.columns) and frees(template, hold, "bounded")
        ]
        if not usable:
            raise ContractError(
                f"rates alone do not bound {_the(hold.what)}: feedback frees them.",
                remedy="Ask for the bounds of the plan in front of that step.",
            )
        waits.append(min(usable))
    lives = 0 if hold.until == "start" and not hold.size else before[max(0, hold.rows_of)].longest
    return max(waits) + skew + lives + hold.size


def _the(what: str) -> str:
    return what if what.startswith("the ") else f"the {what}"


def _whole(step: Step, held: list[int]) -> int:
    """All state of a step; a preserved side of a join is cut into as many pieces as it has matches."""
    pairs = held[0] * held[1] if any(getattr(step.node, "preserved", ())) and len(held) == 2 else 0
    return sum(held) + pairs


def _out(step: Step, before: list[_Flow], skew: int, held: list[int]) -> _Flow:
    lives = longest(step.properties) or max(flow.longest for flow in before)
    slack = 0
    if not _keeps_times(step):
        slack = max(flow.longest for flow in before) + _span(step)
    slack += max((_reach(hold, before, skew) for hold in step.rule.holds if hold.holds_back), default=0)
    within: dict[Template, int] = {}
    for template in step.scheme:
        alone = _delayed(step, before, skew, template)
        shares = [_soonest(step, port, flow, template) for port, flow in enumerate(before)]
        known = [share for share in shares if share is not None]
        waits = ([alone] if alone is not None else []) + ([max(known)] if len(known) == len(shares) else [])
        within[template] = min(waits) + slack + (skew if len(before) > 1 else 0)
    return _Flow(_count(step, before, slack, held), within, lives)


def _delayed(step: Step, before: list[_Flow], skew: int, template: Template) -> int | None:
    """How soon one input alone has promised it and none of its rows is held; None where it never does."""
    alone = step.rule.alone
    if alone is None:
        return None
    found = []
    for port, flow in enumerate(before):
        held = max((_reach(h, before, skew) for h in step.rule.holds if h.rows_of == port), default=0)
        passed = [(alone(port, given), ticks) for given, ticks in flow.within.items()]
        found += [ticks + held for share, ticks in passed if share is not None and share.implies(template)]
    return min(found, default=None)


def _soonest(step: Step, port: int, flow: _Flow, template: Template) -> int | None:
    rules = [rule for rule in (step.rule.share, step.rule.also) if rule is not None]
    passed = [(rule(port, given), ticks) for given, ticks in flow.within.items() for rule in rules]
    usable = [ticks for share, ticks in passed if share is not None and share.implies(template)]
    return min(usable, default=None)


def _count(step: Step, before: list[_Flow], slack: int, held: list[int]) -> Count:
    if getattr(step.node, "how", None) is not None and len(held) == 2:
        left, right = before
        return lambda ticks: 2 * (left.count(ticks) * (held[1] + 1) + right.count(ticks) * (held[0] + 1))
    factor = 1 if step.node.row_wise or step.node.kind == "union" else 2
    return lambda ticks: factor * sum(flow.count(ticks + slack) for flow in before)


def _keeps_times(step: Step) -> bool:
    """Whether an output event starts where an input event does, and time passes as it is."""
    return step.node.kind in ("where", "select", "union")


def _span(step: Step) -> int:
    """How far a step moves or groups time."""
    return max(abs(int(getattr(step.node, name, 0))) for name in ("size", "period", "amount"))
