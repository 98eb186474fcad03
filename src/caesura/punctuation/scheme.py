"""A punctuation scheme: the templates a stream gives, each of them for the whole stream.

Besides sets of templates there are `ANY` (feedback of any form is taken) and `NONE` (none is), as in the
thesis' section 5.6.2.

>>> print(Scheme.parse("{[[a:+, b:-, c:-]], [[a:-, b:#, c:-]]}"))
{[[a:+, b:-, c:-]], [[a:-, b:#, c:-]]}
>>> print(Scheme.parse("any"), Scheme.parse("none"), Scheme.parse("∅") == NONE)
any none True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from caesura.errors import closest
from caesura.punctuation import TIME, Pattern
from caesura.punctuation.template import ContractError, Mark, Template, pieces, template_of, usual

Kind = Literal["some", "any", "none"]
_WORDS: dict[str, Kind] = {"any": "any", "↻": "any", "◯": "any", "none": "none", "∅": "none", "{}": "none"}


@dataclass(frozen=True)
class Scheme:
    """A set of templates, or any, or none."""

    templates: frozenset[Template] = frozenset()
    kind: Kind = "some"

    def __post_init__(self) -> None:
        if (self.kind == "some") != bool(self.templates):
            raise ContractError("a scheme without templates is no scheme.", remedy="Write any or none.")
        names = {tuple(sorted(t.names)) for t in self.templates}
        if len(names) > 1:
            shown = " and ".join(f"({', '.join(n)})" for n in sorted(names))
            raise ContractError(
                f"the templates of one scheme speak of different attributes: {shown}.",
                remedy="Let every template name all attributes of the stream.",
            )

    @staticmethod
    def of(*templates: Template) -> Scheme:
        """The scheme of some templates.

        Parameters
        ----------
        *templates
            What forms of punctuation a stream gives.

        Returns
        -------
        Scheme
            The scheme; NONE without any.

        Examples
        --------
        >>> from caesura.contracts import Scheme, Template
        >>> print(Scheme.of(Template.over(["time", "id"], time="+")))
        {[[time:+, id:-]]}
        """
        return Scheme(frozenset(templates)) if templates else NONE

    @staticmethod
    def parse(text: str, names: Iterable[str] | None = None) -> Scheme:
        """A scheme from its text.

        Parameters
        ----------
        text
            The columns that punctuation speaks of, as in ``time; shop`` (progress of time, and values of
            shop), ``time, shop`` (both in one punctuation) or ``seq <`` (values in order); or the thesis'
            form ``{[[time:+]], [[shop:#]]}``; or ``any`` or ``none``.
        names
            The attributes of the schema; others are refused where it is given.

        Returns
        -------
        Scheme
            The scheme.

        Raises
        ------
        ContractError
            Where it is no such text, or names another attribute.

        Examples
        --------
        >>> from caesura.contracts import Scheme, Template
        >>> print(Scheme.parse("{[[time:+]]}", ["time", "id"]))
        {[[time:+, id:-]]}
        >>> print(Scheme.parse("time; id", ["time", "id"]))
        {[[time:+, id:-]], [[time:-, id:#]]}
        """
        stripped = text.strip()
        if stripped in _WORDS:
            return Scheme(frozenset(), _WORDS[stripped])
        if _COLUMNS.fullmatch(stripped):
            return Scheme._of_columns(stripped, None if names is None else tuple(names))
        inner = stripped[1:-1] if stripped.startswith("{") and stripped.endswith("}") else stripped
        found = _TEMPLATE.findall(inner)
        if not found or _TEMPLATE.sub("", inner).strip(" ,"):
            raise ContractError(
                f"'{text}' is no scheme.",
                remedy="Write the columns that punctuation speaks of, as in 'time; shop', any or none.",
            )
        known = None if names is None else tuple(names)
        return Scheme.of(*(Template.parse(t, known) for t in found))

    @staticmethod
    def _of_columns(text: str, known: tuple[str, ...] | None) -> Scheme:
        forms = [
            {name: "+" if order else usual(name) for name, order in _COLUMN.findall(form)}
            for form in text.split(";")
        ]
        names = tuple(dict.fromkeys(name for form in forms for name in form)) if known is None else known
        return Scheme.of(*(Template.of(names, form) for form in forms))

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self)) + "}" if self.kind == "some" else self.kind

    def __iter__(self) -> Iterator[Template]:
        return iter(sorted(self.templates, key=lambda t: _order(t)))

    def __len__(self) -> int:
        return len(self.templates)

    def __contains__(self, template: object) -> bool:
        return self.kind == "any" or template in self.templates

    @property
    def in_words(self) -> str:
        """What a stream with this scheme promises, for messages."""
        return " and ".join(t.in_words for t in self) if self.kind == "some" else "no punctuation"

    def admits(self, pattern: Pattern) -> bool:
        """Whether a punctuation has the form of a template, or says less than one.

        Parameters
        ----------
        pattern
            The punctuation's pattern.

        Returns
        -------
        bool
            True or False; the end of a stream is always admitted.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Scheme, Template
        >>> scheme = Scheme.parse("{[[time:+, id:-]]}")
        >>> scheme.admits(cz.cti(5).pattern), scheme.admits(cz.definite(id=3).pattern)
        (True, False)
        """
        if not pattern.attributes or self.kind == "any":
            return True
        for piece in pieces(pattern):
            form = template_of(piece, next(iter(self)).names) if self.templates else None
            if form is None or not any(t.implies(form) for t in self.templates):
                return False
        return True

    def least(self) -> Scheme:
        """Without the templates that another one says already.

        Returns
        -------
        Scheme
            The scheme.

        Examples
        --------
        >>> from caesura.contracts import Scheme, Template
        >>> print(Scheme.parse("{[[time:+, id:-]], [[time:+, id:#]]}").least())
        {[[time:+, id:-]]}
        """
        return Scheme.of(*minimal(self.templates)) if self.kind == "some" else self

    def implies(self, other: Scheme) -> bool:
        """Whether a stream with this scheme covers all that one with the other does.

        Parameters
        ----------
        other
            The other scheme.

        Returns
        -------
        bool
            True or False.

        Examples
        --------
        >>> from caesura.contracts import Scheme, Template
        >>> scheme = Scheme.parse("{[[time:+, id:-]]}")
        >>> scheme.implies(Scheme.parse("none"))
        True
        """
        return all(any(mine.implies(t) for mine in self.templates) for t in other.templates)


NONE = Scheme(frozenset(), "none")
ANY_SCHEME = Scheme(frozenset(), "any")
_COLUMN = re.compile(r"(\w+)\s*(<?)")
_COLUMNS = re.compile(r"\w+\s*<?(\s*[,;]\s*\w+\s*<?)*")
_TEMPLATE = re.compile(r"\[\[?[^\[\]]*\]\]?")


def minimal(templates: Iterable[Template]) -> list[Template]:
    """The templates that no other one implies; of two that say the same, the first."""
    kept: list[Template] = []
    for template in sorted(templates, key=_order):
        if not any(other.implies(template) for other in kept):
            kept.append(template)
    return kept


def check_scheme(scheme: Scheme, schema: pa.Schema, name: str) -> None:
    """Refuses a scheme that names unknown columns, or that no punctuation can satisfy."""
    if scheme.kind == "any":
        raise ContractError(
            f"the source '{name}' declares 'any', which promises nothing.",
            remedy="Name its templates, as in {[[time:+]]}.",
        )
    for template in scheme:
        for column, mark in template.marked.items():
            if column != TIME and column not in schema.names:
                raise ContractError(
                    f"the scheme of '{name}' marks '{column}', which is not there.",
                    remedy=closest(column, [TIME, *schema.names]),
                )
            if column != TIME:
                _check_mark(column, mark, schema.field(column).type, name)


def _check_mark(column: str, mark: Mark, type_: pa.DataType, name: str) -> None:
    if pa.types.is_nested(type_):
        raise ContractError(
            f"the scheme of '{name}' marks '{column}', but no punctuation speaks of columns of type {type_}.",
            remedy="Select a field of it into a column of its own, and mark that.",
        )
    if mark == "+" and pa.types.is_boolean(type_):
        raise ContractError(
            f"the scheme of '{name}' promises progress on '{column}', but a column of type {type_} "
            "cannot move on without end.",
            remedy=f"Write {column}:# for punctuation on its values.",
        )


def _order(template: Template) -> tuple[int, tuple[tuple[bool, str, str], ...]]:
    marked = tuple(
        (name != TIME, name, "0" if mark == "+" else "1") for name, mark in template.marked.items()
    )
    return len(marked), marked
