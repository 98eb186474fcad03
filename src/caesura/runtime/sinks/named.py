"""Sinks by name or path, as users give them."""

from __future__ import annotations

from pathlib import Path

from caesura.errors import PlanError
from caesura.io.places import Place
from caesura.io.sinks.protocol import EpochSink, Sink, TableSink
from caesura.misuse import shown
from caesura.plan import here
from caesura.runtime.sinks.memory import ConsoleSink, MemorySink
from caesura.runtime.sinks.parquet import ParquetSink


def as_sink(sink: Sink | str | Path | None, step: str) -> Sink:
    """A sink by name or path: 'memory', 'console', or a folder for Parquet files."""
    if sink is None or sink == "memory":
        return MemorySink()
    if sink == "console":
        return ConsoleSink()
    if isinstance(sink, (str, Path)):
        return ParquetSink(str(Place.of(sink).absolute()))
    if not isinstance(sink, (EpochSink, TableSink)):
        raise PlanError(
            f"{step}(sink=...) is {shown(sink)}, which is no sink.",
            remedy=f"Take a sink of caesura.spark, or write one of your own: {Sink.receives}.",
        ).at(step, here())
    return sink
