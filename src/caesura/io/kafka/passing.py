"""Which errors of Kafka's pass by themselves: a broker that is away, starts, or hands over its partitions.

Whoever meets one of these asks again, for as long as it may wait; all others are told at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

AWAY = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "REQUEST_TIMED_OUT")
"""No broker answers."""
LATER = (
    # of the client: it waits for something itself
    "_WAIT_COORD",
    "_WAIT_CACHE",
    "_TIMED_OUT_QUEUE",
    "_RETRY",
    "_NODE_UPDATE",
    # of a broker: those that Kafka's protocol calls retriable, but for a topic that is not there
    "INVALID_MSG",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_CONTROLLER",
    "CONCURRENT_TRANSACTIONS",
    "KAFKA_STORAGE_ERROR",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "LISTENER_NOT_FOUND",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "UNSTABLE_OFFSET_COMMIT",
    "THROTTLING_QUOTA_EXCEEDED",
)
"""A broker answers that it will be able to later."""


def passes(error: KafkaError) -> bool:
    """Whether to ask again, for as long as one may wait."""
    return not error.fatal() and (error.retriable() or is_one_of(error, AWAY + LATER))


def is_one_of(error: KafkaError, names: tuple[str, ...]) -> bool:
    """Whether an error has one of these names; an older client knows fewer."""
    kind = type(error)
    return error.code() in {getattr(kind, name, None) for name in names}
