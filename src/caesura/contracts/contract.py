"""A punctuation contract: if the inputs obey these schemes, the output obeys that one, and state goes.

The thesis' sections 5.3.2 and 5.6: a scheme per input and output, and the feedback taken and sent. A
contract whose output says nothing of an input template that it was given lists it under `Drops`.

>>> ct = Contract.parse("<In={[[a:+,b:-]], [[a:-,b:#]]}, Out={[[a:+,b:-]]}>")
>>> print(ct)
<In={[[a:+, b:-]], [[a:-, b:#]]}, Out={[[a:+, b:-]]}, Drops={[[a:-, b:#]]}>
>>> match(ANY_SCHEME, NONE), match(NONE, ANY_SCHEME)
(True, False)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from caesura.punctuation.scheme import ANY_SCHEME, NONE, Scheme
from caesura.punctuation.template import ContractError, Template

__all__ = ["ANY_SCHEME", "NONE", "Contract", "covered", "match", "mounted"]


@dataclass(frozen=True)
class Contract:
    """One record of schemes for an operator's inputs, outputs and feedback."""

    ins: tuple[Scheme, ...]
    outs: tuple[Scheme, ...]
    feedback_in: tuple[Scheme, ...] = ()
    """The feedback taken, per output."""
    feedback_out: tuple[Scheme, ...] = ()
    """The feedback sent, per input."""
    drops: tuple[Scheme, ...] = ()
    """Per input, the templates that the output says nothing of; found by itself where not given."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not self.feedback_in:
            put(self, "feedback_in", (NONE,) * len(self.outs))
        if not self.feedback_out:
            put(self, "feedback_out", (NONE,) * len(self.ins))
        if not self.drops:
            put(self, "drops", tuple(_dropped(scheme, self.outs) for scheme in self.ins))
        for count, given, what in (
            (len(self.outs), self.feedback_in, "Feedback.In"),
            (len(self.ins), self.feedback_out, "Feedback.Out"),
        ):
            if len(given) != count:
                raise ContractError(
                    f"a contract has {len(given)} schemes for {what}; wanted {count}.",
                    remedy="Give one for each edge, any or none where nothing is said.",
                )

    @staticmethod
    def parse(text: str) -> Contract:
        """A contract from its text.

        Parameters
        ----------
        text
            ``<In1={...}, In2={...}, Out={...}, Feedback.In=any, Feedback.Out=none>``.

        Returns
        -------
        Contract
            The contract.

        Raises
        ------
        ContractError
            Where it is no such text.

        Examples
        --------
        >>> from caesura.contracts import Contract, Scheme, Template
        >>> print(Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}>"))
        <In={[[a:+]]}, Out={[[a:+]]}>
        """
        fields: dict[str, dict[int, Scheme]] = {}
        for name, number, body in _FIELD.findall(text):
            fields.setdefault(name, {})[int(number or 1)] = Scheme.parse(body)
        leftover = _FIELD.sub("", text).strip("<>, \n\t{}")
        if leftover or "In" not in fields or "Out" not in fields:
            problem = f"'{leftover}' is no part of a contract." if leftover else "a contract lacks In or Out."
            raise ContractError(problem, remedy="Write <In={[[a:+, b:-]]}, Out={[[a:+, b:-]]}>.")
        ins, outs = _numbered(fields["In"]), _numbered(fields["Out"])
        received = _numbered(fields.get("Feedback.In", {}))
        sent = _numbered(fields.get("Feedback.Out", {}))
        if len(sent) == 1 < len(ins):
            sent *= len(ins)
        return Contract(ins, outs, received, sent, _numbered(fields.get("Drops", {})))

    def __str__(self) -> str:
        parts = [*_fields("In", self.ins), *_fields("Out", self.outs)]
        if any(s != NONE for s in (*self.feedback_in, *self.feedback_out)):
            parts += _fields("Feedback.In", self.feedback_in) + _fields("Feedback.Out", self.feedback_out)
        if any(s != NONE for s in self.drops):
            parts += _fields("Drops", self.drops)
        return f"<{', '.join(parts)}>"

    @property
    def well_formed(self) -> bool:
        """Whether all feedback that it takes is covered by its own punctuation (section 5.6.4).

        `any` is well-formed: only what is covered is mounted.
        """
        return all(covered(template, self.ins) for received in self.feedback_in for template in received)


def covered(feedback: Template, ins: Iterable[Scheme]) -> bool:
    """Whether some template of every input has each mark of a feedback template.

    Parameters
    ----------
    feedback
        The form of the feedback.
    ins
        What the inputs promise. A ``+`` covers a ``#``: progress passes the value.

    Returns
    -------
    bool
        True or False. Where it is true, every guard that such feedback puts up goes in time.

    Examples
    --------
    >>> from caesura.contracts import Scheme, Template, covered
    >>> covered(Template.parse("[[a:#]]"), [Scheme.parse("{[[a:+]]}")])
    True
    """
    return all(any(template.implies(feedback) for template in scheme) for scheme in ins)


def mounted(contract: Contract, feedback: Template, output: int = 0) -> bool:
    """Whether a guard is put up for such feedback.

    Parameters
    ----------
    contract
        The step's contract.
    feedback
        The form of the feedback.
    output
        The number of the output that it comes in at.

    Returns
    -------
    bool
        True where it is taken, and punctuation will remove the guard.

    Examples
    --------
    >>> from caesura.contracts import Contract, Scheme, Template
    >>> contract = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}, Feedback.In={[[a:+]]}>")
    >>> from caesura.contracts import mounted
    >>> mounted(contract, Template.parse("[[a:+]]"))
    True
    """
    taken = contract.feedback_in[output]
    return (taken.kind == "any" or feedback in taken) and covered(feedback, contract.ins)


def match(antecedent: Scheme, subsequent: Scheme) -> bool:
    """Whether what one step takes fits what another sends.

    Parameters
    ----------
    antecedent
        What is taken.
    subsequent
        What is sent.

    Returns
    -------
    bool
        True or False.

    Examples
    --------
    >>> from caesura.contracts import ANY_SCHEME, NONE, match
    >>> match(ANY_SCHEME, NONE), match(NONE, ANY_SCHEME)
    (True, False)
    """
    if antecedent.kind == "any" or subsequent.kind == "none":
        return True
    return antecedent.kind == "some" and antecedent == subsequent


def _dropped(scheme: Scheme, outs: Iterable[Scheme]) -> Scheme:
    marks = {(name, mark) for out in outs for template in out for name, mark in template.marked.items()}
    names = {name for name, _ in marks}
    lost = [t for t in scheme if t.marked and not any(n in names for n in t.marked)]
    return Scheme.of(*lost) if marks and len(scheme) > 1 else NONE


def _fields(name: str, schemes: tuple[Scheme, ...]) -> list[str]:
    if len(schemes) == 1:
        return [f"{name}={schemes[0]}"]
    return [f"{name}{i}={scheme}" for i, scheme in enumerate(schemes, 1)]


def _numbered(found: dict[int, Scheme]) -> tuple[Scheme, ...]:
    return tuple(found[i] for i in sorted(found))


_FIELD = re.compile(
    r"(Feedback\.In|Feedback\.Out|Drops|In|Out)(\d*)\s*=\s*"
    r"(\{[^{}]*\}|any|none|∅|↻|◯|\[\[?[^\[\]]*\]\]?)",
)
