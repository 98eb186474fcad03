"""One broker for all tests of connectors; where there is none they are not run, and say why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from local_kafka import Broker, NotRunError
from topics import Topic


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
