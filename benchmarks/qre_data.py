"""Seeded data for the StreamQRE benchmarks, as `caesura.testing` has it, and the paper's queries."""

from __future__ import annotations

import sys
from pathlib import Path

from caesura.testing.paper_data import (
    BEGIN,
    BID,
    CLICK,
    CLOSE,
    DAY,
    END,
    ITEM,
    MEASURE,
    PERSON,
    PURCHASE,
    SECOND,
    VIEW,
    PaperEvents,
    disordered,
    nexmark,
    patients,
    yahoo,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "streamqre"))
import paper_queries as paper

Data = PaperEvents

__all__ = [
    "BEGIN",
    "BID",
    "CLICK",
    "CLOSE",
    "DAY",
    "END",
    "ITEM",
    "MEASURE",
    "PERSON",
    "PURCHASE",
    "SECOND",
    "VIEW",
    "Data",
    "disordered",
    "nexmark",
    "paper",
    "patients",
    "yahoo",
]
