"""Spans for OpenTelemetry, where the process uses it: nothing is imported, and nothing is made, elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from caesura.runtime.metrics.status import Status, StepStatus

Value = str | int | float | bool


class Span:
    """What is told of a piece of work; nobody listens unless OpenTelemetry is set up."""

    def tell(self, **facts: Value) -> None:
        """Facts that are known by now."""

    def tell_status(self, ask: Callable[[], Status]) -> None:
        """How the query stands: rows read and late, and what each stage holds."""


class RecordedSpan(Span):
    def __init__(self, span: object) -> None:
        self._span = span

    def tell(self, **facts: Value) -> None:
        for name, value in facts.items():
            self._span.set_attribute(f"caesura.{name}", value)  # type: ignore[attr-defined]

    def tell_status(self, ask: Callable[[], Status]) -> None:
        status = ask()
        self.tell(
            rows=sum(source.rows for source in status.sources.values()),
            late=sum(source.late for source in status.sources.values()),
            state_bytes=sum(step.state_bytes for step in status.steps.values()),
        )
        for number in sorted({step.stage for step in status.steps.values()}):
            self._stage(number, [step for step in status.steps.values() if step.stage == number])

    def _stage(self, number: int, steps: list[StepStatus]) -> None:
        """A span of a stage, as long as this one so far: the stages of an epoch work at the same time."""
        told = {
            "stage": number,
            "steps": len(steps),
            "rows_in": sum(step.rows_in for step in steps),
            "rows_out": sum(step.rows_out for step in steps),
            "state_rows": sum(step.state_rows for step in steps),
            "state_bytes": sum(step.state_bytes for step in steps),
        }
        made = (
            sys.modules["opentelemetry.trace"]
            .get_tracer("caesura")
            .start_span(
                "caesura.stage",
                start_time=getattr(self._span, "start_time", None),
                attributes={f"caesura.{name}": value for name, value in told.items()},
            )
        )
        made.end()


SILENT = Span()


def traced() -> bool:
    """Whether this process uses OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules


@contextmanager
def span(name: str, **facts: Value) -> Iterator[Span]:
    """A span of this name around a piece of work, in the trace that is open."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield SILENT
        return
    with trace.get_tracer("caesura").start_as_current_span(f"caesura.{name}") as made:
        if not made.is_recording():
            yield SILENT
            return
        recorded = RecordedSpan(made)
        recorded.tell(**facts)
        yield recorded
