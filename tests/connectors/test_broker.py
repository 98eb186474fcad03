"""The broker that the other tests here rely on."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition
from topics import Topic


def test_a_broker_gives_back_what_was_put_into_a_topic(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()
    topic.rows([1, 2])
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "none"})
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    found = consumer.consume(2, 30)
    consumer.close()
    assert [m.value() for m in found] == [b'{"ts":1,"n":10}', b'{"ts":2,"n":20}']
