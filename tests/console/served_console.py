"""A console of a small query, and a client that says exactly what it is told to."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import caesura as cz
from caesura.console.web.server import ConsoleServer
from caesura.runtime import Query

HOSTILE = "<img src=x onerror=alert(1)>\"'&"


@dataclass
class Answer:
    """What a server answered."""

    code: int
    headers: dict[str, str]
    body: str


@dataclass
class Client:
    """Asks a console, as a browser that has followed the link; or as somebody who has not."""

    server: ConsoleServer
    cookie: str = ""

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """One request; ``Sec_Fetch_Site="..."`` is the header Sec-Fetch-Site."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        given = {"Cookie": self.cookie} if self.cookie else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read().decode())
        finally:
            connection.close()

    def post(self, path: str, body: str = "", **headers: str) -> Answer:
        """A form that a page of the console sends."""
        own = {
            "Origin": f"http://127.0.0.1:{self.server.port}",
            "Content_Type": "application/x-www-form-urlencoded",
        }
        return self.ask(path, "POST", body, **{**own, **headers})

    def follow_link(self) -> Client:
        """Takes the cookie that the link gives."""
        answer = self.ask(self.server.url.partition(str(self.server.port))[2])
        assert answer.code == 303 and answer.headers["location"] == "/"
        return Client(self.server, answer.headers["set-cookie"].partition(";")[0])


def small_query() -> Query:
    """Rows with a hostile name, counted in windows."""
    clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    wanted = clicks.where(cz.col("id") > 3)
    return wanted.group_by("name").tumbling(10).agg(n=cz.count()).query()


def feed(query: Query, until: int = 10) -> None:
    """Feeds two clicks and a promise, and lets the query work."""
    for item in cz.parse(
        f" LE RE | id name |\n {until - 9} {until - 8} | 7 a | +\n {until - 8} {until - 7} | 2 b | +"
    ):
        query.feed("clicks", item)
    query.feed("clicks", cz.cti(until))
    query.run()


@contextmanager
def served(query: Query | None = None, **options: Any) -> Iterator[Client]:
    """A console, until it is left."""
    with (query or small_query()).console(open_page=False, **options) as server:
        yield Client(server)
