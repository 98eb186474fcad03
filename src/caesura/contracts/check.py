"""`check`: whether a plan's state stays bounded and its answers come out, before it runs.

>>> import pyarrow as pa
>>> from caesura.ops.input import Input
>>> from caesura.ops.join import Join
>>> r = Input(label="r", payload=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
>>> s = Input(label="s", payload=pa.schema([("b", pa.int64()), ("c", pa.int64())]))
>>> plan = Join(inputs=(r, s), on=(("b", "b"),), place="flow.py:7")
>>> on_b = check(plan, schemes={"r": "{[[b:#]]}", "s": "{[[b:#]]}"})
>>> on_b.safe, str(on_b.output)
(True, '{[[time:-, a:-, b:#, c:-]]}')
>>> print(check(plan, schemes={"r": "{[[b:#]]}", "s": "{[[c:#]]}"}))
unsafe:
- step 'join' (flow.py:7): left rows are never freed, because its right input promises nothing on 'b' or\
 time. 's' promises values of 'c'.
<BLANKLINE>
Any one of these makes it safe:
- let 's' also give punctuation on 'b'
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

from caesura.contracts.accordance import Link, consistent
from caesura.contracts.advice import minimal_punctuation, remedies
from caesura.contracts.analysis import Analysis, Assumptions, Lifetime, Step
from caesura.contracts.cautions import cautions
from caesura.contracts.contract import Contract, covered
from caesura.contracts.feedback_flow import form_of
from caesura.contracts.rules import attributes
from caesura.contracts.verdict import Verdict, found, promised
from caesura.feedback.responder import MAX_PATTERNS
from caesura.misuse import renamed
from caesura.plan import Node, OwnFeedback, SourceNode
from caesura.punctuation import TIME
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import Template


@renamed(bounded="bounded_columns")
def check(
    node: Node,
    *,
    schemes: Mapping[str, Scheme | str] | None = None,
    lifetimes: Mapping[str, Lifetime] | None = None,
    bounded_columns: Mapping[str, Iterable[str]] | None = None,
    advise: bool = True,
    fix: bool = False,
) -> Verdict:
    """Whether a plan is safe, and if not, why and what would make it so.

    Parameters
    ----------
    node
        A plan's step: ``stream.node``.
    schemes
        What punctuation lies in data that no policy speaks for, by source: ``{"clicks":
        "{[[time:+]]}"}``.
    lifetimes
        The longest lifetime in ticks, or ``"finite"``, by source.
    bounded_columns
        Columns that have a bounded set of values, by source.
    advise
        Whether remedies are looked for.
    fix
        Whether the verdict has the mended plan too, where a remedy can be applied without more to be
        said.

    Returns
    -------
    Verdict
        True where all state goes and all output comes; printed, it shows what each step promises, or what
        grows and what to do.

    Notes
    -----
    Users write `Stream.check`. Nothing is run.

    See Also
    --------
    Stream.check : the same, of a stream.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura import contracts
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
    >>> bool(contracts.check(counts.node))
    False
    >>> known = {"schemes": {"clicks": "{[[time:+]]}"}, "lifetimes": {"clicks": 1}}
    >>> bool(contracts.check(counts.node, **known))
    True
    """
    given = Assumptions(schemes or {}, lifetimes or {}, bounded_columns or {})
    analysis = Analysis(node)
    steps = analysis.run(given)
    _agree(steps)
    findings = tuple(found(steps))
    helps = tuple(remedies(analysis, given, steps)) if findings and advise else ()
    mended = next((help.plan for help in helps if help.plan is not None), None) if fix else None
    options = {"schemes": schemes, "lifetimes": lifetimes, "bounded_columns": bounded_columns}
    own = None if mended is None else check(mended, **options)  # type: ignore[arg-type]
    notes = tuple(_notes(steps, bool(findings)))
    return Verdict(steps, findings, helps, notes, tuple(cautions(steps)), own)


class UnboundedWarning(UserWarning):
    """A plan was started although something in it grows without bound."""


@renamed(bounded="bounded_columns")
def require_safe(
    node: Node,
    *,
    allow_unbounded: bool = False,
    schemes: Mapping[str, Scheme | str] | None = None,
    lifetimes: Mapping[str, Lifetime] | None = None,
    bounded_columns: Mapping[str, Iterable[str]] | None = None,
) -> Verdict:
    """The verdict on a plan that is to start; refuses one that is not safe.

    Parameters
    ----------
    node
        A plan's step: ``stream.node``.
    allow_unbounded
        Whether an unsafe plan is started all the same, with a warning of what will grow.
    schemes
        What punctuation lies in data that no policy speaks for, by source: ``{"clicks":
        "{[[time:+]]}"}``.
    lifetimes
        The longest lifetime in ticks, or ``"finite"``, by source.
    bounded_columns
        Columns that have a bounded set of values, by source.

    Returns
    -------
    Verdict
        The verdict.

    Raises
    ------
    PlanError
        Where the plan is not safe, with what grows and what helps.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura import contracts
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
    >>> known = {"schemes": {"clicks": "{[[time:+]]}"}, "lifetimes": {"clicks": 1}}
    >>> contracts.require_safe(counts.node, **known).safe
    True
    """
    verdict = check(
        node,
        schemes=schemes,
        lifetimes=lifetimes,
        bounded_columns=bounded_columns,
        advise=not allow_unbounded,
    )
    if not allow_unbounded:
        verdict.refuse()
    elif not verdict.safe:
        warnings.warn(verdict.growth, UnboundedWarning, stacklevel=3)
    return verdict


def require_all_safe(
    nodes: Iterable[Node],
    *,
    allow_unbounded: bool = False,
    lifetimes: Mapping[str, Lifetime] | None = None,
    bounded_columns: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """The same of a plan with several outputs, each of which may read some of the sources."""
    plans = {node: Analysis(node) for node in nodes}
    everywhere = {name for analysis in plans.values() for name in analysis.names.values()}
    for node, analysis in plans.items():
        others = everywhere - set(analysis.names.values())
        require_safe(
            node,
            allow_unbounded=allow_unbounded,
            lifetimes={n: v for n, v in (lifetimes or {}).items() if n not in others},
            bounded_columns={n: v for n, v in (bounded_columns or {}).items() if n not in others},
        )


@renamed(bounded="bounded_columns", most="limit")
def adequate(
    node: Node,
    *,
    schemes: Mapping[str, Scheme | str] | None = None,
    lifetimes: Mapping[str, Lifetime] | None = None,
    bounded_columns: Mapping[str, Iterable[str]] | None = None,
    limit: int = 3,
) -> list[dict[str, Scheme]]:
    """Which punctuation of sources would make the plan safe.

    Parameters
    ----------
    node
        A plan's step: ``stream.node``.
    schemes
        What punctuation lies in data that no policy speaks for, by source: ``{"clicks":
        "{[[time:+]]}"}``.
    lifetimes
        The longest lifetime in ticks, or ``"finite"``, by source.
    bounded_columns
        Columns that have a bounded set of values, by source.
    limit
        How many templates at most are added.

    Returns
    -------
    list
        The least sets of additions, fewest first, each as a scheme by source. An empty addition means
        that the plan is safe as it is; an empty list that nothing up to the limit helps.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura import contracts
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> counts = clicks.group_by("id").tumbling(10).agg(n=cz.count())
    >>> [{name: str(s) for name, s in one.items()} for one in contracts.adequate(counts.node)]
    [{'clicks': '{[[time:-, id:#]]}'}]
    """
    analysis = Analysis(node)
    given = Assumptions(schemes or {}, lifetimes or {}, bounded_columns or {})
    return [_by_source(answer) for answer in minimal_punctuation(analysis, given, limit)]


def _by_source(answer: frozenset[tuple[str, Template]]) -> dict[str, Scheme]:
    names = sorted({name for name, _ in answer})
    return {name: Scheme.of(*(t for n, t in answer if n == name)) for name in names}


def _agree(steps: tuple[Step, ...]) -> None:
    """Both ends of every edge say the same: the chosen contracts are a consistent accordance."""
    assert consistent(_chosen(steps), _links(steps))


def _chosen(steps: tuple[Step, ...]) -> dict[str, Contract]:
    return {str(step.number): step.derived.contract for step in steps}


def _links(steps: tuple[Step, ...]) -> list[Link]:
    pairs = ((step, port, number) for step in steps for port, number in enumerate(step.inputs))
    return [Link(str(number), str(step.number), port=port) for step, port, number in pairs]


def _notes(steps: tuple[Step, ...], unsafe: bool) -> Iterable[str]:
    for step in steps:
        name = step.source
        if step.origin == "assumed":
            yield f"'{name}' is fed by hand; it is taken to promise {promised(step.scheme)}."
        elif step.origin == "undeclared" and step.scheme.kind == "some":
            yield f"'{name}' may have more punctuation between its rows than {promised(step.scheme)}."
        elif step.origin == "undeclared":
            yield (
                f"'{name}' may find any punctuation in its data. "
                "Say which with in_data(..., gives='time; ...')."
            )
        if step.origin and not unsafe:
            yield from _remembered(step)
        if isinstance(step.node, SourceNode) and step.node.unguarded:
            yield (
                f"'{name}' has no bound on the future: one row with a wrong time, as of the year 9999, makes "
                "all behind it late. Give one where it is read, as in delay('30s', future='1h')."
            )
        end = getattr(getattr(step.node, "shape", None), "end", None)
        if step.node.carries_ends and not unsafe:
            yield f"Events of '{name}' end where their column '{end}' says; one without an end stays."
        if step.node.remark and not unsafe:
            yield step.node.remark
        if step.origin == "ends" and not unsafe:
            yield f"'{name}' is a table: it ends, and its rows stay at most as long as they live."
    yield from _feedback_notes(steps)
    yield from _final_notes(steps)
    if steps[-1].scheme.kind == "none" and not unsafe:
        yield "No punctuation leaves the plan, so no row of its output is ever marked final."


def _final_notes(steps: tuple[Step, ...]) -> Iterable[str]:
    """What is final at the end of its sources only."""
    last = steps[-1].node
    held = any(one.holds_back and one.until == "end" for one in last.holds() or ())
    if held and last.properties.max_duration is None and any(s.node.results_endless for s in steps):
        yield (
            "A row of the output that never ends and may still be corrected is final at the end of the "
            "sources only: ask for changes, or for windows, to see it before."
        )


def _remembered(step: Step) -> Iterable[str]:
    """What is kept of closed values, which is no state that goes."""
    alone = [t for t in step.scheme if TIME not in t.marked]
    for_good = sorted({n for t in alone for n in t.payload if t[n] == "#"})
    if for_good:
        yield (
            f"Closed values of {', '.join(for_good)} in '{step.source}' are remembered: ranges of whole "
            "numbers as one, other values one by one."
        )
    rest = [
        t for t in step.scheme if t not in alone and not any(u != t and u.implies(t) for u in step.scheme)
    ]
    up_to_a_time = sorted({n for t in rest for n in t.payload if t[n] == "#"} - step.bounded)
    if up_to_a_time:
        yield (
            f"Values of {', '.join(up_to_a_time)} in '{step.source}' that are closed up to a time are "
            "remembered one by one, for as long as the query runs."
        )


def _stays(steps: tuple[Step, ...], step: Step, feedback: OwnFeedback) -> bool:
    """Whether feedback that stands is about more than punctuation comes to cover."""
    edge = steps[step.inputs[feedback.port]]
    form = form_of(feedback.pattern, attributes(edge.node.schema))
    return feedback.standing and not covered(form, [edge.scheme])


def _feedback_notes(steps: tuple[Step, ...]) -> Iterable[str]:
    for step in steps:
        senders = [s for s in steps if step.number in s.inputs]
        if step.answers.stops:
            names = " and ".join(s.title for s in senders)
            why = (
                "no punctuation would remove its guards"
                if step.rule.feedback_in.kind == "any"
                else "it takes none"
            )
            yield f"Feedback from step {names} stops at step {step.title}: {why}."
        if any(_stays(steps, step, feedback) for feedback in step.node.feedback_sent()):
            yield (
                f"What step {step.title} asks to leave out stays so until it is taken back; "
                f"at most {MAX_PATTERNS} patterns are kept."
            )
