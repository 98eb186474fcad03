"""A small web server beside a query: its metrics for Prometheus, and whether it is alive and ready.

It listens on this machine alone unless it is told an address. It only reads; a client that is slow, asks for
anything else, or comes under another name of this machine gets nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import socket
from typing import TYPE_CHECKING, Any

from caesura.errors import PlanError
from caesura.io.sinks.packages import package
from caesura.plan import here

if TYPE_CHECKING:
    from caesura.runtime.metrics.figures import Figures

LOOPBACK = "127.0.0.1"
CLIENTS = 8
"""So many are answered at once; others wait."""
PATIENCE = 5.0
"""Seconds after which a silent client is let go."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
log = logging.getLogger(__name__)


class MetricsEndpoint:
    """The server, from its making until it is closed."""

    def __init__(self, read: Callable[[], Figures], address: int | str) -> None:
        package("prometheus_client", "metrics")
        host, port = address_of(address)
        try:
            self._server = _Server((host, port), _handler(read, host))
        except OSError as error:
            raise PlanError(
                f"metrics cannot be served at {host}:{port}: {error.strerror or error}.",
                remedy="Choose another port; 0 takes one that is free.",
            ).at("metrics", here()) from None
        self.host, self.port = host, int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="caesura-metrics", daemon=True).start()
        log.info("metrics at %s", self.url)

    @property
    def url(self) -> str:
        """Where Prometheus finds them."""
        return f"http://{self.host}:{self.port}/metrics"

    def close(self) -> None:
        """Listens no more."""
        self._server.shutdown()
        self._server.server_close()


def address_of(address: int | str) -> tuple[str, int]:
    """The host and port of ``9464`` (this machine alone), ``"0.0.0.0:9464"`` or ``"[::1]:9464"``.

    >>> address_of(9464), address_of("0.0.0.0:9464")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464))
    """
    host, _, port = (LOOPBACK, "", str(address)) if ":" not in str(address) else str(address).rpartition(":")
    if isinstance(address, bool) or not port.isdecimal() or int(port) > 65535 or not host:
        raise PlanError(
            f"metrics_port is a port or an address; got {address!r}.",
            remedy='Write metrics_port=9464, or "0.0.0.0:9464" to be reached from other machines.',
        ).at("metrics", here())
    return host.strip("[]"), int(port)


class _Server(ThreadingHTTPServer):
    """Answers a few clients at once."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._free = threading.BoundedSemaphore(CLIENTS)

    def process_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        self._free.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        log.debug("a client of the metrics went away", exc_info=True)


def _handler(read: Callable[[], Figures], host: str) -> type[BaseHTTPRequestHandler]:
    from caesura.runtime.metrics.families import QueryMetrics

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE
        server_version, sys_version = "caesura", ""

        def do_GET(self) -> None:
            if not own_name(host, self.headers.get("Host", "")):
                self._answer(403, b"not by this name\n")
            elif self.path == "/metrics":
                self._answer(200, QueryMetrics(read).text())
            elif self.path in ("/healthz", "/readyz"):
                self._answer(*_health(read(), ready=self.path == "/readyz"))
            else:
                self._answer(404, b"/metrics, /healthz, /readyz\n")

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", TEXT)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return Handler


def own_name(host: str, named: str) -> bool:
    """Whether a request may come under this name: a page of another site has no business on loopback."""
    if not _is_loopback(host):
        return True
    name = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() else named
    return name == "localhost" or _is_loopback(name.strip("[]"))


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _health(figures: Figures, *, ready: bool) -> tuple[int, bytes]:
    """Alive while it runs; ready once it has worked for the first time."""
    if not figures.active:
        return 503, b"the query has ended\n"
    status = figures.status
    if ready and status.epoch < 0 and not any(source.rows for source in status.sources.values()):
        return 503, b"nothing was read yet\n"
    return 200, b"ok\n"
