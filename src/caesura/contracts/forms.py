"""General contract forms: contracts for any schema, with variables for schemes and groups of attributes.

A form stays symbolic. It is bound to the scheme that an operator is given, never spread out into the
contracts that it stands for (one `SELECT` over n attributes has 2^(3^n) of them).

>>> print(GCF3)
GCF3 = <In1={[[L:-, J:+]]}, In2={[[J:+, R:-]]}, Out={[[L:-, J:+, R:-]]}>
>>> print(GCF3.bind(L=["a"], J=["b"], R=["c"]))
<In1={[[a:-, b:+]]}, In2={[[b:+, c:-]]}, Out={[[a:-, b:+, c:-]]}>
>>> print(GCF1.on(Scheme.parse("{[[b:+, c:-]]}")))
<In={[[b:+, c:-]]}, Out={[[b:+, c:-]]}>
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from caesura.contracts.contract import Contract
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import ContractError, Template


@dataclass(frozen=True)
class Variable:
    """Any scheme; `keeps` names the group of attributes that the output keeps of it."""

    name: str
    keeps: str | None = None

    def __str__(self) -> str:
        return self.name if self.keeps is None else f"{self.name}[{self.keeps}]"


@dataclass(frozen=True)
class GeneralForm:
    """A contract with variables in it."""

    name: str
    ins: tuple[Scheme | Variable, ...]
    out: Scheme | Variable

    @staticmethod
    def parse(name: str, text: str) -> GeneralForm:
        """A form from its text.

        Parameters
        ----------
        name
            What it is called.
        text
            ``<In=PS, Out=PS>``, or with names for groups of attributes: ``<In={[[G:+, A:-]]},
            Out={[[G:+]]}>``.

        Returns
        -------
        GeneralForm
            The form.

        Examples
        --------
        >>> from caesura.contracts import GeneralForm, Scheme
        >>> print(GeneralForm.parse("copy", "<In=PS, Out=PS>"))
        copy = <In=PS, Out=PS>
        """
        fields = _FIELD.findall(text)
        ins = tuple(_side(body) for what, body in fields if what.startswith("In"))
        outs = [_side(body) for what, body in fields if what == "Out"]
        if not ins or len(outs) != 1:
            raise ContractError(f"'{text}' is no general form.", remedy="Write <In=PS, Out=PS>.")
        return GeneralForm(name, ins, outs[0])

    def __str__(self) -> str:
        several = len(self.ins) > 1
        sides = [f"In{i if several else ''}={side}" for i, side in enumerate(self.ins, 1)]
        return f"{self.name} = <{', '.join([*sides, f'Out={self.out}'])}>"

    def bind(self, schemes: Mapping[str, Scheme] | None = None, /, **groups: Iterable[str]) -> Contract:
        """The contract for given schemes and groups.

        Parameters
        ----------
        schemes
            A scheme for each variable.
        **groups
            The attributes of each group; a name that is no group is an attribute.

        Returns
        -------
        Contract
            The contract.

        Examples
        --------
        >>> from caesura.contracts import GeneralForm, Scheme
        >>> keyed = GeneralForm.parse("keyed", "<In={[[G:+, A:-]]}, Out={[[G:+]]}>")
        >>> print(keyed.bind(G=["id"], A=["v"]))
        <In={[[id:+, v:-]]}, Out={[[id:+]]}>
        """
        known = {name: tuple(attributes) for name, attributes in groups.items()}
        bound = schemes or {}
        ins = tuple(_bound(side, bound, known) for side in self.ins)
        return Contract(ins, (_bound(self.out, bound, known),))

    def on(self, *given: Scheme, **groups: Iterable[str]) -> Contract | None:
        """The contract that the form offers for some input schemes.

        Parameters
        ----------
        *given
            A scheme for each input.
        **groups
            The attributes of each group.

        Returns
        -------
        Contract or None
            The contract; None where it offers none.

        Examples
        --------
        >>> from caesura.contracts import GeneralForm, Scheme
        >>> copy = GeneralForm.parse("copy", "<In=PS, Out=PS>")
        >>> print(copy.on(Scheme.parse("{[[a:+]]}")))
        <In={[[a:+]]}, Out={[[a:+]]}>
        """
        if len(given) != len(self.ins):
            return None
        schemes = {
            side.name: scheme
            for side, scheme in zip(self.ins, given, strict=True)
            if isinstance(side, Variable)
        }
        try:
            contract = self.bind(schemes, **groups)
        except ContractError:
            return None
        return contract if contract.ins == given else None


def _side(body: str) -> Scheme | Variable:
    found = _VARIABLE.fullmatch(body)
    return Variable(found.group(1), found.group(2)) if found else Scheme.parse(body)


def _bound(
    side: Scheme | Variable, schemes: Mapping[str, Scheme], groups: Mapping[str, Sequence[str]]
) -> Scheme:
    if isinstance(side, Scheme):
        return Scheme.of(*(_spread(template, groups) for template in side))
    if side.name not in schemes:
        raise ContractError(
            f"the scheme {side.name} is not bound.", remedy=f"Give it: bind({{'{side.name}': scheme}})."
        )
    if side.keeps is None:
        return schemes[side.name]
    kept = groups.get(side.keeps, ())
    narrowed = [template.over_names(kept) for template in schemes[side.name]]
    if None in narrowed:
        raise ContractError(
            f"{side.name} names attributes besides {', '.join(kept)}, which do not survive.",
            remedy=f"Punctuate only {', '.join(kept)}, or keep the other attributes.",
        )
    return Scheme.of(*(t for t in narrowed if t is not None))


def _spread(template: Template, groups: Mapping[str, Sequence[str]]) -> Template:
    return Template(tuple((n, mark) for name, mark in template.marks for n in groups.get(name, (name,))))


_FIELD = re.compile(r"(In\d*|Out)\s*=\s*(\{[^{}]*\}|\w+(?:\[\w+\])?)")
_VARIABLE = re.compile(r"(\w+)(?:\[(\w+)\])?")

GCF1 = GeneralForm.parse("GCF1", "<In=PS, Out=PS>")
GCF2 = GeneralForm.parse("GCF2", "<In=PSI, Out=PSI[X]>")
GCF3 = GeneralForm.parse("GCF3", "<In1={[[L:-, J:+]]}, In2={[[J:+, R:-]]}, Out={[[L:-, J:+, R:-]]}>")
GCF4 = GeneralForm.parse("GCF4", "<In1={[[L:-, J:#]]}, In2={[[J:#, R:-]]}, Out={[[L:-, J:#, R:-]]}>")
GCF5 = GeneralForm.parse("GCF5", "<In={[[W:+, X:-]]}, Out={[[WID:+, W:-, X:-]]}>")
GCF6 = GeneralForm.parse("GCF6", "<In={[[G:+, R:-]]}, Out={[[G:#, COUNT(R):-]]}>")
GCF7 = GeneralForm.parse("GCF7", "<In={[[G:#, R:-]]}, Out={[[G:#, COUNT(R):-]]}>")
GCF8 = GeneralForm.parse("GCF8", "<In={[[G:+, R:-]], [[G:#, R:-]]}, Out={[[G:#, COUNT(R):-]]}>")
GCF9 = GeneralForm.parse("GCF9", "<In={[[g:+, R:-]]}, Out={[[g:+, COUNT(R):-]]}>")
FORMS = (GCF1, GCF2, GCF3, GCF4, GCF5, GCF6, GCF7, GCF8, GCF9)
