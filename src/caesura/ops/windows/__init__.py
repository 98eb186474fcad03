"""Windows of every kind, and what is computed over them."""

from caesura.ops.windows.bucket import Bucket
from caesura.ops.windows.frames import Count, Frame, Grid, Session, Snapshot
from caesura.ops.windows.node import Windows
from caesura.ops.windows.policy import Clip, Stamp
from caesura.ops.windows.quantise import Quantise

__all__ = ["Bucket", "Clip", "Count", "Frame", "Grid", "Quantise", "Session", "Snapshot", "Stamp", "Windows"]
