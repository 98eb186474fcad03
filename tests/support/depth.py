"""How deep searches go: `make test` has depth 1, `make soak` more (``CAESURA_DEPTH``)."""

from __future__ import annotations

import os
from random import Random

DEPTH = int(os.environ.get("CAESURA_DEPTH", "1"))
SEED = os.environ.setdefault("CAESURA_SEED", str(Random().getrandbits(64)))
"""Of the draws of a soak: one for all its processes, which must collect the same tests."""


def examples(count: int, *, short: int | None = None) -> int:
    """So many examples for each step of depth; at depth 1 ``short`` of them, where that is given."""
    return short if DEPTH == 1 and short is not None else count * DEPTH


def drawn(count: int, *, short: int | None = None) -> int:
    """As many, beside the first: that is the simplest there is, and has no rows."""
    return examples(count, short=short) + 1


def seed_of(*names: str) -> int:
    """A seed for the draws of one case: each case has streams of its own, and in a soak new ones."""
    return Random("/".join(names if DEPTH == 1 else (SEED, *names))).getrandbits(64)
