"""The first rows of each group in an order, at every instant: `top`, `limit` and ranks."""

from caesura.ops.top.node import RANKS, First, Order, Rank, Top

__all__ = ["RANKS", "First", "Order", "Rank", "Top"]
