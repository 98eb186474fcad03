"""The thesis' own operators (section 5.4) as rules: select, project, join, window, count.

>>> from caesura.contracts.contract import Contract
>>> from caesura.contracts.derive import realizable
>>> ct6 = Contract.parse("<In={[[a:+,b:-,c:-]]}, Out={[[a:-,b:#,c:-]]}>")
>>> realizable(select(["a", "b", "c"]), ct6)
'[[a:-, b:#, c:-]] does not follow from {[[a:+, b:-, c:-]]}'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caesura.contracts.rules import Rule
from caesura.plan import Holding, Need
from caesura.punctuation.template import Template


def select(names: Iterable[str]) -> Rule:
    """SELECT passes what it gets and keeps nothing (GCF1)."""
    known = tuple(names)
    return Rule((known,), known, lambda _, template: template, ())


def project(names: Iterable[str], keep: Iterable[str]) -> Rule:
    """PROJECT passes what speaks of kept attributes only (GCF2)."""
    kept = tuple(keep)
    return Rule((tuple(names),), kept, lambda _, template: template.over_names(kept), ())


def join(left: Sequence[str], right: Sequence[str], on: Sequence[str]) -> Rule:
    """JOIN keeps both sides until the other has promised on the key (GCF3, GCF4, CT15)."""
    keys = tuple(on)
    output = (*left, *(name for name in right if name not in left))
    holds = (
        Holding("left rows", 0, (Need(1, keys),)),
        Holding("right rows", 1, (Need(0, keys),)),
    )
    return Rule((tuple(left), tuple(right)), output, lambda _, t: t.over_names(output), holds)


def window(names: Iterable[str], on: Iterable[str], wid: str = "WID") -> Rule:
    """WINDOW turns progress on its attributes into progress on the window id (GCF5)."""
    known, attributes = tuple(names), tuple(on)
    output = (wid, *known)

    def share(_: int, template: Template) -> Template | None:
        if set(template.marked) == set(attributes) and set(template.marked.values()) == {"+"}:
            return Template.of(output, {wid: "+"})
        return None if set(template.marked) & set(attributes) else template.over_names(output)

    return Rule((known,), output, share, ())


def count(names: Iterable[str], group: Iterable[str], result: str = "COUNT(R)") -> Rule:
    """COUNT keeps a group until punctuation on its attributes covers it (GCF6 to GCF9)."""
    known, keys = tuple(names), tuple(group)
    output = (*keys, result)
    holds = (Holding("open groups", 0, (Need(0, keys),), until="forever"),)
    return Rule((known,), output, lambda _, template: template.over_names(output), holds)
