"""Cuts a plan into stages: what runs before any exchange, and what runs behind each.

Stage 0 reads and runs the steps that look at one row at a time; it keeps nothing. Every later stage
holds steps whose rows must meet, fused as long as the rows already lie where they must. An edge that
crosses stages is an exchange: rows go to the bucket of their key, punctuation to all.

Law: a plan gives the same history for any number of buckets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2s

from caesura.errors import PlanError
from caesura.plan.combine import combine
from caesura.plan.loops import carried_by, image, on_loop, same_columns, spread_of, whole_loops
from caesura.plan.node import Node, walk
from caesura.plan.source import SourceNode

LOOP = "loop:"
"""How the label of an edge begins by which a loop crosses buckets; the loop's name follows."""
EVERYWHERE = ("*",)
"""The spread of rows of which every bucket has a copy."""
EVENTS = ("*event",)
"""The spread of rows by all their columns and their starts: those of one key lie in many buckets."""
Spread = tuple[str, ...] | None
"""The columns whose hash says where a row lies; None when nothing is known, () for all in one place."""


@dataclass(frozen=True)
class Exchange:
    """An edge that crosses stages."""

    label: str
    producer: Node
    source_stage: int
    target_stage: int
    keys: Spread
    why: str
    enters: Node | None = None
    """The step that stands for the edge where it arrives; the producer itself unless the edge goes back."""

    @property
    def back(self) -> bool:
        """Whether the edge leads back, to a stage that has run: what it carries arrives in the next epoch."""
        return self.target_stage <= self.source_stage

    @property
    def entry(self) -> Node:
        """The step whose output the target stage sees as its input."""
        return self.enters or self.producer

    def route(self) -> str:
        if self.keys is None:
            return "spread over the buckets"
        if self.keys == EVERYWHERE:
            return "a copy to every bucket"
        if self.keys == EVENTS:
            return "by the whole row and its start"
        return f"by {', '.join(self.keys)}" if self.keys else "all to one bucket"


@dataclass
class Stage:
    """The steps of one stage and the exchanges that lead to it."""

    number: int
    nodes: list[Node] = field(default_factory=list)
    arrivals: list[Exchange] = field(default_factory=list)
    departures: list[Exchange] = field(default_factory=list)
    outputs: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Stages:
    """A plan, cut."""

    stages: tuple[Stage, ...]
    outputs: Mapping[str, Node]
    sources: tuple[SourceNode, ...]
    """Those that are read as streams; the others are tables that stage 0 holds."""
    exchange_of: Mapping[tuple[int, str, int], str] = field(default_factory=dict)
    """The exchange, by its label, that brings the rows of an input, by stage, step and port."""

    @property
    def readers(self) -> str:
        """A mark of who reads what: feedback that was given under another one binds nobody."""
        named = "/".join(f"{name}={node.fingerprint}" for name, node in sorted(self.outputs.items()))
        return blake2s(named.encode(), digest_size=8).hexdigest()

    @property
    def loops(self) -> bool:
        """Whether rows go back to a stage that has run: a loop that crosses buckets."""
        return any(exchange.back for stage in self.stages for exchange in stage.departures)

    @property
    def backward(self) -> bool:
        """Whether anything may go back to a stage that has run: a loop, or a message upwards."""
        return self.loops or any(n.sends_feedback for s in self.stages for n in s.nodes)


def cut(outputs: Mapping[str, Node], buckets: int | None = None) -> Stages:
    """The stages of a plan; in one bucket no loop has to cross, and nothing is combined."""
    return _Cutter(combine(outputs) if buckets != 1 else dict(outputs), buckets).run()


