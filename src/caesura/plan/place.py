"""The user's own line, found cheaply when a step is built.

>>> here().startswith("<doctest")
True
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

_OURS = (str(Path(__file__).resolve().parent.parent), "<string>")
"""This package, and the constructors that dataclasses generate."""


def here() -> str:
    """``file.py:31`` of the nearest caller outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return ""
    name = frame.f_code.co_filename
    return f"{name if name.startswith('<') else Path(name).name}:{frame.f_lineno}"
