"""Opening the pages of whatever is watched."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from caesura.io.sinks.packages import package

if TYPE_CHECKING:
    from caesura.console.web.server import ConsoleServer
    from caesura.console.web.watched import Watched


def opened(
    watched: Watched,
    *,
    host: str,
    port: int,
    password_file: str | Path | None,
    proxy: str | None,
    read_only: bool,
    open_page: bool,
) -> ConsoleServer:
    """Serves the pages, and opens the first in the browser."""
    package("starlette", "console")
    package("uvicorn", "console")
    from caesura.console.web.server import ConsoleServer

    made = ConsoleServer(
        watched, host=host, port=port, password_file=password_file, proxy=proxy, read_only=read_only
    )
    if open_page:
        webbrowser.open(made.url)
    return made
