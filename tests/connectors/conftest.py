"""One broker for all tests of connectors; where there is none they are not run, and say why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from local_kafka import Broker, NotRunError
from topics import Topic


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    try:
        running = Broker()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    with running:
        yield running


@pytest.fixture
def make_topic(broker: Broker) -> Callable[..., Topic]:
    def make(partitions: int = 1, **config: str) -> Topic:
        return Topic(broker.servers, partitions, {k.replace("_", "."): v for k, v in config.items()})

    return make
