"""One measurement, one line: JSON for programs, a table for people."""

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass
class Report:
    """Prints measurements as they are made."""

    bench: str
    as_json: bool
    rows: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        case: str,
        events_per_s: float | None = None,
        ratio_to: dict[str, float] | None = None,
        **more: object,
    ) -> None:
        row: dict[str, object] = {"bench": self.bench, "case": case}
        if events_per_s is not None:
            row["events_per_s"] = round(events_per_s)
        if ratio_to:
            row["ratio_to"] = {name: round(ratio, 3) for name, ratio in ratio_to.items()}
        row.update(more)
        self.rows.append(row)
        print(json.dumps(row) if self.as_json else self._line(row), flush=True)

    def _line(self, row: dict[str, object]) -> str:
        rate = row.get("events_per_s")
        parts = [f"{row['case']:<34}", f"{rate / 1e6:>9.2f} M/s" if isinstance(rate, int) else " " * 13]
        for key, value in row.items():
            if key not in ("bench", "case", "events_per_s"):
                parts.append(f"{key}={value}")
        return "  ".join(parts)
