"""The log of a server as it is streamed: messages as they come, and what the reader answers."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

from caesura.io.postgres.messages import Message, status
from caesura.io.postgres.server import PostgresServer
from caesura.io.sinks.packages import package

ANSWER_SECONDS = 5.0
"""How often the server hears what it may forget."""
COPY_BOTH = 8


class ServerLog:
    """Streams a slot from a position on."""

    def __init__(self, server: PostgresServer, slot: str, publication: str, position: int) -> None:
        psycopg = package("psycopg", "postgres")
        self._server = server
        self.seen = position
        """How far the server has told everything that there is."""
        self._answered = 0.0
        self._opened = server.connected(replication="database")
        self._connection = self._opened.__enter__()
        self._pg: Any = self._connection.pgconn
        begin = f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
        published = publication.replace('"', '""').replace("'", "''")
        options = f"(proto_version '1', publication_names '\"{published}\"')"
        result = self._pg.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL {begin} {options}'.encode())
        if result.status != COPY_BOTH:
            self.close()
            raise psycopg.OperationalError(result.error_message.decode().strip())
        self._pg.nonblocking = 1

    def messages(self, safe: int) -> Iterator[tuple[int, Message]]:
        """What has come: (position, message); tells the server up to where it may forget."""
        self._pg.consume_input()
        while True:
            size, data = self._pg.get_copy_data(1)
            if size == 0:
                break
            if size < 0:
                raise package("psycopg", "postgres").OperationalError("the stream of changes has ended")
            data = bytes(data)
            if data[:1] == b"w":
                position, _, _ = struct.unpack_from(">QQq", data, 1)
                yield position, Message(data[25:])
            elif data[:1] == b"k":
                end, _, asks = struct.unpack_from(">Qqb", data, 1)
                self.seen = max(self.seen, end)
                self._answered = 0.0 if asks else self._answered
        if time.monotonic() - self._answered >= ANSWER_SECONDS:
            self._answered = time.monotonic()
            self._pg.put_copy_data(status(safe, time.time_ns() // 1000))
            self._pg.flush()

    def close(self) -> None:
        """Lets the slot go, for the next reader."""
        self._connection.close()
        self._opened.__exit__(None, None, None)
