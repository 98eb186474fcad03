"""Output you can trust: levels of consistency, claims, tokens, labels. Values; the runtime uses them."""

from caesura.consistency.claim import Claim, Prefix, broken_order
from caesura.consistency.levels import Level
from caesura.consistency.modes import (
    Draining,
    Heeding,
    Mode,
    Synchronised,
    Tokens,
    draining,
    heeding,
    synchronised,
    tokens,
)

__all__ = [
    "Claim",
    "Draining",
    "Heeding",
    "Level",
    "Mode",
    "Prefix",
    "Synchronised",
    "Tokens",
    "broken_order",
    "draining",
    "heeding",
    "synchronised",
    "tokens",
]
