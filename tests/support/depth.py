"""How deep searches go: `make test` has depth 1, `make soak` more (``CAESURA_DEPTH``)."""

from __future__ import annotations

import os

DEPTH = int(os.environ.get("CAESURA_DEPTH", "1"))


def examples(count: int, *, short: int | None = None) -> int:
    """So many examples for each step of depth; at depth 1 ``short`` of them, where that is given."""
    return short if DEPTH == 1 and short is not None else count * DEPTH
