"""What running takes is locked to the same versions as what tests take."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pinned(name: str) -> set[str]:
    return set(re.findall(r"^([\w.-]+==\S+)", (ROOT / name).read_text(), re.MULTILINE))


def test_the_smaller_lock_is_a_part_of_the_larger() -> None:
    assert pinned("requirements-run.lock") <= pinned("requirements.lock")
    assert {"pyspark", "typer", "setuptools"} <= {
        line.split("==")[0] for line in pinned("requirements-run.lock")
    }
