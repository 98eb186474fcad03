"""What queries say as they run, through Python's own logging: one logger a room, under ``caesura``.

>>> import io
>>> out = io.StringIO()
>>> set_log_level("INFO", json=True, to=out)
>>> logging.getLogger("caesura.epochs").info("epoch %d written", 3, extra={"query": "speeds", "epoch": 3})
>>> fields = decoder.loads(out.getvalue())
>>> fields["message"], fields["query"], fields["epoch"], fields["level"]
('epoch 3 written', 'speeds', 3, 'INFO')
>>> set_log_level("WARNING")
"""

from __future__ import annotations

import json as decoder
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, get_args

from caesura.errors import PlanError, here

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
PLAIN = "%(asctime)s %(levelname)s %(name)s: %(message)s"
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""What every record has; all else was said with it."""


class JsonLines(logging.Formatter):
    """A record as a line of JSON: time, level, logger, message, and whatever was said with it."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: value for name, value in vars(record).items() if name not in STANDARD}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return decoder.dumps(said, default=str)


def set_log_level(level: Level, *, json: bool = False, to: TextIO | None = None) -> None:
    """Shows what queries say from this level on.

    Without it Python's own settings hold: a program that has set up logging sees the loggers under
    ``caesura`` there.

    Parameters
    ----------
    level
        ``"DEBUG"``, ``"INFO"``, ``"WARNING"`` or ``"ERROR"``.
    json
        Whether lines are JSON, for programs.
    to
        Where lines go; by default to stderr.

    See Also
    --------
    note : a count in the log of a step.

    Examples
    --------
    From here on, lines of JSON on stderr::

        cz.set_log_level("INFO", json=True)
    """
    if str(level).upper() not in get_args(Level):
        raise PlanError(f"no log level {level!r}.", remedy=f"There are: {', '.join(get_args(Level))}.").at(
            "set_log_level", here()
        )
    root = logging.getLogger("caesura")
    for handler in [one for one in root.handlers if getattr(one, "caesura", False)]:
        root.removeHandler(handler)
    shown = logging.StreamHandler(to or sys.stderr)
    shown.caesura = True  # type: ignore[attr-defined]
    shown.setFormatter(JsonLines() if json else logging.Formatter(PLAIN))
    root.addHandler(shown)
    root.setLevel(str(level).upper())
    root.propagate = False
