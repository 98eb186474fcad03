"""N2 from Parquet on Spark, next to the same plan in the engine without Spark."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import qre_data as data


def n2(events: int) -> Iterator[dict[str, Any]]:
    raise NotImplementedError
