"""What users type. Thin: it only builds plans, and hands them to a host."""

from caesura.api.grouped import Grouped, Windowed
from caesura.api.running import Result
from caesura.api.sources import from_arrow, from_pandas, from_rows, input_stream, read
from caesura.api.stream import Stream

__all__ = [
    "Grouped",
    "Result",
    "Stream",
    "Windowed",
    "from_arrow",
    "from_pandas",
    "from_rows",
    "input_stream",
    "read",
]
