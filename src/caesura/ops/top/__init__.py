"""The first rows of each group in an order, at every instant: `top`, `limit` and ranks."""

from caesura.ops.top.node import RANKS, Order, Rank, Top

__all__ = ["RANKS", "Order", "Rank", "Top"]
