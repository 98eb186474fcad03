"""One broker and one object store for all tests of connectors; what is not there is not run, and says why."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from local_kafka import Broker, NotRunError
from local_postgres import PostgresServer
from local_s3 import BUCKET, Server
from topics import Topic

from caesura.io.places import objects
from caesura.io.places.lease import BEATING


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """The address of a broker: that of `CAESURA_KAFKA`, or one that is started."""
    if there := os.environ.get("CAESURA_KAFKA"):
        yield there
        return
    try:
        running = Broker()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    with running:
        yield running.servers


@pytest.fixture
def make_topic(servers: str) -> Callable[..., Topic]:
    def make(partitions: int = 1, **config: str) -> Topic:
        return Topic(servers, partitions, {k.replace("_", "."): v for k, v in config.items()})

    return make


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    try:
        running = Server()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    with running:
        yield running


def forget_store() -> None:
    """Gives leases back while the server's keys are there, for one that beats on would ask without them."""
    for lease in [*BEATING._leases]:
        lease.release()
    objects._opened.cache_clear()


@pytest.fixture
def bucket(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder of its own in a bucket of a real server, as a URI."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    objects._opened.cache_clear()
    yield f"s3://{BUCKET}/{uuid.uuid4().hex}"
    forget_store()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer().__enter__()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    yield server
    server.__exit__(None, None, None)
