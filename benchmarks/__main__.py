"""Runs one benchmark by name: ``python -m benchmarks core --json``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> int:
    names = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
    names = [name for name in names if name != "report" and "_" not in name]
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"usage: make bench NAME=<{'|'.join(names)}> [ARGS='--json']")
        return 2
    importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
