"""Which plans run in buckets on threads, and where their rows are spread.

A plan is cut into stages as for any host (`caesura.plan.cut`). Sources are read, and rows made legal, in one
thread; steps that look at one row at a time move behind the exchange wherever its keys are columns that they
pass on, so that the buckets do their work.

Law: a plan that is spread gives the history of the plan on one thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from caesura.expr import has_call
from caesura.io.sources.source import Source
from caesura.ops.aggregate.dealt import takes_dealt
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.join.node import Join
from caesura.ops.select import Select
from caesura.ops.where import Where
from caesura.ops.windows.node import Windows
from caesura.plan import Node, SourceNode, walk
from caesura.plan.cut import EVERYWHERE, Exchange, Spread, Stage, Stages, cut, keys_before

ANYWHERE = ("*any",)
"""The spread of rows that may come in any bucket."""


@dataclass(frozen=True)
class SpreadPlan:
    """A plan cut for threads."""

    stages: Stages
    buckets: int
    """One where rows of all keys must meet, or one pass over a page beats any exchange within it."""
    dealt: DealtStep | None = None
    """The windows whose rows may come in any bucket."""


@dataclass(frozen=True)
class DealtStep:
    """Windows that the rows of a source reach by row-wise steps alone, each in whichever bucket."""

    node: Node
    edge: Exchange
    """By which its rows come; with keys where they may come by those too."""
    keys: tuple[str, ...]
    """The columns of its groups by which its windows lie."""

    @property
    def may_divide(self) -> bool:
        """Whether rows may come by their keys instead."""
        return self.edge.keys != ANYWHERE


def spread(outputs: Mapping[str, Node], threads: int, *, final: bool = False) -> SpreadPlan | None:
    """How a plan runs on so many threads, for final rows alone or not; None where it runs on one alone."""
    nodes = list(walk(*outputs.values()))
    if any(not node.inputs and not isinstance(node, Source) for node in nodes):
        return None  # rows are fed by hand
    if any(_alone(node) for node in nodes):
        return None
    stages = cut(outputs, threads)
    if stages.backward:
        return None
    dealt = _dealt(stages) if final and threads > 1 else None
    if dealt is not None:
        return SpreadPlan(with_steps_behind(stages, dealt.edge), threads, dealt)
    if any(_divided(d.keys) for d in stages.stages[0].departures) and not any(map(_fused, nodes)):
        return SpreadPlan(with_steps_behind(stages), threads)
    return SpreadPlan(_in_one_place(outputs, nodes), 1)


def _dealt(stages: Stages) -> DealtStep | None:
    """The windows whose rows may come in any bucket, if all that is read goes to them."""
    first = stages.stages[0]
    if len(first.departures) != 1:
        return None
    edge = first.departures[0]
    stage = stages.stages[edge.target_stage]
    users = {name for (_, name, _), label in stages.exchange_of.items() if label == edge.label}
    node = next((node for node in stage.nodes if {node.fingerprint} == users), None)
    if len(stage.arrivals) > 1 or not isinstance(node, Tumbling) or not edge.keys or not takes_dealt(node):
        return None
    own = {node.fingerprint for node in first.nodes}
    by_key, anyhow = _passed(edge, own), _passed(replace(edge, keys=None), own)
    if by_key.producer is not anyhow.producer:
        by_key = replace(anyhow, keys=ANYWHERE)
    return DealtStep(node, _moved(edge, by_key), edge.keys)


def _fused(node: Node) -> bool:
    """Whether tumbling windows stand behind a look-up: one pass over both beats any exchange between them."""
    if not isinstance(node, Tumbling) or node.every != node.size or not node.group:
        return False
    above = node.inputs[0]
    while isinstance(above, (Select, Where)):
        above = above.inputs[0]
    return isinstance(above, Join) and above.how == "inner" and above.residual is None and len(above.on) == 1


def _in_one_place(outputs: Mapping[str, Node], nodes: list[Node]) -> Stages:
    """Sources in the thread that reads, all else behind it in one bucket."""
    sources = tuple(node for node in nodes if isinstance(node, SourceNode))
    edges = {s.fingerprint: Exchange(f"{s.fingerprint}>1:", s, 0, 1, (), "") for s in sources}
    rest = [node for node in nodes if node.inputs]
    label_of = {
        (1, node.fingerprint, port): edges[child.fingerprint].label
        for node in rest
        for port, child in enumerate(node.inputs)
        if child.fingerprint in edges
    }
    first = Stage(0, list(sources), [], list(edges.values()))
    then = Stage(1, rest, list(edges.values()), [], dict(outputs))
    return Stages((first, then), outputs, sources, label_of)


def _alone(node: Node) -> bool:
    """Whether a step depends on the order in which rows come, or is Python of the user's with a state."""
    if node.sends_feedback or node.arrival_dependent or node.demands or node.closes or node.opens:
        return True
    if isinstance(node, Windows) and node.uses:
        return True
    if isinstance(node, Source) and node.reader.rowless:
        return True  # only the clock comes of it
    return isinstance(node, SourceNode) and bool(node.inputs)


