"""The paper's figures 5 and 6, drawn from the rows of a report as one HTML file each (needs plotly)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
MEASURES = {"events_per_s": "throughput, events/s", "latency_ms": "latency, ms", "memory_mb": "memory, MB"}
CURVES = ("max_ms", "mean_ms", "distance_ms", "cumulative_ms")


def write(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Writes the figures for which there are rows."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {**distances(rows), **curves(rows), **by_joins(rows)}
    paths = []
    for name, figure in made.items():
        paths.append(folder / f"{name}.html")
        figure.write_html(paths[-1], include_plotlyjs="cdn")
    return paths


def figure_of(title: str, x: str, y: str, **more: Any) -> Any:
    import plotly.graph_objects as go  # type: ignore[import-not-found, unused-ignore]

    return go.Figure(layout={"title": title, "xaxis_title": x, "yaxis_title": y, **more})


def distances(rows: Sequence[Row]) -> dict[str, Any]:
    """Figure 5(a): how many consistent states lie so many rows apart."""
    found: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for row in rows:
        if "low" in row:
            found.setdefault((row["page"], row["keys"]), []).append((str(row["low"]), row["count"]))
    made = {}
    for (page, keys), bars in found.items():
        title = f"distance between consistent states, page {page}, {keys} keys"
        figure = figure_of(title, "rows, from", "states")
        figure.add_bar(x=[x for x, _ in bars], y=[y for _, y in bars])
        made[f"figure_5a_distance_page_{page}_{keys}"] = figure
    return made


def curves(rows: Sequence[Row]) -> dict[str, Any]:
    """Figures 5(b) to 5(d): latency, distance and cumulative latency over the period; tuned is marked."""
    made = {}
    for keys in ("uniform", "synchronised"):
        some = [row for row in rows if "every" in row and str(row["case"]).endswith(f", {keys}")]
        if not some:
            continue
        logs = {"xaxis_type": "log", "yaxis_type": "log"}
        figure = figure_of(f"tokens, {keys} keys", "events between tokens", "ms", **logs)
        for curve in CURVES:
            figure.add_scatter(x=[r["every"] for r in some], y=[r[curve] for r in some], name=curve)
        for row in rows:
            if row["case"] == f"tuned, {keys}":
                at = {"x": [row["period"]], "y": [row["cumulative_ms"]]}
                figure.add_scatter(**at, mode="markers", name="tuned", marker={"size": 12})
        made[f"figure_5b_period_{keys}"] = figure
    return made


def by_joins(rows: Sequence[Row]) -> dict[str, Any]:
    """Figure 6: throughput, latency and memory of each mode for one to four joins."""
    found: dict[str, dict[str, list[tuple[int, Row]]]] = {}
    for row in rows:
        words = str(row["case"]).split(", ")
        if len(words) == 3 and words[0].endswith(" joins") and "memory_mb" in row:
            found.setdefault(words[2], {}).setdefault(words[1], []).append((int(words[0][0]), row))
    made = {}
    for page, modes in found.items():
        for measure, title in MEASURES.items():
            figure = figure_of(f"{title}, {page}", "joins", title)
            for mode, points in modes.items():
                figure.add_bar(x=[n for n, _ in points], y=[row[measure] for _, row in points], name=mode)
            made[f"figure_6_{measure}_{page.replace(' ', '_')}"] = figure
    return made
