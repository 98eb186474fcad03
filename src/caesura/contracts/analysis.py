"""A plan read once, inputs first: per step its contract, what it cannot free, and how long events live.

What sources give is declared by them, or given by the caller; everything behind them follows from the
steps' own rules, so that nothing has to be chosen and shared sub-plans are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from caesura.contracts.contract import covered
from caesura.contracts.derive import Derived, Ends, derive
from caesura.contracts.feedback_flow import OUTPUT, Answers, feedback_flow, feedback_forms, form_of
from caesura.contracts.rules import Rule, attributes, is_registered, rule_of
from caesura.errors import closest
from caesura.plan import Duration, Node, Properties, SourceNode, ticks, walk
from caesura.punctuation import TIME
from caesura.punctuation.scheme import NONE, Scheme, check_scheme
from caesura.punctuation.template import ContractError, Template

Lifetime = Duration | Literal["finite"]
Origin = Literal["declared", "given", "assumed", "ends", "undeclared", "nothing", "imported"]


@dataclass(frozen=True)
class Assumptions:
    """What the caller says of sources, by name: schemes, longest lifetimes, small columns."""

    schemes: Mapping[str, Scheme | str] = field(default_factory=dict)
    lifetimes: Mapping[str, Lifetime] = field(default_factory=dict)
    bounded_columns: Mapping[str, Iterable[str]] = field(default_factory=dict)
    extra: Mapping[str, Scheme] = field(default_factory=dict)
    """Schemes that a remedy tries out; what a policy says is not held against them."""
    ending: frozenset[str] = frozenset()
    """Steps, by fingerprint, whose events are taken to end: what a remedy tries out."""
    windowed: frozenset[str] = frozenset()
    """Steps, by fingerprint, that are taken to close with time."""


@dataclass(frozen=True)
class Step:
    """One step of a plan, with all that is known about it."""

    number: int
    node: Node
    inputs: tuple[int, ...]
    rule: Rule
    derived: Derived
    ends: Ends
    properties: Properties
    bounded: frozenset[str]
    origin: Origin | None = None
    source: str = ""
    """What a source is called."""
    answers: Answers = field(default_factory=Answers)
    """What the step does about feedback in this plan."""
    merges: bool = False
    """Whether its rows may go on for as long as events come, though each of these ends."""

    @property
    def scheme(self) -> Scheme:
        """What its output promises."""
        return self.derived.contract.outs[0]

    @property
    def title(self) -> str:
        """How messages call it."""
        label = getattr(self.node, "label", "")
        name = self.node.name or label or self.node.kind
        return f"'{name}'" + (f" ({self.node.place})" if self.node.place else "")


def source_names(sources: Iterable[Node]) -> dict[str, str]:
    """How a caller names sources: by name, label or kind, numbered where several are called the same."""
    names: dict[str, str] = {}
    for node in sources:
        plain = name = node.name or getattr(node, "label", "") or node.kind
        number = 2
        while name in names.values():
            name, number = f"{plain}-{number}", number + 1
        names[node.fingerprint] = name
    return names


def is_source(node: Node) -> bool:
    """Whether a step reads or is fed; what goes around a loop does neither."""
    return isinstance(node, SourceNode) or (not node.inputs and not node.opens)


@dataclass(frozen=True)
class Around:
    """What is known of the rows that go around a loop."""

    timely: bool = True
    ends: Ends = "finite"


class Analysis:
    """Rules are asked once per plan, however many assumptions are tried on it."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.nodes = tuple(walk(root))
        self._place = {node.fingerprint: i for i, node in enumerate(self.nodes)}
        self._shares: dict[tuple[int, int, Template], Template | None] = {}

    @cached_property
    def sources(self) -> tuple[Node, ...]:
        """The steps that read."""
        return tuple(node for node in self.nodes if is_source(node))

    @cached_property
    def names(self) -> dict[str, str]:
        """What each source is called, by fingerprint."""
        return source_names(self.sources)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The steps' rules, with what they are told and tell in this plan; shares are remembered."""
        made = [self._remembering(i, rule_of(node)) for i, node in enumerate(self.nodes)]
        for i, (node, answers) in enumerate(zip(self.nodes, self.feedback_flow, strict=True)):
            if answers.sent and not is_registered(node):
                made[i] = replace(made[i], feedback_out=feedback_forms(node, answers.sent))
        return tuple(made)

    @cached_property
    def feedback_flow(self) -> list[Answers]:
        """What each step hears of its consumers, does about it, and says itself."""
        return feedback_flow(self.nodes)

    def _struck(self, number: int) -> dict[int, Scheme]:
        node, struck = self.nodes[number], self.feedback_flow[number].struck
        return {
            port: Scheme.of(*(form_of(p, attributes(node.inputs[port].schema)) for p in some))
            for port, some in struck.items()
        }

    def _remembering(self, number: int, rule: Rule) -> Rule:
        def share(port: int, template: Template) -> Template | None:
            key = (number, port, template)
            if key not in self._shares:
                self._shares[key] = rule.share(port, template)
            return self._shares[key]

        return replace(rule, share=share)

    def run(self, given: Assumptions) -> tuple[Step, ...]:
        """Every step under some assumptions, inputs first."""
        self._check_names(given)
        loops = {node.closes: Around() for node in self.nodes if node.closes}
        moving = True
        while True:
            steps = self._pass(given, loops, moving)
            if moving and not all(_moves(steps, step) for step in steps):
                moving = False
                continue
            found = {step.node.closes: _around(step) for step in steps if step.node.closes}
            if found == loops:
                return steps
            loops = {loop: _weaker(loops[loop], found[loop]) for loop in loops}

    def _pass(self, given: Assumptions, loops: Mapping[str, Around], moving: bool) -> tuple[Step, ...]:
        """Every step, if what goes around loops is as given, and bounds that are told move on or do not.

        That is what each loop makes of it again, or weaker is tried: rows of a loop come from its seed by
        finitely many rounds, so what the seed has and a round keeps holds for all of them.
        """
        steps: list[Step] = []
        for number, node in enumerate(self.nodes):
            before = [steps[self._place[child.fingerprint]] for child in node.inputs]
            if node.opens:
                steps.append(self._returning(number, node, loops[node.opens]))
            else:
                steps.append(self._step(number, node, before, given, moving))
        return tuple(replace(step, answers=a) for step, a in zip(steps, self.feedback_flow, strict=True))

    def _returning(self, number: int, node: Node, around: Around) -> Step:
        scheme = Scheme.of(Template.of(attributes(node.schema), {TIME: "+"})) if around.timely else NONE
        derived = derive(self.rules[number], [], own=scheme)
        return Step(number, node, (), self.rules[number], derived, around.ends, node.properties, frozenset())

    def _step(self, number: int, node: Node, before: list[Step], given: Assumptions, moving: bool) -> Step:
        rule = self._tried(number, given)
        inputs = tuple(step.number for step in before)
        schemes = [step.scheme for step in before]
        if is_source(node):
            name = self.names[node.fingerprint]
            own, origin = self._declared(node, name, schemes, given)
            known = _with_lifetime(node, given.lifetimes.get(name), name)
            lives = _source_ends(node, known, given.lifetimes.get(name))
            derived = derive(rule, schemes, [lives] * max(1, len(before)), own)
            if node.fingerprint in given.ending:
                lives = "bounded"
            bounded = _bounded_of(node, frozenset(given.bounded_columns.get(name, ())), name)
            bounded |= frozenset(node.schema.names if node.bounded else ())
            return Step(number, node, inputs, rule, derived, lives, known, bounded, origin, name)
        known = node.derive(*(step.properties for step in before))
        bounded = self._bounded(number, before)
        lives_before = [step.ends for step in before]
        struck = self._struck(number) if moving else {}
        merged = [step.merges for step in before]
        derived = derive(
            rule,
            schemes,
            lives_before,
            bounded=[step.bounded for step in before],
            struck=struck,
            merged=merged,
        )
        lives = _ends(node, before, known) if node.fingerprint not in given.ending else "bounded"
        merges = _merges(node, merged) and node.fingerprint not in given.ending
        return Step(number, node, inputs, rule, derived, lives, known, bounded, merges=merges)

    def _tried(self, number: int, given: Assumptions) -> Rule:
        rule = self.rules[number]
        if self.nodes[number].fingerprint not in given.windowed:
            return rule
        return replace(rule, holds=tuple(replace(hold, until="start") for hold in rule.holds))

    def _declared(
        self, node: Node, name: str, schemes: list[Scheme], given: Assumptions
    ) -> tuple[Scheme, Origin]:
        names = attributes(node.schema)
        own = declared(node)
        if name in given.extra:
            return given.extra[name], "given"
        if name in given.schemes:
            scheme = given.schemes[name]
            read = Scheme.parse(scheme, names) if isinstance(scheme, str) else scheme
            check_scheme(read, node.schema, name)
            _check_agreement(node, name, read)
            return read, "given"
        if schemes and own[1] == "declared":
            return _imported(node, schemes), "imported"
        return own

    def _bounded(self, number: int, before: list[Step]) -> frozenset[str]:
        """Small columns survive where punctuation on them does, from every input that feeds them."""
        if not any(step.bounded for step in before):
            return frozenset()
        small: dict[str, bool] = {}
        for port, step in enumerate(before):
            for name in step.node.schema.names:
                template = Template.of(attributes(step.node.schema), {name: "#"})
                passed = self.rules[number].share(port, template)
                for output in passed.payload if passed is not None else ():
                    small[output] = small.get(output, True) and name in step.bounded
        return frozenset(name for name, bounded in small.items() if bounded)

    def _check_names(self, given: Assumptions) -> None:
        known = list(self.names.values())
        for name in {*given.schemes, *given.lifetimes, *given.bounded_columns}:
            if name not in known:
                raise ContractError(f"the plan has no source '{name}'.", remedy=closest(name, known))


