"""The contract of an operator on given input schemes, derived from its rule; or what stays for ever.

>>> passing = Rule((("a", "b"),), ("a", "b"), lambda _, template: template, ())
>>> print(derive(passing, [Scheme.parse("{[[a:-, b:+]]}")]).contract)
<In={[[a:-, b:+]]}, Out={[[a:-, b:+]]}>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from caesura.contracts.contract import Contract
from caesura.contracts.rules import Rule
from caesura.plan import OWN, Holding, Need
from caesura.punctuation import TIME
from caesura.punctuation.scheme import NONE, Scheme, minimal
from caesura.punctuation.template import Template

Ends = Literal["bounded", "finite", "never"]
"""What is known of lifetimes: a longest one, that each ends, or nothing."""
Lack = Literal["no punctuation", "lifetimes", "time only", "merging", "undeclared"]


@dataclass(frozen=True)
class Unmet:
    """State that no punctuation frees: which, what it lacks, and on which input."""

    hold: Holding
    need: Need
    lack: Lack


@dataclass(frozen=True)
class Derived:
    """A contract, and the guarantees that it cannot give."""

    contract: Contract
    unmet: tuple[Unmet, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether all state goes and all output comes."""
        return not self.unmet


def derive(
    rule: Rule,
    schemes: Sequence[Scheme],
    ends: Sequence[Ends] = (),
    own: Scheme = NONE,
    bounded: Sequence[frozenset[str]] = (),
    struck: Mapping[int, Scheme] = {},
    merged: Sequence[bool] = (),
) -> Derived:
    """What an operator offers when its inputs obey these schemes; `own` is what a source gives.

    `bounded` are the columns of each input with a bounded set of values; `ends` what is known of lifetimes;
    `struck` are the forms of feedback by which rows of an input are let go; `merged` says of which inputs
    rows may go on without end, though all that they are made of ends.
    """
    lifetimes: list[Ends] = list(ends) or ["never" for _ in schemes]
    holds = [hold for hold in rule.holds if not (hold.struck and _struck(struck.get(hold.rows_of, NONE)))]
    unmet = tuple(lack for hold in holds for lack in _lacks(hold, schemes, lifetimes, own, bounded))
    for hold in holds if any(merged) else ():
        if hold.ends_final and merged[hold.rows_of] and not _lacks(hold, schemes, lifetimes, own, bounded):
            lacks = _lacks(hold, schemes, ["never"] * len(lifetimes), own, bounded)
            unmet += tuple(replace(lack, lack="merging") for lack in lacks)
    out = own
    if rule.inputs and own == NONE:
        out = Scheme.of(*minimal([*leaving(rule, schemes), *_alone(rule, schemes, unmet)]))
    if any(u.hold.holds_back for u in unmet):
        out = Scheme.of(*(t for t in out if t[TIME] == "-"))
    contract = Contract(
        tuple(schemes),
        (out,),
        feedback_in=(rule.feedback_in,),
        feedback_out=rule.feedback_out,
        drops=tuple(_dropped(rule, schemes)),
    )
    return Derived(contract, unmet)


def _struck(feedback: Scheme) -> bool:
    """Whether feedback reaches every row in time: it moves on with time."""
    return any(set(template.marked) == {TIME} for template in feedback)


def leaving(rule: Rule, schemes: Sequence[Scheme]) -> list[Template]:
    """The templates of the output: one share of every input, together."""
    shares = []
    for port, scheme in enumerate(schemes):
        if port in rule.steering:
            continue
        passed = [rule.share(port, template) for template in scheme]
        passed += [rule.also(port, template) for template in scheme] if rule.also is not None else []
        shares.append(minimal(t for t in passed if t is not None))
    joined = []
    for first, *others in product(*shares):
        whole = first
        for share in others:
            whole = whole.both(share)
        joined.append(Template.of(rule.output, dict(whole.marked)))
    return minimal(joined)


def _alone(rule: Rule, schemes: Sequence[Scheme], unmet: Sequence[Unmet]) -> list[Template]:
    """What single inputs promise by themselves, where all rows of theirs are let go."""
    kept = {lack.hold.rows_of for lack in unmet}
    ports = [port for port in range(len(schemes)) if rule.alone is not None and port not in kept]
    passed = [rule.alone(port, t) for port in ports for t in schemes[port] if rule.alone is not None]
    return [Template.of(rule.output, dict(t.marked)) for t in passed if t is not None]


def _dropped(rule: Rule, schemes: Sequence[Scheme]) -> list[Scheme]:
    return [
        Scheme.of(*(t for t in scheme if rule.share(port, t) is None)) for port, scheme in enumerate(schemes)
    ]


def _lacks(
    hold: Holding,
    schemes: Sequence[Scheme],
    ends: Sequence[Ends],
    own: Scheme,
    bounded: Sequence[frozenset[str]],
) -> list[Unmet]:
    whole = own if hold.rows_of == OWN else schemes[hold.rows_of]
    if any(not template.marked for template in whole):
        return []  # rows of an input that ends, such as a table, cannot grow without bound
    lives = ends[hold.rows_of]
    known = bounded[hold.rows_of] if bounded and hold.rows_of != OWN else frozenset()
    if hold.one_per is not None and known.issuperset(hold.one_per):
        lives = "finite" if lives == "never" else lives
        hold = replace(hold, until="end") if hold.until == "forever" else hold
    if hold.endless and lives != "never":
        return []
    given = [(need, own if need.port == OWN else schemes[need.port]) for need in hold.needs]
    found = (_lack(hold, need, scheme, lives) for need, scheme in given)
    return [lack for lack in found if lack is not None]


def _lack(hold: Holding, need: Need, scheme: Scheme, lives: Ends) -> Unmet | None:
    seen = [t for t in scheme if t.payload <= set(need.columns)]
    if any(frees(template, hold, lives) for template in seen):
        return None
    if not seen:
        return Unmet(hold, need, "no punctuation")
    return Unmet(hold, need, "time only" if hold.until == "forever" and not hold.endless else "lifetimes")


def frees(template: Template, hold: Holding, lives: Ends) -> bool:
    """Whether promises of this form reach past what is held."""
    if template[TIME] == "-":
        return True
    if hold.until == "forever":
        return False
    return hold.until == "start" or lives != "never"


def realizable(rule: Rule, contract: Contract) -> str:
    """Why no form of the operator can keep the contract; empty where one can.

    Its state must go, and each output template must follow from what its inputs say: alone, together, or
    with fewer words (`a = 5` once `a <= 7` has come).
    """
    derived = derive(rule, contract.ins)
    if derived.unmet:
        lack = derived.unmet[0]
        return (
            f"{lack.hold.what} never go: input {lack.need.port + 1} promises nothing on "
            f"{' or '.join(lack.need.columns) or 'all of it'}"
        )
    passed = [*leaving(rule, contract.ins), *_alone(rule, contract.ins, ())]
    everything = passed + [t for p, s in enumerate(contract.ins) for t in _passing(rule, p, s)]
    for template in contract.outs[0]:
        used = [t for t in everything if t.implies(template)]
        marked = {name for t in used for name in t.marked}
        if not any(t.implies(template) for t in passed) or marked != set(template.marked):
            return f"{template} does not follow from {', '.join(map(str, contract.ins))}"
    return ""


def _passing(rule: Rule, port: int, scheme: Scheme) -> list[Template]:
    return [t for t in (rule.share(port, template) for template in scheme) if t is not None]
