"""Contracts: know before a plan runs that its state stays bounded and its answers come out.

>>> from caesura.contracts import Contract, Template
>>> print(Template.parse("[[a:+, b:#, c:-]]"))
[[a:+, b:#, c:-]]
"""

from caesura.contracts.accordance import Accordance, Link, accordance, consistent, reduce_tree
from caesura.contracts.bounds import Bound, SourceRate, bounds
from caesura.contracts.check import UnboundedWarning, adequate, check, require_safe
from caesura.contracts.contract import ANY_SCHEME, NONE, Contract, covered, match, mounted
from caesura.contracts.derive import Derived, derive, realizable
from caesura.contracts.forms import FORMS, GeneralForm
from caesura.contracts.live import watch_sources
from caesura.contracts.offering import Offering
from caesura.contracts.rules import Rule, register, rule_of
from caesura.contracts.verdict import Finding, Remedy, Verdict
from caesura.contracts.watch import Watch, obeys
from caesura.contracts.witness import witness
from caesura.misuse import renamed_members
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import ContractError, Template, template_of

__all__ = [
    "ANY_SCHEME",
    "FORMS",
    "NONE",
    "Accordance",
    "Bound",
    "Contract",
    "ContractError",
    "Derived",
    "Finding",
    "GeneralForm",
    "Link",
    "Offering",
    "Remedy",
    "Rule",
    "Scheme",
    "SourceRate",
    "Template",
    "UnboundedWarning",
    "Verdict",
    "Watch",
    "accordance",
    "adequate",
    "bounds",
    "check",
    "consistent",
    "covered",
    "derive",
    "match",
    "mounted",
    "obeys",
    "realizable",
    "reduce_tree",
    "register",
    "require_safe",
    "rule_of",
    "template_of",
    "watch_sources",
    "witness",
]


__getattr__ = renamed_members(__name__, Pace="SourceRate")