def lasting_guards(steps: Sequence[Step], step: Step) -> Iterator[tuple[int, Template]]:
    """The guards of a step that go up, pile up value by value, and never go: where, and their forms.

    One that only moves on is a single bound, and one that stands is there until it is withdrawn.
    """
    for guard in step.answers.guards:
        inside = guard.port != OUTPUT
        edge = steps[step.inputs[guard.port]] if inside else step
        form = form_of(guard.pattern, attributes(edge.node.schema))
        piles = any(mark == "#" for mark in form.marked.values()) and not covered(form, [edge.scheme])
        if guard.mounted and not guard.standing and (piles or _keeps_endless(edge)):
            yield guard.port, form


def _keeps_endless(edge: Step) -> bool:
    """Whether rows that a guard has stopped stay: they never end, may change, and only time is promised."""
    changing = edge.ends == "never" and not edge.node.properties.fixed_ends
    return changing and all(TIME in template.marked for template in edge.scheme)


def lacks_nothing(steps: Sequence[Step]) -> bool:
    """Whether every step gives all guarantees."""
    plain = not any(step.derived.unmet or step.rule.undeclared for step in steps)
    return plain and not any(any(lasting_guards(steps, step)) for step in steps)


def _moves(steps: Sequence[Step], step: Step) -> bool:
    """Whether the bounds that a step tells its inputs are sure to move on."""
    movers = [feedback.moved_by for feedback in step.node.feedback_sent() if feedback.moved_by is not None]
    timely = [any(not t.payload for t in steps[number].scheme) for number in step.inputs]
    return all(any(timely[port] for port in ports) for ports in movers)


