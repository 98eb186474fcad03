"""The current row of every key, from events that replace each other."""

from caesura.ops.latest.node import Latest, Ops

__all__ = ["Latest", "Ops"]
