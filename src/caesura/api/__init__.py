"""What users type. Thin: it only builds plans, and hands them to a host."""

from caesura.api.grouped import Grouped, Windowed
from caesura.api.pipeline import Pipeline, pipeline
from caesura.api.sources import (
    from_arrow,
    from_pandas,
    from_rows,
    from_spark,
    input_stream,
    read,
    session,
    subscribe,
)
from caesura.api.stream import Stream
from caesura.runtime.running import Result

__all__ = [
    "Grouped",
    "Pipeline",
    "Result",
    "Stream",
    "Windowed",
    "from_arrow",
    "from_pandas",
    "from_rows",
    "from_spark",
    "input_stream",
    "pipeline",
    "read",
    "session",
    "subscribe",
]
