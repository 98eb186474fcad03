"""Small JSON files beside a checkpoint or an output; one that is cut off or was changed by hand is named.

>>> parsed('{"buckets": 2}', "caesura.json", "Put it back.")
{'buckets': 2}
"""

from __future__ import annotations

import json
from typing import Any

from caesura.errors import StreamError
from caesura.io.places import Place

FRESH = "Put back the file as it was, or start with a new checkpoint."


def parsed(text: str, name: object, remedy: str = FRESH, *, wants: tuple[str, ...] = ()) -> Any:
    """What a file says, which must be JSON, and have what is wanted of it."""
    try:
        content = json.loads(text)
    except ValueError as error:
        what = "it is empty" if not text.strip() else f"{error}"
        raise StreamError(f"'{name}' is not whole: {what}.", remedy=remedy) from None
    missing = [key for key in wants if not isinstance(content, dict) or key not in content]
    if missing:
        raise StreamError(f"'{name}' is not whole: it has no '{missing[0]}'.", remedy=remedy)
    return content


def read_json(file: Place, remedy: str = FRESH, *, wants: tuple[str, ...] = ()) -> Any:
    """What a file says; one that cannot be read is named."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise StreamError(f"'{file}' cannot be read: {error}.", remedy=remedy) from None
    return parsed(text, file, remedy, wants=wants)
