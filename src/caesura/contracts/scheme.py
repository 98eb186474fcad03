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

from caesura.contracts.template import ContractError, Template
from caesura.punctuation import TIME

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
        """The scheme of these templates; NONE without any."""
        return Scheme(frozenset(templates)) if templates else NONE

    @staticmethod
    def parse(text: str, names: Iterable[str] | None = None) -> Scheme:
        """Reads `{[[...]], [[...]]}`, `any` or `none`; unknown columns are refused where names are given."""
        stripped = text.strip()
        if stripped in _WORDS:
            return Scheme(frozenset(), _WORDS[stripped])
        inner = stripped[1:-1] if stripped.startswith("{") and stripped.endswith("}") else stripped
        found = _TEMPLATE.findall(inner)
        if not found or _TEMPLATE.sub("", inner).strip(" ,"):
            raise ContractError(
                f"'{text}' is no scheme.", remedy="Write {[[a:+, b:-]], [[a:-, b:#]]}, any or none."
            )
        known = None if names is None else tuple(names)
        return Scheme.of(*(Template.parse(t, known) for t in found))

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

    def least(self) -> Scheme:
        """Without the templates that another one says already.

        >>> print(Scheme.parse("{[[a:+, b:-]], [[a:+, b:#]]}").least())
        {[[a:+, b:-]]}
        """
        return Scheme.of(*minimal(self.templates)) if self.kind == "some" else self

    def implies(self, other: Scheme) -> bool:
        """Whether a stream with this scheme covers all that one with the other does."""
        return all(any(mine.implies(t) for mine in self.templates) for t in other.templates)


NONE = Scheme(frozenset(), "none")
ANY_SCHEME = Scheme(frozenset(), "any")
_TEMPLATE = re.compile(r"\[\[?[^\[\]]*\]\]?")


def minimal(templates: Iterable[Template]) -> list[Template]:
    """The templates that no other one implies; of two that say the same, the first."""
    kept: list[Template] = []
    for template in sorted(templates, key=_order):
        if not any(other.implies(template) for other in kept):
            kept.append(template)
    return kept


def _order(template: Template) -> tuple[int, tuple[tuple[bool, str, str], ...]]:
    marked = tuple(
        (name != TIME, name, "0" if mark == "+" else "1") for name, mark in template.marked.items()
    )
    return len(marked), marked
