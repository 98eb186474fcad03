"""What users type. Thin: it only builds plans, and hands them to a host."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caesura.api.alive import AliveRows
    from caesura.api.automata import arc, automaton
    from caesura.api.grouped import Grouped, Windowed
    from caesura.api.loops import fixpoint, greatest, least
    from caesura.api.over import OverRows
    from caesura.api.pipeline import Pipeline, from_claimed
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
    )
    from caesura.api.stream import Stream
    from caesura.api.tables import table
    from caesura.runtime.query.result import Result

ROOMS = {
    "caesura.api.alive": "AliveRows",
    "caesura.api.automata": "arc automaton",
    "caesura.api.grouped": "Grouped Windowed",
    "caesura.api.loops": "fixpoint greatest least",
    "caesura.api.over": "OverRows",
    "caesura.api.pipeline": "Pipeline from_claimed",
    "caesura.api.sources": "from_arrow from_cdf from_items from_pandas from_rows from_spark input_stream "
    "read session subscribe",
    "caesura.api.stream": "Stream",
    "caesura.api.tables": "table",
    "caesura.runtime.query.result": "Result",
}
"""Where each name lives: who reads a table must not import loops and automata."""
HOMES = {name: room for room, names in ROOMS.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in HOMES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return getattr(import_module(HOMES[name]), name)


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
    "read",
    "session",
    "subscribe",
    "table",
]