def _divided(keys: Spread) -> bool:
    return keys is None or (bool(keys) and keys != EVERYWHERE)


@dataclass(frozen=True)
class PassedSteps:
    """The steps in front of an exchange that can stand behind it, last first, each with its port."""

    steps: tuple[tuple[Node, int], ...]
    producer: Node
    """The step whose rows are spread instead."""
    keys: Spread

    @property
    def names(self) -> set[str]:
        return {node.fingerprint for node, _ in self.steps}


def with_steps_behind(stages: Stages, dealt: Exchange | None = None) -> Stages:
    """The same stages, with row-wise steps behind the exchange where its keys are columns before them.

    By the only exchange of rows that are dealt, all of them are. A step that several exchanges read works
    behind each, unless it must see each row once.
    """
    first = stages.stages[0]
    own = {node.fingerprint for node in first.nodes}
    passed = {d.label: _passed(d, own) for d in first.departures}
    before = {d.label: {node.fingerprint for node in walk(d.producer)} for d in first.departures}
    read = Counter(name for names in before.values() for name in names)
    if dealt is not None and dealt.keys == ANYWHERE:
        passed = {
            d.label: replace(_passed(replace(d, keys=None), own), keys=ANYWHERE) for d in first.departures
        }
    used = Counter(
        (d.target_stage, name)
        for d in first.departures
        for name in passed[d.label].names | {d.producer.fingerprint}
    )
    made = [Stage(s.number, list(s.nodes), [], [], dict(s.outputs)) for s in stages.stages]
    exchange_of = dict(stages.exchange_of)
    for stage in stages.stages[1:]:
        made[stage.number].departures += stage.departures
    edges: dict[str, Exchange] = {}
    for stage in stages.stages:
        for edge in stage.arrivals:
            behind = passed.get(edge.label)
            if (
                behind is None
                or any(used[stage.number, name] > 1 for name in behind.names)
                or any(read[node.fingerprint] > 1 and _works_once(node) for node, _ in behind.steps)
            ):
                edges[edge.label] = edge
                continue
            moved = _moved(edge, behind)
            edges.setdefault(moved.label, moved)
            made[stage.number].nodes += [node for node, _ in behind.steps]
            if behind.steps:
                node, port = behind.steps[-1]
                exchange_of[stage.number, node.fingerprint, port] = moved.label
    for edge in edges.values():
        made[edge.target_stage].arrivals.append(edge)
        if edge.source_stage == 0:
            made[0].departures.append(edge)
    return replace(stages, stages=tuple(made), exchange_of=exchange_of)


def _works_once(node: Node) -> bool:
    """Whether a step must see each row once: it tells of rows, or calls a function of the user's."""
    if isinstance(node, (Select, Where)) and node.on_error == "late":
        return True
    form = node.row_form()
    return form is not None and any(map(has_call, [*(e for _, e in form.columns), *form.conditions]))


def _moved(edge: Exchange, behind: PassedSteps) -> Exchange:
    if not behind.steps:
        return edge
    named = "*" if behind.keys is None else ",".join(behind.keys)
    label = f"{behind.producer.fingerprint}>{edge.target_stage}:{named}"
    return replace(edge, label=label, producer=behind.producer, keys=behind.keys)


def _passed(edge: Exchange, own: set[str]) -> PassedSteps:
    node, keys, steps = edge.producer, edge.keys, []
    while node.inputs:
        port = next(i for i, child in enumerate(node.inputs) if child.fingerprint in own)
        before = keys if not keys or keys == EVERYWHERE else keys_before(node, port, keys)
        if keys and before is None:
            break
        steps.append((node, port))
        node, keys = node.inputs[port], before
    return PassedSteps(tuple(steps), node, keys)
