"""Remedies for an unsafe plan, each tried on it before it is offered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from caesura.contracts.analysis import (
    Analysis,
    Assumptions,
    Step,
    declared,
    is_source,
    lacks_nothing,
    lasting_guards,
)
from caesura.contracts.orders import orders, rebuilt
from caesura.contracts.rules import attributes
from caesura.contracts.verdict import Remedy
from caesura.errors import CaesuraError
from caesura.plan import Node
from caesura.punctuation import TIME
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import Template

Addition = tuple[str, Template]
MAX_CANDIDATES = 16
MAX_KEYS = 3


def is_safe(steps: Sequence[Step]) -> bool:
    """Whether no step lacks anything."""
    return lacks_nothing(steps)


def minimal_punctuation(analysis: Analysis, given: Assumptions, limit: int = 3) -> list[frozenset[Addition]]:
    """The least sets of templates that, added to what sources give, make the plan safe.

    More punctuation never hurts, so a set that contains an answer, or asks for all that one does, is none:
    where values of `a` and `b` together are enough, `[[a:#]]` alone asks for more.
    """
    if is_safe(analysis.run(given)):
        return [frozenset()]
    candidates = list(_candidates(analysis, given))
    if not is_safe(analysis.run(_plus(analysis, given, candidates))):
        return []
    answers: list[frozenset[Addition]] = []
    for size in range(1, limit + 1):
        for some in combinations(candidates, size):
            addition = frozenset(some)
            if any(_asks(addition, answer) for answer in answers):
                continue
            if is_safe(analysis.run(_plus(analysis, given, some))):
                answers.append(addition)
    return answers


def _asks(one: frozenset[Addition], other: frozenset[Addition]) -> bool:
    """Whether a set of additions asks sources for all that another one does."""
    return all(any(n == name and t.implies(template) for n, t in one) for name, template in other)


def shrunk_punctuation(analysis: Analysis, given: Assumptions) -> list[frozenset[Addition]]:
    """One set that helps and has nothing to spare, from all candidates down; none where all do not help."""
    kept = list(_candidates(analysis, given))
    if not is_safe(analysis.run(_plus(analysis, given, kept))):
        return []
    for addition in sorted(kept, key=lambda a: TIME in a[1].marked):
        fewer = [other for other in kept if other != addition]
        if is_safe(analysis.run(_plus(analysis, given, fewer))):
            kept = fewer
    return [frozenset(kept)]


def remedies(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """Changes that make an unsafe plan safe, the least first; those that keep the answer before others."""
    answers = minimal_punctuation(analysis, given, limit=2)[:4]
    for answer in answers or shrunk_punctuation(analysis, given):
        yield Remedy(_punctuate(analysis, answer))
    yield from _bounded(analysis, given, steps)
    yield from _lifetimes(analysis, given, steps)
    yield from _windows(analysis, given, steps)
    yield from _order(analysis, given)
    yield from _other_options(analysis, given, steps)
    yield from _group_keys(analysis, given, steps)
    yield from _longest(analysis, given, steps)


def _order(analysis: Analysis, given: Assumptions) -> Iterator[Remedy]:
    """The first other order of joins that is safe."""
    for plan, text in orders(analysis.root):
        if is_safe(Analysis(plan).run(given)):
            yield Remedy(f"join in another order: {text}", plan=plan)
            return


def _candidates(analysis: Analysis, given: Assumptions) -> Iterator[Addition]:
    """Templates that a source does not give yet, on time and on columns that some step waits for."""
    steps = analysis.run(given)
    wanted = {name for step in steps for unmet in step.derived.unmet for name in unmet.need.columns}
    wanted |= {name for step in steps for _, form in lasting_guards(steps, step) for name in form.payload}
    total = sum(len(node.schema.names) for node in analysis.sources)
    count = 0
    for node in analysis.sources:
        names = attributes(node.schema)
        near = [name for name in names if name == TIME or name in wanted or total <= MAX_CANDIDATES]
        forms = [Template.of(names, {name: "+" if name == TIME else "#"}) for name in near]
        for template in [*_together(steps, names), *forms]:
            has = any(t.implies(template) for t in _given(analysis, node, given))
            if not has and count < 2 * MAX_CANDIDATES:
                count += 1
                yield analysis.names[node.fingerprint], template


def _together(steps: Sequence[Step], names: tuple[str, ...]) -> Iterator[Template]:
    """Values of several columns at once, where a step waits for them: less than values of any one alone."""
    needs = {need.columns for step in steps for need in (u.need for u in step.derived.unmet)}
    for columns in sorted(needs):
        if 1 < len(columns) <= MAX_KEYS and set(columns) <= set(names):
            yield Template.of(names, dict.fromkeys(columns, "#"))


def _given(analysis: Analysis, node: Node, given: Assumptions) -> Scheme:
    scheme = given.schemes.get(analysis.names[node.fingerprint])
    if isinstance(scheme, str):
        return Scheme.parse(scheme, attributes(node.schema))
    return declared(node)[0] if scheme is None else scheme


def _plus(analysis: Analysis, given: Assumptions, some: Sequence[Addition]) -> Assumptions:
    """The same assumptions with more punctuation; policies are changed with it, so none is contradicted."""
    more = dict(given.extra)
    for node in analysis.sources:
        name = analysis.names[node.fingerprint]
        added = [t for n, t in some if n == name]
        if added:
            more[name] = Scheme.of(*_given(analysis, node, given), *added)
    return replace(given, extra=more)


def _punctuate(analysis: Analysis, answer: frozenset[Addition]) -> str:
    by_name = {analysis.names[node.fingerprint]: node for node in analysis.sources}
    parts = []
    for name, template in sorted(answer, key=str):
        timely = set(template.marked) == {TIME}
        words = "time" if timely else ", ".join(f"'{n}'" for n in template.marked)
        policy = getattr(by_name[name], "policy", None)
        how = f": {template.brief}" if "<" in template.brief else ""
        if policy is not None:
            how = (
                ", with punctuate=delay(...)"
                if timely
                else f", with punctuate=in_data(..., gives='{template.brief}')"
            )
        parts.append(f"let '{name}' also give punctuation on {words}{how}")
    return "; and ".join(parts)


def _lifetimes(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """Ends for events that may never end, put where a step holds them: at one place, or at all of them."""
    places: dict[str, tuple[Step, Step, int]] = {}
    known = dict(given.lifetimes)
    for step in steps:
        for unmet in step.derived.unmet:
            if unmet.lack == "lifetimes" and is_source(step.node):
                known[step.source] = "finite"
            elif unmet.lack == "lifetimes":
                held = steps[step.inputs[max(0, unmet.hold.rows_of)]]
                places.setdefault(held.node.fingerprint, (step, held, unmet.hold.rows_of))
            elif unmet.lack == "merging":
                held = steps[step.inputs[unmet.hold.rows_of]]
                if is_safe(analysis.run(replace(given, ending=given.ending | {held.node.fingerprint}))):
                    cut = f"cut the rows of {held.title} with chop(...) before {step.title}"
                    yield Remedy(f"{cut}, or take output='changes'")
    for some in [*([place] for place in places), list(places)]:
        trial = replace(given, ending=given.ending | set(some))
        if some and is_safe(analysis.run(trial)):
            yield Remedy("; and ".join(_ending(*places[place]) for place in some))
            return
    if known != given.lifetimes and is_safe(analysis.run(replace(given, lifetimes=known))):
        yield Remedy(f"say that their events end, with lifetimes={known}")


def _ending(step: Step, held: Step, port: int) -> str:
    """How the events that a step holds can be made to end."""
    keys = step.node.keys(max(0, port))
    ways = ["set_duration(...)"]
    if 0 < len(keys) <= MAX_KEYS:
        ways.append(f"clip by themselves on {', '.join(keys)} if there are few of these")
    if held.source:
        ways.append(f"say how long they live at most with lifetimes={{'{held.source}': ...}}")
    return f"let the events of {held.title} before {step.title} end: {', or '.join(ways)}"


def _bounded(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """Columns with a bounded set of values, where state is kept once for each value."""
    wanted = {
        name
        for step in steps
        for unmet in step.derived.unmet
        if unmet.hold.until == "forever"
        for name in unmet.hold.one_per or ()
    }
    more: dict[str, list[str]] = {}
    for node in analysis.sources:
        own = sorted(wanted & set(node.schema.names))
        if own:
            more[analysis.names[node.fingerprint]] = own
    if more and is_safe(analysis.run(replace(given, bounded_columns={**given.bounded_columns, **more}))):
        words = " and ".join(f"'{n}'" for n in sorted({n for names in more.values() for n in names}))
        yield Remedy(f"if {words} has few different values, say so with bounded_columns={more}")


def _windows(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """Windows instead of groups over all time."""
    for step in steps:
        over_all_time = any(u.hold.until == "forever" and not u.hold.endless for u in step.derived.unmet)
        if not over_all_time or not hasattr(step.node, "aggregates"):
            continue
        trial = replace(given, windowed=given.windowed | {step.node.fingerprint})
        if is_safe(analysis.run(trial)):
            yield Remedy(
                f"take windows in {step.title}: tumbling(...).agg(...) instead of {step.node.kind}(...)"
            )


def _group_keys(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """A column more to group by, on which there is punctuation."""
    for step in steps:
        group = getattr(step.node, "group", None)
        if group is None or not step.derived.unmet:
            continue
        promised = {name for t in steps[step.inputs[0]].scheme for name in t.payload}
        for name in sorted(promised - set(group)):
            try:
                other: Node = replace(step.node, group=(*group, name))  # type: ignore[call-arg]
                plan = rebuilt(analysis.root, step.node, other)
            except CaesuraError:  # a step behind it cannot have that column
                continue
            if is_safe(Analysis(plan).run(given)):
                yield Remedy(f"group by '{name}' too in {step.title}", plan=plan)


def _longest(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """Sessions that are cut after a time."""
    for step in steps:
        frame = getattr(step.node, "frame", None)
        if step.node.kind != "session" or frame is None or frame.longest is not None:
            continue
        other: Node = replace(step.node, frame=replace(frame, longest=10 * frame.gap))  # type: ignore[call-arg]
        plan = rebuilt(analysis.root, step.node, other)
        if is_safe(Analysis(plan).run(given)):
            yield Remedy(f"cut sessions in {step.title} after a time: session(..., longest=...)", plan=plan)


OPTIONS: tuple[tuple[str, str, Any, str], ...] = (
    ("fixpoint", "progress", "hybrid", "take progress='hybrid' in {}"),
    ("join", "delays", True, "let {} delay what one side promises: join(..., delays=True)"),
    (
        "impute",
        "budget",
        None,
        "take no budget in {}, or a pace(...) behind it, which strikes what is too late",
    ),
)
"""Another setting of a kind of step: its option, the value to try, and how to say it."""


def _other_options(analysis: Analysis, given: Assumptions, steps: Sequence[Step]) -> Iterator[Remedy]:
    """Steps with another setting."""
    for step in steps:
        for kind, option, value, text in OPTIONS:
            if step.node.kind != kind or getattr(step.node, option, value) == value:
                continue  # a look-up, which is a join in a plan, has no such option
            try:
                other: Node = replace(step.node, **{option: value})
                plan = rebuilt(analysis.root, step.node, other)
            except CaesuraError:  # such a step cannot have that setting
                continue
            if is_safe(Analysis(plan).run(given)):
                yield Remedy(text.format(step.title), plan=plan)
