"""The thesis' own operators (section 5.4) as rules: select, project, join, window, count.

>>> from caesura.contracts.contract import Contract
>>> from caesura.contracts.derive import realizable
>>> ct6 = Contract.parse("<In={[[a:+,b:-,c:-]]}, Out={[[a:-,b:#,c:-]]}>")
>>> realizable(select(["a", "b", "c"]), ct6)
'[[a:-, b:#, c:-]] does not follow from {[[a:+, b:-, c:-]]}'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from caesura.contracts.rules import InputShare, Rule, rule_of
from caesura.ops.input import Input
from caesura.ops.windows.bucket import WID, Bucket
from caesura.plan import Holding, Need
from caesura.punctuation import TIME
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


def window(names: Iterable[str], on: str, wid: str = "WID") -> Rule:
    """WINDOW turns progress on its attribute into progress on the window id too (GCF5), as `bucket` does."""
    known = tuple(names)
    source = Input(label="window", payload=pa.schema([(name, pa.int64()) for name in known]))
    own = rule_of(Bucket(inputs=(source,), attr=on, size=1, slide=1))
    output = (wid, *known)

    def asked(way: InputShare | None, template: Template) -> Template | None:
        whole = Template.of((TIME, *known), dict(template.marked))
        found = None if way is None else way(0, whole)
        marks = {} if found is None else {wid if n == WID else n: m for n, m in found.marked.items()}
        return None if found is None else Template.of(output, marks)

    share: InputShare = lambda _, template: asked(own.share, template)  # noqa: E731
    return Rule((known,), output, share, (), also=lambda _, template: asked(own.also, template))


def count(names: Iterable[str], group: Iterable[str], result: str = "COUNT(R)") -> Rule:
    """COUNT keeps a group until punctuation on its attributes covers it (GCF6 to GCF9)."""
    known, keys = tuple(names), tuple(group)
    output = (*keys, result)
    holds = (Holding("open groups", 0, (Need(0, keys),), until="forever"),)
    return Rule((known,), output, lambda _, template: template.over_names(output), holds)
