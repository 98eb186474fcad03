"""The paper's six figures, drawn from the rows of a report as one HTML file each (needs plotly)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FIGURES = {
    "figure_06_disorder_and_state": ("disorder", "state"),
    "figure_07_pauses_and_guesses": ("pause", "guesses"),
    "figure_08_disorder_and_definite": ("disorder", "definite"),
    "figure_09_lulls_and_guesses": ("lulls", "guesses"),
    "figure_10_disorder_and_lag": ("disorder", "lag"),
    "figure_11_lulls_and_silence": ("lulls", "silence"),
}


def series(
    rows: Sequence[dict[str, object]], case: str, measure: str
) -> dict[str, list[tuple[float, float]]]:
    """Per strategy, (how much of the case, the measure).

    >>> series([{"case": "lulls 0.5 hybrid", "lag": 4.5}], "lulls", "lag")
    {'hybrid': [(0.5, 4.5)]}
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        words = str(row["case"]).split()
        if len(words) == 3 and words[0] == case and measure in row:
            found.setdefault(words[2], []).append((float(words[1]), float(str(row[measure]))))
    return found


def write(rows: Sequence[dict[str, object]], folder: Path) -> list[Path]:
    """Writes the figures for which there are rows."""
    import plotly.graph_objects as go  # type: ignore[import-not-found, unused-ignore]

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (case, measure) in FIGURES.items():
        lines = series(rows, case, measure)
        if not lines:
            continue
        figure = go.Figure(
            layout={"xaxis_title": case, "yaxis_title": measure, "title": name.replace("_", " ")}
        )
        for strategy, points in lines.items():
            figure.add_scatter(x=[x for x, _ in points], y=[y for _, y in points], name=strategy)
        paths.append(folder / f"{name}.html")
        figure.write_html(paths[-1], include_plotlyjs="cdn")
    return paths
