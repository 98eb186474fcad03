"""How deep searches go: `make test` has depth 1, `make soak` more (``CAESURA_DEPTH``)."""

from __future__ import annotations

import os

DEPTH = int(os.environ.get("CAESURA_DEPTH", "1"))


def examples(count: int) -> int:
    """So many examples at depth 1, and as many times that as searches are deep."""
    return count * DEPTH
