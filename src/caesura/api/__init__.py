"""What users type. Thin: it only builds plans, and hands them to a host."""

from caesura.api.alive import AliveRows
from caesura.api.automata import arc, automaton
from caesura.api.grouped import Grouped, Windowed
from caesura.api.loops import fixpoint, greatest, least
from caesura.api.over import OverRows
from caesura.api.pipeline import Pipeline, from_claimed, pipeline
from caesura.api.sources import (
    from_arrow,
    from_cdf,
    from_items,
    from_pandas,
    from_rows,
    from_spark,
    input_stream,
    read,
    session,
    subscribe,
    table,
)
from caesura.api.stream import Stream
from caesura.runtime.query.result import Result

__all__ = [
    "AliveRows",
    "Grouped",
    "OverRows",
    "Pipeline",
    "Result",
    "Stream",
    "Windowed",
    "arc",
    "automaton",
    "fixpoint",
    "from_arrow",
    "from_cdf",
    "from_claimed",
    "from_items",
    "from_pandas",
    "from_rows",
    "from_spark",
    "greatest",
    "input_stream",
    "least",
    "pipeline",
    "read",
    "session",
    "subscribe",
    "table",
]
