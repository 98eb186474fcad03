"""Windows of every kind, and what is computed over them."""

from caesura.ops.windows.frames import Count, Frame, Grid, Session, Snapshot
from caesura.ops.windows.node import Windows
from caesura.ops.windows.policy import Clip, Stamp

__all__ = ["Clip", "Count", "Frame", "Grid", "Session", "Snapshot", "Stamp", "Windows"]
