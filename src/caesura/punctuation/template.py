"""A punctuation template: per attribute "up to here" (+), "these values" (#), or nothing (-).

The thesis' section 5.3.1. A template speaks of every attribute of its schema; in our streams `time` is
one of them. It promises that the whole domain is covered in time: a mark `+` moves on without end, and a
mark `#` comes for each value, null too.

>>> t = Template.parse("[[a:+, b:#, c:-]]")
>>> from caesura.punctuation import Pattern, le, lt
>>> [t.conforms(p) for p in (Pattern(a=le("11:30"), b=26), Pattern(b=26), Pattern(a="11:30", b=lt(26)))]
[True, False, False]
>>> print(t)
[[a:+, b:#, c:-]]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, cast

from caesura.errors import CaesuraError, closest
from caesura.punctuation import NULL, TIME, Pattern, Values

Mark = Literal["+", "#", "-"]
MARKS: tuple[Mark, ...] = ("+", "#", "-")


def usual(name: str) -> Mark:
    """How punctuation mostly speaks of a column: up to an instant of time, or of values one by one."""
    return "+" if name == TIME else "#"


class ContractError(CaesuraError):
    """A template, scheme or contract that says nothing sound."""


@dataclass(frozen=True)
class Template:
    """The form of some punctuation: one mark per attribute, in the schema's order."""

    marks: tuple[tuple[str, Mark], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.marks]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ContractError(f"a template names '{twice}' twice.", remedy="Give each attribute one mark.")
        for name, mark in self.marks:
            if mark not in MARKS:
                raise ContractError(
                    f"'{name}' has the mark '{mark}'.", remedy="Write + (up to), # (values) or - (anything)."
                )
            if name == TIME and mark == "#":
                raise ContractError(
                    f"'{TIME}' is marked '#', but no source closes instants one by one.",
                    remedy=f"Write {TIME}:+ for progress of time.",
                )

    @staticmethod
    def over(names: Iterable[str], **marked: str) -> Template:
        """A template over attributes.

        Parameters
        ----------
        names
            The attributes of the schema.
        **marked
            For each attribute ``+`` (up to here) or ``#`` (these values).

        Returns
        -------
        Template
            The template; attributes that are not given are ``-``.

        Examples
        --------
        >>> from caesura.contracts import Template
        >>> print(Template.over(["time", "id"], time="+"))
        [[time:+, id:-]]
        """
        return Template.of(names, marked)

    @staticmethod
    def of(names: Iterable[str], marked: Mapping[str, str]) -> Template:
        """A template over attributes, from a mapping of marks.

        Parameters
        ----------
        names
            The attributes of the schema.
        marked
            For each attribute ``+`` (up to here) or ``#`` (these values).

        Returns
        -------
        Template
            The template; attributes that are not given are ``-``.

        Examples
        --------
        >>> from caesura.contracts import Template
        >>> print(Template.of(["time", "id"], {"id": "#"}))
        [[time:-, id:#]]
        """
        known = tuple(names)
        for name in marked:
            if name not in known:
                raise ContractError(
                    f"a template marks '{name}', which is not there.", remedy=closest(name, known)
                )
        return Template(tuple((name, cast(Mark, marked.get(name, "-"))) for name in known))

    @staticmethod
    def parse(text: str, names: Iterable[str] | None = None) -> Template:
        """A template from its text.

        Parameters
        ----------
        text
            ``[[time:+, id:-]]``.
        names
            The attributes of the schema, in which missing ones are ``-``; without it, those of the text.

        Returns
        -------
        Template
            The template.

        Raises
        ------
        ContractError
            Where it is no such text, or names another attribute.

        Examples
        --------
        >>> from caesura.contracts import Template
        >>> print(Template.parse("[[time:+]]", ["time", "id"]))
        [[time:+, id:-]]
        """
        inner = _BRACKETS.fullmatch(text.strip())
        if inner is None:
            raise ContractError(f"'{text}' is no template.", remedy="Write one like [[a:+, b:#, c:-]].")
        marks: list[tuple[str, Mark]] = []
        for part in inner.group(1).split(","):
            found = _DESCRIPTOR.fullmatch(part.strip())
            if found is None:
                raise ContractError(
                    f"'{part.strip()}' in the template '{text}' is no column with a mark.",
                    remedy="Write a column, a colon, and one of + # -, as in id:#.",
                )
            marks.append((found.group(1), cast(Mark, found.group(2))))
        read = Template(tuple(marks))
        return read if names is None else Template.of(names, dict(marks))

    def __str__(self) -> str:
        return f"[[{', '.join(f'{name}:{mark}' for name, mark in self.marks)}]]"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes of the schema."""
        return tuple(name for name, _ in self.marks)

    @cached_property
    def marked(self) -> Mapping[str, Mark]:
        """The attributes that it constrains, with their marks."""
        return {name: mark for name, mark in self.marks if mark != "-"}

    @cached_property
    def payload(self) -> frozenset[str]:
        """The constrained attributes besides time."""
        return frozenset(self.marked) - {TIME}

    def __getitem__(self, name: str) -> Mark:
        return self.marked.get(name, "-")

    @property
    def brief(self) -> str:
        """The columns that it constrains, as users write them: ``<`` where values come in order.

        >>> Template.over(["time", "a", "b"], time="+", b="#").brief
        'time, b'
        >>> Template.over(["time", "a", "b"], a="+").brief
        'a <'
        """
        if any(not name.isidentifier() or name in ("any", "none") for name in self.marked):
            return f"[[{', '.join(f'{name}:{mark}' for name, mark in self.marked.items())}]]"
        return ", ".join(f"{name} <" * (mark != usual(name)) or name for name, mark in self.marked.items())

    @property
    def in_words(self) -> str:
        """What a source that gives it promises, for messages."""
        if not self.marked:
            return "its end"
        how = {"+": "progress on", "#": "values of"}
        return " with ".join(f"{how[mark]} '{name}'" for name, mark in self.marked.items())

    def conforms(self, pattern: Pattern) -> bool:
        """Whether a punctuation has this form.

        Parameters
        ----------
        pattern
            The punctuation's pattern.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Template
        >>> on_time = Template.over(["time", "id"], time="+")
        >>> on_time.conforms(cz.cti(5).pattern)
        True
        """
        for name in pattern.attributes:
            if name not in self.names:
                raise ContractError(
                    f"the punctuation '{pattern}' names '{name}', which is not in {self}.",
                    remedy=closest(name, self.names),
                )
        return all(_has_form(pattern[name], mark, name in pattern) for name, mark in self.marks)

    def implies(self, other: Template) -> bool:
        """Whether a punctuation of this form says at least as much as one of the other.

        Parameters
        ----------
        other
            The other template.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.contracts import Template
        >>> on_time = Template.over(["time", "id"], time="+")
        >>> on_time.implies(Template.over(["time", "id"], time="+", id="#"))
        True
        """
        return all(_gives(mark, other[name]) for name, mark in self.marked.items())

    def both(self, other: Template) -> Template:
        """The form of what two punctuations say together.

        Parameters
        ----------
        other
            The other template.

        Returns
        -------
        Template
            The template; ``<= 5`` and ``= 3`` say ``= 3``.

        Examples
        --------
        >>> from caesura.contracts import Template
        >>> on_time = Template.over(["time", "id"], time="+")
        >>> print(on_time.both(Template.over(["time", "id"], id="#")))
        [[time:+, id:#]]
        """
        names = [*self.names, *(n for n in other.names if n not in self.names)]
        return Template(tuple((n, _joined(self[n], other[n])) for n in names))

    def over_names(self, names: Iterable[str]) -> Template | None:
        """The same marks over another schema.

        Parameters
        ----------
        names
            The attributes of that schema.

        Returns
        -------
        Template or None
            The template; None where a mark would be lost.

        Examples
        --------
        >>> from caesura.contracts import Template
        >>> on_time = Template.over(["time", "id"], time="+")
        >>> print(on_time.over_names(["time", "v"]))
        [[time:+, v:-]]
        """
        known = tuple(names)
        return Template.of(known, dict(self.marked)) if set(self.marked) <= set(known) else None


_BRACKETS = re.compile(r"\[\[?([^\[\]]*)\]\]?")
_DESCRIPTOR = re.compile(r"(.+?)\s*:\s*([+#-])")


def template_of(pattern: Pattern, names: Iterable[str]) -> Template | None:
    """The template that a punctuation conforms to; None for ranges such as 3 <= a < 7.

    >>> print(template_of(Pattern(time=Values(True, ((5, 0),), False, "int"), id=4), ["time", "id"]))
    [[time:+, id:#]]
    """
    marked: dict[str, str] = {}
    for name, values in pattern.items():
        mark = next((m for m in MARKS if m != "-" and _has_form(values, m, True)), None)
        if mark is None or (name == TIME and mark == "#"):
            return None
        marked[name] = mark
    return Template.of(names, marked)


def pieces(pattern: Pattern) -> list[Pattern]:
    """A punctuation as several that have a form, where steps have put some together.

    >>> from caesura.punctuation import lt, one_of
    >>> [str(p) for p in pieces(Pattern(id=lt(0).union(one_of([2, None]))))]
    ['id < 0 or null', 'id = 2']
    """
    parts = []
    for name, values in pattern.items():
        split = [values]
        if values.low and len(values.cuts) > 1:
            low = Values(True, values.cuts[:1], values.null, values.kind)
            split = [low, values.minus(low)]
        parts.append([(name, some) for some in split])
    return [Pattern.of(dict(choice)) for choice in product(*parts)]


def _has_form(values: Values, mark: Mark, named: bool) -> bool:
    if mark == "-" or not named:
        return mark == "-" and not named
    if mark == "+":
        return values.low and len(values.cuts) == 1
    if values == NULL:
        return True
    finite = values.kind == "int"
    return bool(values.cuts) and all(
        i.is_point or (finite and i.lo is not None and i.hi is not None) for i in values.intervals
    )


def _gives(have: Mark, want: Mark) -> bool:
    return have == want or (have == "+" and want == "#")


def _joined(a: Mark, b: Mark) -> Mark:
    if "-" in (a, b):
        return b if a == "-" else a
    return "+" if a == b == "+" else "#"
