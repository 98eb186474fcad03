"""A running query, drawn anew a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from caesura.console.words import moment, span
from caesura.runtime.metrics.status import Status, StepStatus


def watch(status: Callable[[], Status], active: Callable[[], bool], *, every: float = 0.5) -> None:
    """Draws a query's status until it is no longer active."""
    with Live(panel(status()), console=Console(), refresh_per_second=4, transient=False) as live:
        while active():
            time.sleep(every)
            live.update(panel(status()))
        live.update(panel(status()))


def panel(status: Status) -> RenderableType:
    """The status as a heading and two tables: sources and steps."""
    if status.epoch < 0:
        return Text("waiting for the first epoch ...", style="dim")
    head = Text(f"epoch {status.epoch}", style="bold")
    head.append(f"   {status.seconds:.1f} s   {status.rows_per_second:,.0f} rows/s", style="default")
    return Group(head, _sources(status), _steps(status))


def _sources(status: Status) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("source", "rows", "late", "latest", "promised", "not read"):
        table.add_column(name, justify="left" if name == "source" else "right")
    for name, source in status.sources.items():
        late = Text(f"{source.late:,}", style="yellow" if source.late else "dim")
        spared = f"{source.rows_unread:,} rows, {source.bytes_unread:,} bytes" if source.rows_unread else ""
        times = moment(source.latest), moment(source.promised)
        table.add_row(name, f"{source.rows:,}", late, *times, spared)
    return table


def _steps(status: Status) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("step", "in", "out", "state", "bytes", "promised", "behind", "held by"):
        table.add_column(name, justify="left" if name in ("step", "held by") else "right")
    for name, step in status.steps.items():
        table.add_row(
            f"{step.stage} {name}",
            f"{step.rows_in:,}",
            f"{step.rows_out:,}",
            f"{step.state_rows:,}",
            f"{step.state_bytes:,}",
            moment(step.promised),
            span(status.lag(name), status.latest),
            _details(step),
        )
    return table


def _details(step: StepStatus) -> str:
    """What holds a step, and what only it counts."""
    values = {name: tally.value for name, tally in step.observed.items()} | dict(step.extra)
    counted = ", ".join(f"{name} {value:,}" for name, value in values.items() if value)
    return "; ".join(part for part in (step.held_by, counted) if part)
