"""The server of the pages: on this machine alone unless told otherwise, for a few clients at once."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import stat
import threading
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from caesura.console.web.access import Access
from caesura.console.web.app import Console
from caesura.console.web.watched import Watched
from caesura.errors import PlanError
from caesura.plan import here

log = logging.getLogger(__name__)
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
LOOPBACK = "127.0.0.1"
CLIENTS = 64
"""So many connections are open at once; others are turned away."""
PATIENCE = 10.0
"""Seconds in which a request must be whole."""
KEPT_OPEN = 5
MAX_HEAD = 16_384


class PatientProtocol(H11Protocol):
    """HTTP, for clients that say what they want, and take what they get, in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._look, None)

    def _look(self, before: object) -> None:
        """Lets a client go that has asked for nothing since the last look, nor taken the answer."""
        if self not in self.connections:
            return
        waits = self.cycle is None or self.cycle.response_complete
        if waits and self.cycle is before:
            self.transport.abort()
        else:
            self.loop.call_later(PATIENCE, self._look, self.cycle)


class ConsoleServer:
    """The pages of a query, from its making until it is closed."""

    def __init__(
        self,
        watched: Watched,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        password_file: str | Path | None = None,
        proxy: str | None = None,
        read_only: bool = False,
    ) -> None:
        password = None if password_file is None else _password(Path(password_file))
        trusted = None if proxy is None else _trusted(proxy)
        if not _is_loopback(host) and password is None and trusted is None:
            raise PlanError(
                f"other machines could look at the console at {host}, and it asks for no password.",
                remedy="Give a password_file= (--password-file) or a proxy= (--proxy), or leave the host "
                "as it is.",
            ).at("console", here())
        first = watched.pages[0].path if watched.pages else "/"
        self._access = Access(host, password=password, proxy=trusted, read_only=read_only, first=first)
        self._socket = _listening(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._access.port = self.port
        self.console = Console(watched, self._access)
        config = uvicorn.Config(
            self.console.app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CLIENTS,
            timeout_keep_alive=KEPT_OPEN,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=MAX_HEAD,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="caesura-console", daemon=True)
        self._thread.start()
        log.info("console at http://%s:%d/", self.host, self.port)

    @property
    def url(self) -> str:
        """The link to open: with the token, where no password is asked for."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        known = self._access.password is not None or self._access.proxy is not None
        token = "" if known else f"?token={self._access.token}"
        return f"http://{name}:{self.port}/{token}"

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def close(self) -> None:
        """Listens no more."""
        self.console.updates.closed = True
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    def wait(self) -> None:
        """Serves until it is interrupted."""
        while self._thread.is_alive():
            self._thread.join(timeout=1)

    def __enter__(self) -> ConsoleServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<console at {self.url}>"

    def _repr_html_(self) -> str:
        from caesura.console.web.markup import tag

        return tag("a", {"href": self.url, "target": "_blank", "rel": "noopener"}, "Open the console")


def _trusted(proxy: str) -> tuple[str, str]:
    """The header and the address of a proxy, from ``HEADER@ADDRESS``."""
    name, _, address = proxy.rpartition("@")
    try:
        found = str(ip_address(address))
    except ValueError:
        found = ""
    if not found or not HEADER.fullmatch(name):
        raise PlanError(
            f"'{proxy}' names no header and address of a proxy.",
            remedy="Write HEADER@ADDRESS, as in X-Forwarded-User@10.0.0.5: a header that only the proxy "
            "sets, and the address that it asks from.",
        ).at("console", here())
    return name, found


def _listening(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(found[0][4][:2], family=found[0][0], backlog=CLIENTS)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise PlanError(
            f"the console cannot be served at {host}:{port}: {why}.",
            remedy="Choose another port; 0 takes one that is free.",
        ).at("console", here()) from None


def _password(file: Path) -> str:
    """The first line of a file that others cannot read."""
    try:
        text, mode = file.read_text().partition("\n")[0].strip(), file.stat().st_mode
    except OSError as error:
        raise PlanError(
            f"the password file '{file}' cannot be read: {error.strerror}.",
            remedy="Give a file with one line.",
        ).at("console", here()) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PlanError(
            f"others can read the password file '{file}'.", remedy=f"Keep it to yourself: chmod 600 {file}."
        ).at("console", here())
    if len(text) < 8:
        raise PlanError(
            f"the password in '{file}' has {len(text)} characters.", remedy="Take at least eight."
        ).at("console", here())
    return text


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