def _merges(node: Node, before: list[bool]) -> bool:
    """Whether output rows grow by later events: where intervals are joined, and behind that."""
    if longest(node.properties) is not None or node.results_end:
        return False
    if node.joins_intervals:
        return True
    shared = [m for port, m in enumerate(before) if not node.steers(port)]
    how = getattr(node, "how", None)
    if how == "inner":
        return all(shared)
    if how in ("left", "semi", "anti"):
        return shared[0]
    return any(shared)


def _around(step: Step) -> Around:
    """What a loop gives back of what it was given."""
    timely = any(not template.payload for template in step.scheme)
    return Around(timely, "finite" if step.ends != "never" else "never")


def _weaker(a: Around, b: Around) -> Around:
    return Around(a.timely and b.timely, "never" if "never" in (a.ends, b.ends) else "finite")


def declared(node: Node) -> tuple[Scheme, Origin]:
    """What a source says by itself about the punctuation that it gives."""
    names = attributes(node.schema)
    if node.scheme is not None:
        return node.scheme, "declared"
    timely = Scheme.of(Template.of(names, {TIME: "+"}))
    if node.declares is None:
        return timely, "assumed"
    if "*" in node.declares:  # a policy holds whatever else may lie in the data
        sure = getattr(getattr(node, "policy", None), "gives", None) == TIME
        return timely if sure else NONE, "undeclared"
    if TIME in node.declares:
        return timely, "declared"
    if node.is_table:
        return Scheme.of(Template.of(names, {})), "ends"
    return NONE, "nothing"


