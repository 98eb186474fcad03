"""Runs one benchmark by name: ``python -m benchmarks core --json``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

COMMANDS = {
    "record": ("recording", "main"),
    "merge": ("recording", "merge"),
    "compare": ("compare", "main"),
    "figures": ("figures", "main"),
}
"""What keeps measurements and makes figures of them: the module and function that does it."""
NOT_MEASURED = {"report", "records", "recording", "compare", "figures", "pairs"}


def main() -> int:
    names = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if "_" not in p.stem)
    measured = [name for name in names if name not in NOT_MEASURED]
    if len(sys.argv) < 2 or sys.argv[1] not in {*measured, *COMMANDS}:
        print(f"usage: make bench NAME=<{'|'.join(measured)}> [ARGS='--json']")
        return 2
    module, function = COMMANDS.get(sys.argv[1], (sys.argv[1], "main"))
    getattr(importlib.import_module(f"benchmarks.{module}"), function)(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
