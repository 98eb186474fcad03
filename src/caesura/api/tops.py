"""The first rows of groups, as users ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, as_column
from caesura.ops.top import RANKS, First, Order, Rank, Top
from caesura.plan import Node, here

By = str | Expr | Sequence[str | Expr]
Descending = bool | Sequence[bool]


def chosen(n: int | None, by: By, descending: Descending, **names: str | None) -> First:
    """Which rows are taken, by what `top` and `rank` are given; ``names`` are the columns for ranks."""
    values: list[Any] = [by] if isinstance(by, str | Expr) else list(by)
    downs = [descending] * len(values) if isinstance(descending, bool) else list(descending)
    if len(downs) != len(values) or not all(isinstance(down, bool) for down in downs):
        raise PlanError(
            f"descending= says {len(downs)} times which way, for {len(values)} columns.",
            remedy="Give True or False for all, or one for each: descending=[True, False].",
        ).at(Top.kind, here())
    order = tuple(Order(as_column(value), down) for value, down in zip(values, downs, strict=True))
    ranks: tuple[tuple[str, Rank], ...] = tuple((names[k] or "", k) for k in RANKS if names.get(k))
    return First(order, n, ranks)


def topped(node: Node, keys: tuple[str, ...], first: First) -> Top:
    """The step for `top`, `rank` and `limit` over what is alive."""
    return Top(inputs=(node,), group=keys, order=first.order, n=first.n, ranks=first.ranks)
