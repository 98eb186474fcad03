"""Plans: frozen nodes that check themselves, their properties, and what they print as."""

from caesura.errors import here
from caesura.plan.duration import CLOCK, Duration, seconds, shown, ticks
from caesura.plan.feedback import OUTPUT_ONLY, FeedbackRule, OwnFeedback, Translation, row_rule
from caesura.plan.holds import OWN, Holding, Need
from caesura.plan.node import TICKS, Node, walk
from caesura.plan.operator import (
    AlignedOperator,
    Counters,
    GivenUp,
    Operator,
    Outbox,
    Speculate,
    Up,
    definite,
)
from caesura.plan.properties import Properties, both
from caesura.plan.roles import OnLoop, RowForm
from caesura.plan.source import NOTHING_NOW, Ingress, NothingNow, Raw, SourceBatch, SourceNode

__all__ = [
    "CLOCK",
    "NOTHING_NOW",
    "OUTPUT_ONLY",
    "OWN",
    "TICKS",
    "AlignedOperator",
    "Counters",
    "Duration",
    "FeedbackRule",
    "GivenUp",
    "Holding",
    "Ingress",
    "Need",
    "Node",
    "NothingNow",
    "OnLoop",
    "Operator",
    "Outbox",
    "OwnFeedback",
    "Properties",
    "Raw",
    "RowForm",
    "SourceBatch",
    "SourceNode",
    "Speculate",
    "Translation",
    "Up",
    "both",
    "definite",
    "here",
    "row_rule",
    "seconds",
    "shown",
    "ticks",
    "walk",
]