def _check_agreement(node: Node, name: str, scheme: Scheme) -> None:
    """Refuses a scheme that contradicts what the source's policy does."""
    declared, own = node.declares, node.scheme
    if own is not None and scheme != own:
        raise ContractError(
            f"the source '{name}' is given {scheme}, but it declares {own} where it is read.",
            remedy="Say it in one place: in_data(..., gives=...).",
        )
    if declared is None or "*" in declared:
        return
    strange = [t for t in scheme if t.payload]
    if strange:
        gives = "time only" if declared else "nothing"
        raise ContractError(
            f"the source '{name}' is given {strange[0]}, but its policy gives {gives}.",
            remedy="Read it with punctuate=in_data(...), or leave that template out.",
        )
    timely = any(TIME in t.marked for t in scheme)
    if timely != (TIME in declared):
        has, lacks = ("time", "leaves it out") if TIME in declared else ("no time", "promises it")
        raise ContractError(
            f"the policy of '{name}' gives {has}, but its scheme {scheme} {lacks}.",
            remedy="Let the scheme and punctuate= say the same.",
        )


def _imported(node: Node, schemes: list[Scheme]) -> Scheme:
    """A source that imports another step's time gives it only if that step does."""
    if getattr(getattr(node, "policy", None), "lag", None) is not None:
        return declared(node)[0]
    timely = any(not t.payload for scheme in schemes for t in scheme)
    return declared(node)[0] if timely else NONE


def _with_lifetime(node: Node, longest: Lifetime | None, name: str) -> Properties:
    if longest is None or longest == "finite":
        return node.properties
    most = ticks(longest, node.time, f"longest lifetime of '{name}'")
    if most < 1:
        raise ContractError(
            f"events of '{name}' cannot live at most {longest}.",
            remedy="Give a positive time, like '10m', or a positive number where times are numbers.",
        )
    return node.properties.but(max_duration=most)


def longest(known: Properties) -> int | None:
    """The longest lifetime that is known; None where there is none."""
    return 1 if known.points else known.max_duration


def _source_ends(node: Node, known: Properties, declared: Lifetime | None) -> Ends:
    if longest(known) is not None:
        return "bounded"
    return "finite" if declared == "finite" or node.carries_ends else "never"


def _bounded_of(node: Node, bounded: frozenset[str], name: str) -> frozenset[str]:
    for column in bounded:
        if column not in node.schema.names:
            raise ContractError(
                f"'{name}' has no column '{column}'.", remedy=closest(column, node.schema.names)
            )
    return bounded


def _ends(node: Node, before: list[Step], known: Properties) -> Ends:
    """Whether output events end: by the longest lifetime, or by where they come from."""
    if longest(known) is not None:
        return "bounded"
    if node.results_end:
        return "finite"
    sure = [step.ends != "never" or node.steers(port) for port, step in enumerate(before)]
    if node.ends_with_first:
        return "finite" if sure[0] else "never"
    how = getattr(node, "how", None)
    clipped = next((hold.one_per for hold in node.holds() or () if hold.one_per is not None), None)
    if clipped is not None and before[0].bounded.issuperset(clipped):
        return "finite"
    if node.results_endless:
        return "never"
    if how == "inner":
        return "finite" if any(sure) else "never"
    first = how in ("left", "semi", "anti") or getattr(node, "count", None) in ("bag", "set")
    if first or how == "right":
        return "finite" if sure[0 if first else 1] else "never"
    return "finite" if all(sure) else "never"