class _Cutter:
    def __init__(self, outputs: dict[str, Node], buckets: int | None) -> None:
        self.outputs = outputs
        self.buckets = buckets
        self.nodes = list(walk(*outputs.values()))
        self.consumers: dict[str, list[tuple[Node, int]]] = {n.fingerprint: [] for n in self.nodes}
        for node in self.nodes:
            for port, child in enumerate(node.inputs):
                self.consumers[child.fingerprint].append((node, port))
        self.static = self._static()
        self.stage: dict[str, int] = {}
        self.lies: dict[str, Spread] = {}
        self.promised: dict[str, tuple[str, ...]] = {}
        """The columns that punctuation may speak of, of the steps in front of a gate."""
        self.stamped: set[str] = set()
        """Steps in front of a gate whose rows have no times yet."""
        self.places: dict[str, tuple[int, ...]] = {}
        self.why: dict[str, str] = {}
        self.crossing: dict[str, tuple[str, ...]] = {}
        """The columns by which the rows of a loop that crosses buckets lie, by the step that closes it."""
        self.copies: set[tuple[str, int]] = set()
        """Inputs, by step and port, of which every bucket has a copy."""
        self.exchange_of: dict[tuple[int, str, int], str] = {}

    def _static(self) -> set[str]:
        """Tables that only serve as the looked-up side of inner joins, with the row-wise steps on them."""
        tables = {n.fingerprint for n in self.nodes if isinstance(n, SourceNode) and n.is_table}
        for node in self.nodes:
            if node.inputs and node.row_wise and all(c.fingerprint in tables for c in node.inputs):
                tables.add(node.fingerprint)
        while True:
            bad = {fp for fp in tables if not self._only_looked_up(fp, tables)}
            if not bad:
                return tables
            tables -= bad

    def _only_looked_up(self, fp: str, tables: set[str]) -> bool:
        uses = self.consumers[fp]
        if not uses:
            return False
        for node, port in uses:
            looks = node.looks_up(port) and node.inputs[1 - port].fingerprint not in tables
            if node.fingerprint not in tables and not looks:
                return False
        return True

    def run(self) -> Stages:
        loops = whole_loops(self.nodes)
        looped = {n.fingerprint for members in loops.values() for n in members}
        for node in self.nodes:
            if node.fingerprint in loops:
                self._place_loop(node, loops[node.fingerprint])
            elif node.fingerprint not in self.static | looped:
                self._place(node)
        stages = [Stage(i) for i in range(max(self.stage.values(), default=0) + 1)]
        if len(stages) == 1:
            stages.append(Stage(1))
        for node in self.nodes:
            if node.fingerprint in self.stage:
                stages[self.stage[node.fingerprint]].nodes.append(node)
        self._connect(stages)
        sources = tuple(
            n for n in self.nodes if isinstance(n, SourceNode) and n.fingerprint not in self.static
        )
        return Stages(tuple(stages), self.outputs, sources, self.exchange_of)

    def _place(self, node: Node) -> None:
        fp = node.fingerprint
        streams = [c for c in node.inputs if c.fingerprint not in self.static]
        if isinstance(node, SourceNode) and not node.inputs:
            self.stage[fp], self.lies[fp] = 0, None
            self.promised[fp] = node.promised
            self.stamped |= {fp} if node.stamped else set()
            return
        if not node.inputs:
            raise PlanError(
                "it is fed by the process that runs the query, so it has no place on Spark.",
                remedy="Run it here, with query(); or read it from files, a topic or a DataFrame.",
            ).at(node.step, node.place)
        before = max(self.stage[c.fingerprint] for c in streams)
        alone = node.row_wise or (len(streams) == 1 and len(node.inputs) == 2)
        if alone and before == 0 and self._waits_for_gate(node, streams[0]):
            self._place_loose(node, streams, 1)
            return
        if alone:
            self.stage[fp] = before
            self.lies[fp] = self._carried(node, streams[0])
            return
        if node.partitioning == "any":
            self._place_loose(node, streams, max(before, 1))
            return
        wanted = [_met(node, port) for port in range(len(node.inputs))]
        copied = {(fp, port) for port in range(len(node.inputs)) if node.copied(port)}
        self.copies |= copied
        places = self._meet(streams, wanted, before) if before > 0 and not copied else None
        if places is None:
            chosen = self._choose(node, wanted[0])
            places = tuple(wanted[0].index(k) for k in chosen)
            before += 1
        self.stage[fp], self.places[fp] = before, places
        self.why[fp] = f"{node.step} must see equal {', '.join(wanted[0]) or 'rows of all keys'} together"
        self.lies[fp] = node.output_keys(tuple(wanted[0][i] for i in places))

    def _timed(self, node: Node, stream: Node) -> bool:
        """Whether a step in front of a gate changes times, or reads those that rows get at the gate."""
        stamped = stream.fingerprint in self.stamped
        if node.moves_time or (stamped and node.on_loop((0,), once=False).reads_lifetimes):
            return True
        self.stamped |= {node.fingerprint} if stamped else set()
        return False

    def _waits_for_gate(self, node: Node, stream: Node) -> bool:
        """Whether a row-wise step may not stand in front of the gate."""
        return node.behind_gate or self._timed(node, stream) or self._hides(node, stream)

    def _hides(self, node: Node, stream: Node) -> bool:
        """Whether a step in front of a gate changes or drops a column by which the gate refuses rows."""
        promised = self.promised[stream.fingerprint]
        port = node.inputs.index(stream)
        self.promised[node.fingerprint] = promised
        return any(image(node, port, name) != name for name in promised)

    def _place_loop(self, head: Node, members: list[Node]) -> None:
        """A loop runs in one bucket, or, where it may cross buckets and can, in all of them."""
        mine = {n.fingerprint for n in members}
        inner = mine | self.static
        outside = {c.fingerprint for n in members for c in n.inputs if c.fingerprint not in inner}
        there = [self.stage[fp] for fp in outside]
        several = self.buckets != 1
        spread = spread_of(head, members, self.static) if head.crosses and several else None
        carried = carried_by(head, members) if spread is None and several else None
        gathered = all(self.lies[fp] == () for fp in outside) and len(set(there)) == 1 and max(there) > 0
        stage = max(there) if gathered and spread is None and carried is None else max(there) + 1
        for node in members:
            self.stage[node.fingerprint] = stage
            self.lies[node.fingerprint] = () if spread is None else None
            self.why[node.fingerprint] = f"the loop of {head.step} runs in one bucket"
        if spread is not None:
            self._spread_loop(head, members, spread)
        elif carried is not None:
            self._carry_loop(head, members, carried)

    def _carry_loop(self, head: Node, members: list[Node], column: str) -> None:
        """Lays a loop by a column that goes around unchanged: it stays inside, with copies of the rest."""
        mine = {n.fingerprint for n in members}
        for node in members:
            self.lies[node.fingerprint] = None
            self.why[node.fingerprint] = f"the loop of {head.step} carries '{column}' unchanged"
            for port, child in enumerate(node.inputs):
                if node is not head and child.fingerprint not in mine:
                    self.copies.add((node.fingerprint, port))
        self.lies[head.fingerprint] = (column,)

    def _spread_loop(self, head: Node, members: list[Node], spread: tuple[str, ...]) -> None:
        """Lays a loop's rows by some of their columns; what a round derives crosses to where it lies."""
        self.crossing[head.fingerprint] = spread
        self.lies[head.fingerprint] = spread
        names = {n.fingerprint: {c: c for c in spread} for n in members if n.opens == head.closes}
        circle = on_loop(head.inputs[1], head.closes)
        for node in members:
            if node is head or node.fingerprint not in circle:
                continue
            port = circle[node.fingerprint][0]
            before, images = names[node.inputs[port].fingerprint], same_columns(node, port)
            names[node.fingerprint] = {c: images[now] for c, now in before.items() if now in images}
            keyed = node.partitioning == "key" and not any(c.fingerprint in self.static for c in node.inputs)
            if keyed:
                keys = node.keys(port)
                self.places[node.fingerprint] = tuple(keys.index(before[c]) for c in spread)
            self.why[node.fingerprint] = f"the loop of {head.step} lies by {', '.join(spread)}"

    def _place_loose(self, node: Node, streams: list[Node], stage: int) -> None:
        """A step that takes rows wherever they lie; it runs behind stage 0 if it keeps anything."""
        fp = node.fingerprint
        self.stage[fp] = stage
        self.why[fp] = f"{node.step} comes behind the gate of its source"
        lies = {self.lies[c.fingerprint] for c in streams if self.stage[c.fingerprint] == stage}
        fresh = [p for p, c in enumerate(node.inputs) if c in streams and self.stage[c.fingerprint] < stage]
        if fresh and node.spreads:
            self.why[fp] = f"every bucket has a share of {node.step}, however many rows a key has"
            lies.add(EVENTS)
        elif fresh:
            wanted = self._next_keys(node)
            computed = wanted is not None and any(keys_before(node, port, wanted) is None for port in fresh)
            lies.add(None if computed else wanted)
        self.lies[fp] = lies.pop() if len(lies) == 1 else None

    def _carried(self, node: Node, stream: Node) -> Spread:
        """Where rows lie behind a row-wise step: the same place, under the columns' new names."""
        lies = self.lies[stream.fingerprint]
        if not lies:
            return lies
        renamed = []
        port = node.inputs.index(stream)
        for key in lies:
            now = image(node, port, key)
            if now is None:
                return None
            renamed.append(now)
        return tuple(renamed)

    def _meet(self, streams: list[Node], wanted: list[tuple[str, ...]], stage: int) -> tuple[int, ...] | None:
        """The keys, by place, by which a step's rows in a stage lie together already; None if they do not.

        Inputs from earlier stages do not matter: they are routed to where the others are.
        """
        found: set[tuple[int, ...]] = set()
        for child, keys in zip(streams, wanted, strict=True):
            if self.stage[child.fingerprint] != stage:
                continue
            lies = self.lies[child.fingerprint]
            if lies is None or any(k not in keys for k in lies):
                return None
            found.add(tuple(keys.index(k) for k in lies))
        return found.pop() if len(found) == 1 else None

    def _choose(self, node: Node, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Fewer columns where the next keyed step then needs no exchange of its own."""
        later = self._next_keys(node)
        shared = tuple(k for k in keys if later is not None and k in later and k in node.schema.names)
        return shared or keys

    def _next_keys(self, node: Node) -> Spread:
        """The columns of a step's output that the keyed steps behind it group by; None if none does.

        Where several steps follow, the columns that all who care have in common, or else the first's.
        """
        cared = [k for k in (self._wanted(node, *use) for use in self.consumers[node.fingerprint]) if k]
        if not cared:
            return None
        shared = tuple(k for k in cared[0] if all(k in keys for keys in cared))
        return shared or cared[0]

    def _wanted(self, node: Node, user: Node, port: int) -> Spread:
        """The columns that a user of a step, or a step behind it, groups by, under the step's own names."""
        if user.partitioning != "any" and not user.row_wise:
            return _met(user, port)
        deeper = self._next_keys(user)
        if deeper is None:
            return None
        names = []
        for key in deeper:
            back = [n for n in node.schema.names if image(user, port, n) == key]
            if not back:
                return None
            names.append(back[0])
        return tuple(names)

    def _connect(self, stages: list[Stage]) -> None:
        made: dict[str, Exchange] = {}
        for node in self.nodes:
            fp = node.fingerprint
            if fp not in self.stage:
                continue
            for port, child in enumerate(node.inputs):
                if child.fingerprint in self.static or self.stage[child.fingerprint] == self.stage[fp]:
                    continue
                keys = self._route(node, port)
                why = self.why.get(fp, "")
                here = self.stage[fp]
                self.exchange_of[here, fp, port] = self._exchange(stages, made, child, here, keys, why)
        for node in self.nodes:
            if node.fingerprint in self.crossing:
                self._cross(stages, node)
        for name, node in self.outputs.items():
            here = self.stage[node.fingerprint]
            stages[max(here, 1)].outputs[name] = node
            if here == 0:
                self._exchange(stages, made, node, 1, None, f"'{name}' must enter through its source's gate")

    def _cross(self, stages: list[Stage], head: Node) -> None:
        """The edge by which what a round has derived goes to the buckets of the next round."""
        here, keys, body = self.stage[head.fingerprint], self.crossing[head.fingerprint], head.inputs[1]
        label = f"{LOOP}{head.closes}"
        edge = Exchange(label, body, here, here, keys, f"what {head.step} derives lies by {', '.join(keys)}")
        stages[here].arrivals.append(edge)
        stages[here].departures.append(edge)

    def _route(self, node: Node, port: int) -> Spread:
        """How an input of a step is spread when it comes from another stage."""
        if (node.fingerprint, port) in self.copies:
            return EVERYWHERE
        if node.fingerprint not in self.places:
            lies = self.lies[node.fingerprint]
            if (
                lies is None or lies == EVENTS or node.closes
            ):  # a loop lies by a column that goes around under its name
                return lies
            return keys_before(node, port, lies)
        return tuple(_met(node, port)[i] for i in self.places[node.fingerprint])

    def _exchange(
        self, stages: list[Stage], made: dict[str, Exchange], child: Node, target: int, keys: Spread, why: str
    ) -> str:
        """Makes the exchange, unless it is there; gives its label."""
        here = self.stage[child.fingerprint]
        label = f"{child.fingerprint}>{target}:{'*' if keys is None else ','.join(keys)}"
        if label not in made:
            made[label] = Exchange(label, child, here, target, keys, why)
            stages[target].arrivals.append(made[label])
            stages[here].departures.append(made[label])
        return label


def keys_before(node: Node, port: int, keys: tuple[str, ...]) -> Spread:
    """The columns of an input that come out as these; None where one of them is computed."""
    images = {image(node, port, name): name for name in node.inputs[port].schema.names}
    return tuple(images[key] for key in keys) if all(key in images for key in keys) else None


def _met(node: Node, port: int) -> tuple[str, ...]:
    """The columns whose equal values a step brings together; none where all rows must meet."""
    return node.keys(port) if node.partitioning == "key" else ()
