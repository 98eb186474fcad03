"""Whether the records of a topic are all there still, by what its cluster answers."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura.io.kafka.cluster import Cluster, TopicBounds
from caesura.io.kafka.reader import KafkaReader

kafka = pytest.importorskip("confluent_kafka")


class FakeAdmin:
    """Answers for the settings of topics."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        told: Future[Any] = Future()
        if isinstance(self.answer, Exception):
            told.set_exception(self.answer)
        else:
            told.set_result({"cleanup.policy": SimpleNamespace(value=self.answer)})
        return dict.fromkeys(resources, told)


def reader(monkeypatch: pytest.MonkeyPatch, answer: str | Exception, begins: dict[int, int]) -> KafkaReader:
    monkeypatch.setattr(Cluster, "partitions", lambda self, topic: sorted(begins))
    monkeypatch.setattr(Cluster, "topic_id", lambda self, topic: 1)
    monkeypatch.setattr(Cluster, "name", lambda self: "fake")
    monkeypatch.setattr(Cluster, "admin", lambda self: FakeAdmin(answer))
    monkeypatch.setattr(TopicBounds, "earliest", lambda self: begins)
    value = cz.json(pa.schema([("ts", pa.int64())]))
    found = cz.read.kafka("nowhere:9", "clicks", value=value, time="ts").node.reader
    assert isinstance(found, KafkaReader)
    return found


@pytest.mark.parametrize(
    ("policy", "why"), [("delete", ""), ("compact", "compacted"), ("compact,delete", "compacted")]
)
def test_a_compacted_topic_is_not_replayed(monkeypatch: pytest.MonkeyPatch, policy: str, why: str) -> None:
    told = reader(monkeypatch, policy, {0: 0}).cannot_replay()
    assert (why in told) if why else told == ""


def test_a_topic_that_lost_records_names_the_first_offsets_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    told = reader(monkeypatch, "delete", {1: 0, 0: 120}).cannot_replay()
    assert told.startswith("partition 0 of topic 'clicks' has lost its first records")
    assert told.endswith("from offset 120 of partition 0, 0 of partition 1 on")


def test_a_cluster_that_does_not_tell_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED))
    told = reader(monkeypatch, refusal, {0: 0}).cannot_replay()
    assert told.startswith("whether topic 'clicks' is compacted is not known: Kafka at 'nowhere:9' says")
