"""Plans: frozen nodes that check themselves, their properties, and what they print as."""

from caesura.plan.duration import Duration, shown, ticks
from caesura.plan.holds import OWN, Holding, Need
from caesura.plan.node import TICKS, Node, walk
from caesura.plan.operator import Counters, Operator, Up, aligned, definite
from caesura.plan.place import here
from caesura.plan.properties import Properties, both
from caesura.plan.source import Ingress, Raw, SourceNode

__all__ = [
    "OWN",
    "TICKS",
    "Counters",
    "Duration",
    "Holding",
    "Ingress",
    "Need",
    "Node",
    "Operator",
    "Properties",
    "Raw",
    "SourceNode",
    "Up",
    "aligned",
    "both",
    "definite",
    "here",
    "shown",
    "ticks",
    "walk",
]
