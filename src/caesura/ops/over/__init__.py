"""Columns beside each row from the rows around it in time: aggregates of the last ones, `lag` and `lead`."""

from caesura.ops.over.node import Neighbour, OverFrame, first_value, lag, lead

__all__ = ["Neighbour", "OverFrame", "first_value", "lag", "lead"]
