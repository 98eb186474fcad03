"""What a check found, in users' words: safe with the contracts shown, or what grows and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from caesura.contracts.analysis import Step, lasting_guards
from caesura.contracts.contract import Contract
from caesura.contracts.derive import Unmet
from caesura.contracts.feedback_flow import OUTPUT
from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.misuse import checked_methods, strict
from caesura.plan import OWN, Node
from caesura.punctuation import TIME
from caesura.punctuation.scheme import NONE, Scheme
from caesura.punctuation.template import Template

MAX_SHOWN = 12
FindingKind = Literal["state", "result", "guard", "undeclared"]


@dataclass(frozen=True)
class Finding:
    """One guarantee that a plan cannot give: which step, what stays, and why."""

    kind: FindingKind
    step: Step
    unmet: Unmet | None
    given: str
    """What the lacking input gives instead, in words."""
    guard: tuple[int, Template] | None = None
    """Where feedback puts up guards that never go, and their form."""

    def __str__(self) -> str:
        if self.guard is not None:
            port, form = self.guard
            place = "its output" if port == OUTPUT else _place(self.step, port)
            names = [f"'{name}'" for name in form.marked]
            return (
                f"step {self.step.title}: guards on {' and '.join(names)} at {place} never go, because "
                f"{place} promises nothing on {' or '.join(names)} alone. {self.given}"
            )
        if self.unmet is None:
            return f"step {self.step.title} does not say what it keeps, so nothing can be promised."
        hold = self.unmet.hold
        what = f"{hold.what} that never end" if hold.endless else hold.what
        if self.kind == "result":
            title = f"step {self.step.title}: {what} are held for ever, and their results never become final"
        else:
            title = f"step {self.step.title}: {what} are never freed"
        return f"{title}, because {self._reason()}. {self.given}"

    def _reason(self) -> str:
        assert self.unmet is not None
        need, hold = self.unmet.need, self.unmet.hold
        if hold.why:
            return hold.why
        columns = ", ".join(f"'{name}'" for name in need.columns)
        place = "it" if need.port == OWN else _place(self.step, need.port)
        match self.unmet.lack:
            case "no punctuation":
                wanted = TIME if hold.until != "forever" else ""
                asked = " or ".join(part for part in (columns, wanted) if part) or "all of it"
                return f"{place} promises nothing on {asked}"
            case "time only":
                return f"{place} promises progress of time only, which closes no {_subject(hold.what)}"
            case "merging":
                return "a row goes on for as long as events with its values follow each other"
            case _:
                return (
                    f"events may never end, and {place} promises nothing on {columns or 'all of it'} for good"
                )


def _subject(what: str) -> str:
    """What has to close: the windows of 'events of windows that are not full'."""
    return what.split(" that ")[0].split()[-1]


def _place(step: Step, port: int) -> str:
    return "its input" if len(step.inputs) == 1 else f"its {('left', 'right')[port % 2]} input"


@dataclass(frozen=True)
class Remedy:
    """One change that was itself checked and makes the plan safe."""

    text: str
    steps: tuple[Step, ...] = ()
    plan: Node | None = None
    """The plan with that change made; None where only whoever wrote it can make it."""

    def __str__(self) -> str:
        return self.text


@checked_methods
@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: safe or not, the contracts chosen, what grows, what helps."""

    steps: tuple[Step, ...]
    findings: tuple[Finding, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    """Which steps may well give no row, and why: said in the first line, for bounded state is not all."""
    mended: Verdict | None = None
    """The verdict on the plan with the first remedy that could be applied, where that was asked for."""

    @property
    def plan(self) -> Node:
        """The plan that was checked: ``cz.Stream(verdict.mended.plan)`` is the mended one."""
        return self.steps[-1].node

    @property
    def safe(self) -> bool:
        """Whether all state goes and all output comes."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.safe

    @property
    def contracts(self) -> dict[str, Contract]:
        """The contract of each step, by its reference in the drawn plan (r0, r1, ...)."""
        return {f"r{step.number}": step.derived.contract for step in self.steps}

    @property
    def output(self) -> Scheme:
        """What the plan's output promises."""
        return self.steps[-1].scheme

    @property
    def growth(self) -> str:
        """What grows without bound when the plan runs all the same; empty for a safe one."""
        return "\n".join(str(finding) for finding in self.findings)

    def __str__(self) -> str:
        if self.safe:
            lines = [*self._headline(), "", *self.drawn()]
        else:
            lines = ["unsafe:", *(f"- {finding}" for finding in self.findings[:MAX_SHOWN])]
            if len(self.findings) > MAX_SHOWN:
                lines.append(f"- and {len(self.findings) - MAX_SHOWN} more of this kind behind these.")
            if self.remedies:
                lines += ["", "Any one of these makes it safe:", *(f"- {r}" for r in self.remedies)]
            if self.mended is not None:
                text = next(r.text for r in self.remedies if r.plan is not None)
                lines += ["", f"Mended ({text}):", *self.mended.drawn()]
        told = [*(() if self.safe else self.cautions), *self.notes]
        return "\n".join(lines + (["", *told] if told else []))

    def _headline(self) -> Iterator[str]:
        """What is said of a safe plan first: a reader may stop there."""
        if not self.cautions:
            yield "safe: all state goes, and all output comes."
        for position, caution in enumerate(self.cautions):
            yield f"{'and' if position else 'safe, but'} {caution[0].lower()}{caution[1:]}"

    def drawn(self) -> Iterator[str]:
        """The plan with what each edge promises.

        Returns
        -------
        Iterator
            Lines.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import caesura as cz
        >>> from caesura import contracts
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
        >>> verdict = contracts.check(counts.node, schemes={"clicks": "{[[time:+]]}"})
        >>> next(iter(verdict.drawn()))
        'r0 := input: clicks'
        """
        for step in self.steps:
            inputs = " ".join(f"r{i}" for i in step.inputs)
            text = shown(step.node.describe())
            title = f"r{step.number} := {step.node.kind}" + (f" {inputs}" if inputs else "")
            yield title + (f": {text}" if text else "")
            yield f"      promises {promised(step.scheme)}; {held(step)}"
            for port, sent in enumerate(step.rule.feedback_out):
                if sent.kind == "some":
                    yield f"      tells r{step.inputs[port]} what will be ignored, by {promised(sent)}"

    def refuse(self) -> None:
        """Raises for an unsafe plan, with what grows and what helps.

        Raises
        ------
        PlanError
            Where the plan is not safe.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import caesura as cz
        >>> from caesura import contracts
        >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
        >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
        >>> known = {"schemes": {"clicks": "{[[time:+]]}"}, "lifetimes": {"clicks": 1}}
        >>> contracts.check(counts.node, **known).refuse()
        """
        if self.safe:
            return
        helps = "; or ".join(str(r) for r in self.remedies[:3]) or "Punctuate a source on what it lacks"
        first = self.findings[0].step
        raise PlanError(
            f"the plan is unsafe: {self.growth.removeprefix(f'step {first.title}').lstrip(' :')}",
            remedy=f"{helps[0].upper()}{helps[1:]}. Or start it with allow_unbounded=True.",
            step=first.node.step,
            place=first.node.place,
        )

    @strict
    def witness(self, events: int, *, repeat: int = 1) -> Iterator[tuple[str, Item]]:
        """A stream that obeys what the sources declare and makes an unsafe plan grow.

        Parameters
        ----------
        events
            How many events each source gives.
        repeat
            How often each value comes: some steps give results only for values that come more than once.

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
        >>> [name for name, item in verdict.witness(2)]
        ['clicks', 'clicks', 'clicks', 'clicks']
        """
        from caesura.contracts.witness import witness

        return witness(self, events, repeat=repeat)

    def _repr_html_(self) -> str:
        from caesura.contracts.html import rendered

        return rendered(self)


def shown(text: Scheme | str) -> str:
    """A scheme, or a step's parameters, without the columns that loops hide from users."""
    return _HIDDEN.sub("", str(text))


def promised(scheme: Scheme) -> str:
    """What a stream with this scheme promises, in words, without the columns that loops hide from users."""
    if scheme.kind != "some":
        return "any punctuation" if scheme.kind == "any" else "nothing"
    plain = (Template(tuple(m for m in t.marks if not m[0].startswith("\x00"))) for t in scheme)
    return ", ".join(dict.fromkeys(template.in_words for template in plain))


_HIDDEN = re.compile(r",? ?\x00[^,;\]]*")


def held(step: Step) -> str:
    """What a step keeps, on a line."""
    kept = [hold for hold in step.rule.holds if not hold.endless]
    return "keeps " + ", ".join(hold.what for hold in kept) if kept else "keeps nothing"


def found(steps: tuple[Step, ...]) -> Iterator[Finding]:
    """Every guarantee that some step cannot give."""
    for step in steps:
        if step.rule.undeclared:
            yield Finding("undeclared", step, None, "")
        for unmet in step.derived.unmet:
            kind: FindingKind = "result" if unmet.hold.holds_back else "state"
            yield Finding(kind, step, unmet, _given(steps, step, unmet.need.port))
        for port, form in lasting_guards(steps, step):
            yield Finding("guard", step, None, _given(steps, step, port), (port, form))


def _given(steps: tuple[Step, ...], step: Step, port: int) -> str:
    """What the sources behind the lacking input promise."""
    start = step if port < 0 else steps[step.inputs[port]]
    sources = [s for s in _behind(steps, start) if s.origin is not None]
    return " ".join(f"'{s.source}' promises {_promised(s)}." for s in sources)


def _promised(source: Step) -> str:
    if source.origin == "undeclared" and source.scheme == NONE:
        return "nothing for sure: any punctuation may lie in its data"
    return source.scheme.in_words + (" (assumed)" if source.origin == "assumed" else "")


def _behind(steps: tuple[Step, ...], step: Step) -> list[Step]:
    seen: dict[int, Step] = {}
    todo = [step]
    while todo:
        one = todo.pop()
        if one.number not in seen:
            seen[one.number] = one
            todo.extend(steps[i] for i in one.inputs)
            todo.extend(s for s in steps if one.node.opens and s.node.closes == one.node.opens)
    return [seen[i] for i in sorted(seen)]
