"""Errors of Kafka's that pass by themselves are waited for; all others end a query at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura.errors import StreamError
from caesura.io.kafka import cluster
from caesura.io.kafka.cluster import Cluster
from caesura.io.kafka.passing import AWAY, LATER, passes

kafka = pytest.importorskip("confluent_kafka")
memory_broker = pytest.importorskip("memory_broker")

RETRIABLE = {2, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 88, 89}
"""What Kafka's protocol calls retriable; a topic that is not there (3) is told at once here."""
STARTING = {8}
"""A broker that is not there yet; the protocol leaves it to clients to ask another one."""
CODES = {
    name: getattr(kafka.KafkaError, name)
    for name in dir(kafka.KafkaError)
    if name.isupper() and isinstance(getattr(kafka.KafkaError, name), int)
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "AGAIN_SECONDS", 0.0)


def test_every_name_is_one_of_the_client() -> None:
    assert {*AWAY, *LATER} <= {*CODES}


@pytest.mark.parametrize("name", CODES)
def test_every_code_is_waited_for_or_told_at_once_as_the_protocol_says(name: str) -> None:
    code = CODES[name]
    if code > 0:
        assert passes(kafka.KafkaError(code)) == (code in RETRIABLE | STARTING), name
    else:
        assert passes(kafka.KafkaError(code)) == (name in AWAY + LATER), name


@pytest.mark.parametrize("name", CODES)
def test_what_passes_is_asked_again_and_what_does_not_is_told(name: str) -> None:
    error = kafka.KafkaError(CODES[name])
    answers: Iterator[Any] = chain(repeat(kafka.KafkaException(error), 3), [7])

    def ask(seconds: float) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    if passes(error):
        assert Cluster("nowhere:9").asked(ask) == 7
    else:
        with pytest.raises(Exception, match="nowhere:9"):
            Cluster("nowhere:9").asked(ask)
        assert len([*answers]) == 3


def test_what_does_not_pass_within_the_limit_is_told_with_what_to_do() -> None:
    def ask(seconds: float) -> int:
        raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.NOT_LEADER_FOR_PARTITION))

    with pytest.raises(StreamError) as caught:
        Cluster("nowhere:9", seconds=0.0).asked(ask)
    assert "for 0 s" in caught.value.problem and "timeout=" in caught.value.remedy


@pytest.mark.parametrize("name", LATER)
def test_a_partition_that_changes_brokers_ends_no_query(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notice = memory_broker.MemoryMessage(("clicks", 0, 0), None, kafka.KafkaError(CODES[name]))
    consume = memory_broker.MemoryConsumer.consume
    notices = iter([notice, notice])

    def told_first(self: Any, number: int, timeout: float = 0) -> list[Any]:
        first = next(notices, None)
        return consume(self, number, timeout) if first is None else [first]

    monkeypatch.setattr(memory_broker.MemoryConsumer, "consume", told_first)
    broker = memory_broker.MemoryBroker()
    broker.make("clicks", 1)
    broker.topics["clicks"][0] += [memory_broker.Entry(None, b'{"ts": %d}' % n, None) for n in range(3)]
    with broker.served():
        value = cz.json(pa.schema([("ts", pa.int64())]))
        rows = cz.read.kafka(broker.servers, "clicks", value=value, time="ts", until="latest")
        assert rows.run().table().num_rows == 3
