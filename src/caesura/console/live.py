"""A running query, drawn anew a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.metrics.status import Status, StepStatus

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCK_FROM = 10**14
"""Ticks from here on are read as microseconds since 1970."""


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
    counted = ", ".join(f"{name} {value:,}" for name, value in step.extra.items() if value)
    return "; ".join(part for part in (step.held_by, counted) if part)


def moment(ticks: int) -> str:
    """A time for people.

    >>> moment(25), moment(1_700_000_000_000_000), moment(MIN_TIME), moment(INFINITY)
    ('25', '2023-11-14 22:13:20', '-', 'end')
    """
    if ticks == MIN_TIME:
        return "-"
    if ticks >= INFINITY:
        return "end"
    if ticks < CLOCK_FROM:
        return str(ticks)
    return (EPOCH + timedelta(microseconds=ticks)).strftime("%Y-%m-%d %H:%M:%S")


def span(ticks: int | None, latest: int) -> str:
    """A distance in time for people.

    >>> span(7, 100), span(90_500_000, 1_700_000_000_000_000), span(None, 0)
    ('7', '90.5 s', '-')
    """
    if ticks is None:
        return "-"
    return f"{ticks / 1e6:g} s" if latest >= CLOCK_FROM else str(ticks)
