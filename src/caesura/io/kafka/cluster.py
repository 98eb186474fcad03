"""A Kafka cluster: how it is reached, what it is asked, and what its errors mean to a user.

Clients that ask are kept for each process; what reads or writes has a client of its own.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from caesura.errors import CaesuraError, DataError, PlanError, StreamError, closest
from caesura.io.kafka.passing import AWAY, is_one_of, passes
from caesura.io.sources.passed import small_hash

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")
LOG = logging.getLogger("caesura.kafka")
OWN = ("bootstrap.servers", "enable.auto.commit", "enable.partition.eof", "auto.offset.reset", "group.id")
"""What a source sets itself: offsets belong to the query, and its end is told by the broker."""

SKIP = (
    "Read with on_gap='skip' to go on without them, or start anew without the saved state; a longer "
    "retention.ms keeps records until they are read."
)
GIVE_TOPIC = "Give the topic that was read, or start anew without the saved state."
TOPIC = "topic"
"""Under which the id of a topic stands among the offsets of its partitions."""
ID_SECONDS = 5.0
"""How long a broker that answers everything else may take to say the id of a topic."""
SILENT: set[Cluster] = set()
"""The clusters that do not say ids, as far as this process knows."""
QUEUE_MILLIS = 20
"""How long a client waits whose queue is full: a second, if nothing is said, in which it runs empty."""
AGAIN_SECONDS = 0.1
"""After how long a broker is asked again that will be able to later."""
END_MILLIS = 10
"""How long a broker waits at the end of a partition before it says so to one that reads up to there."""


@dataclass(frozen=True)
class Cluster:
    """Where brokers are, how they are spoken to, and for how long one waits for them."""

    servers: str
    config: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """Options of the client; "env:NAME" stands for what an environment variable holds where it is made."""
    seconds: float = 60.0

    def __post_init__(self) -> None:
        for name, _ in self.config:
            if name in OWN:
                raise PlanError(
                    f"config= sets '{name}', which belongs to Caesura.",
                    remedy="Leave it out; start=, until= and on_gap= say where a topic is read.",
                )

    def without_secrets(self) -> Cluster:
        """The same for a plan that is written down: passwords that are no names of variables are left out."""
        plain = [(name, value) for name, value in self.config if not _secret(name, value)]
        return replace(self, config=tuple(plain))

    @property
    def _options(self) -> dict[str, Any]:
        return {name: _resolved(name, value) for name, value in self.config}

    def consumer(
        self,
        on_error: Callable[[KafkaError], None] | None = None,
        *,
        group: str = "caesura",
        committed: bool = True,
        bounded: bool = False,
    ) -> Consumer:
        """A client that reads what was committed, from offsets that it is given.

        Where reading is ``bounded``, the broker is not to wait for more before it tells an end.
        """
        own: dict[str, Any] = {
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        if not committed:
            own["isolation.level"] = "read_uncommitted"
        callbacks = {} if on_error is None else {"error_cb": on_error}
        options = {
            "isolation.level": "read_committed",
            "fetch.error.backoff.ms": 100,
            "fetch.queue.backoff.ms": QUEUE_MILLIS,
            **({"fetch.wait.max.ms": END_MILLIS} if bounded else {}),
            **self._options,
            **own,
        }
        with self._made("Consumer") as client:
            made: Consumer = client({"bootstrap.servers": self.servers, **options, **callbacks}, logger=LOG)
        return made

    def producer(self, **options: Any) -> Producer:
        """A client that writes."""
        with self._made("Producer") as client:
            whole = {"bootstrap.servers": self.servers, **self._options, **options}
            made: Producer = client(whole, logger=LOG)
        return made

    def admin(self) -> AdminClient:
        """A client that makes topics."""
        with self._made("AdminClient", "confluent_kafka.admin") as client:
            made: AdminClient = client({"bootstrap.servers": self.servers, **self._options}, logger=LOG)
        return made

    @contextmanager
    def _made(self, name: str, module: str = "confluent_kafka") -> Iterator[Any]:
        try:
            import confluent_kafka
        except ImportError as error:
            raise PlanError(
                "Kafka is spoken to by confluent-kafka, which is not installed.",
                remedy="Install it: pip install 'caesura[kafka]'.",
            ) from error
        try:
            yield getattr(import_module(module), name)
        except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
            raise PlanError(
                f"config= is refused: {_first_line(error)}.", remedy="It takes the options of librdkafka."
            ) from None

    # -- what it is asked -------------------------------------------------------------------------------

    def name(self) -> str:
        """The id of the cluster, whichever of its brokers was asked."""
        client = asker(self, os.getpid())
        return self.asked(lambda seconds: str(client.list_topics(timeout=seconds).cluster_id))

    def partitions(self, topic: str, seconds: float | None = None) -> list[int]:
        """The partitions of a topic; refuses one that is not there."""
        client = asker(self, os.getpid())
        from confluent_kafka import KafkaException

        def ask(wait: float) -> tuple[list[int] | None, list[str]]:
            found = client.list_topics(topic, timeout=wait).topics[topic]
            if found.error is None:
                return sorted(found.partitions), []
            if passes(found.error):
                raise KafkaException(found.error)
            return None, [n for n in client.list_topics(timeout=wait).topics if not n.startswith("__")]

        partitions, there = self.asked(ask, seconds)
        if partitions is not None:
            return partitions
        raise DataError(f"there is no topic '{topic}' at '{self.servers}'.", remedy=closest(topic, there))

    def watermarks(self, topic: str, partition: int, seconds: float | None = None) -> tuple[int, int]:
        """Where a partition begins and where what is committed of it ends."""
        client = asker(self, os.getpid())
        from confluent_kafka import TopicPartition

        place = TopicPartition(topic, partition)
        low, high = self.asked(lambda wait: client.get_watermark_offsets(place, timeout=wait), seconds)
        return int(low), int(high)

    def topic_id(self, topic: str) -> int | None:
        """What tells a topic from one of its name that is made anew; None where brokers do not say."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        admin, seconds = admin_asker(self, os.getpid()), min(self.seconds, ID_SECONDS)
        if self in SILENT:
            return None
        unsaid = (KafkaError._TIMED_OUT, KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION)

        def ask(_: float) -> Any:
            try:
                [answer] = admin.describe_topics(TopicCollection([topic]), request_timeout=seconds).values()
                return answer.result().topic_id
            except KafkaException as error:
                if error.args[0].code() not in unsaid:
                    raise
                SILENT.add(self)
                return None

        own = self.asked(ask, topic=topic)
        if own is None:
            return None
        bits = (own.get_most_significant_bits(), own.get_least_significant_bits())
        return None if not any(bits) else small_hash(f"{bits[0]}:{bits[1]}")

    def cleanup_policy(self, topic: str) -> str:
        """How a topic gets rid of old records: "delete", "compact", or both."""
        admin = self.admin()
        asked = import_module("confluent_kafka.admin").ConfigResource("topic", topic)
        # The client is held until it has answered: one that is let go of takes its questions with it.
        with self.asking():
            [answer] = admin.describe_configs([asked], request_timeout=self.seconds).values()
            return str(answer.result()["cleanup.policy"].value)

    def asked(self, ask: Callable[[float], T], seconds: float | None = None, topic: str = "") -> T:
        """What a broker answers; one that will be able to later is asked again, for so many seconds."""
        from confluent_kafka import KafkaException

        until = time.monotonic() + (self.seconds if seconds is None else seconds)
        while True:
            left = until - time.monotonic()
            try:
                return ask(max(left, AGAIN_SECONDS))
            except KafkaException as error:
                if not passes(error.args[0]) or left <= AGAIN_SECONDS:
                    raise self.meaning(error.args[0], topic) from None
            time.sleep(AGAIN_SECONDS)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Kafka's errors within become ours."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as error:
            raise self.meaning(error.args[0]) from None

    def meaning(self, error: KafkaError, topic: str = "") -> CaesuraError:
        """What an error of Kafka's means."""
        from confluent_kafka import KafkaError

        unknown = (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC,
            KafkaError._UNKNOWN_PARTITION,
            KafkaError.UNKNOWN_TOPIC_ID,
        )
        if is_one_of(error, AWAY):
            return StreamError(
                f"no Kafka broker answers at '{self.servers}' within {self.seconds:g} s.",
                remedy="Start it, or give its address; the query goes on from its saved state. timeout= says "
                "how long it waits.",
            )
        if error.code() in unknown:
            return StreamError(
                f"the topic '{topic}' is no longer there at '{self.servers}'.",
                remedy="A topic that is made anew has other records: start anew without the saved state.",
            )
        if passes(error):
            return StreamError(
                f"Kafka at '{self.servers}' says for {self.seconds:g} s: {_first_line(error)}.",
                remedy="See its brokers; the query goes on from its saved state. timeout= says how long "
                "it waits.",
            )
        return StreamError(
            f"Kafka at '{self.servers}' says: {_first_line(error)}.",
            remedy="See the broker's log; options of the client go into config=.",
        )


@dataclass(frozen=True)
class TopicBounds:
    """Where the partitions of a topic begin and end."""

    cluster: Cluster
    topic: str

    def passed(self, offsets: Mapping[int, int]) -> dict[str, int]:
        """Which topic it is whose offsets these are."""
        known = self.cluster.topic_id(self.topic)
        return {} if known is None else {TOPIC: known}

    def displaced(self, passed: Mapping[str, int]) -> str:
        """Why offsets are not of this topic; empty where they are, or nobody says."""
        known = self.cluster.topic_id(self.topic) if TOPIC in passed else None
        return "" if known in (None, passed.get(TOPIC)) else made_anew(self.topic)

    def earliest(self) -> dict[int, int]:
        return {partition: low for partition, (low, _) in self._watermarks().items()}

    def latest(self) -> dict[int, int]:
        return {partition: high for partition, (_, high) in self._watermarks().items()}

    def _watermarks(self) -> dict[int, tuple[int, int]]:
        topic = self.topic
        return {n: self.cluster.watermarks(topic, n) for n in self.cluster.partitions(topic)}


SECRETS = ("password", "secret", "token", "sasl.oauthbearer.config", "key.pem", "jaas")
ENVIRONMENT = "env:"


def _secret(name: str, value: Any) -> bool:
    named = isinstance(value, str) and value.startswith(ENVIRONMENT)
    return any(part in name for part in SECRETS) and not named


def _resolved(name: str, value: Any) -> Any:
    """An option, or what the variable holds that it names."""
    if not isinstance(value, str) or not value.startswith(ENVIRONMENT):
        return value
    variable = value.removeprefix(ENVIRONMENT)
    if variable in os.environ:
        return os.environ[variable]
    raise StreamError(
        f"config= takes '{name}' from the environment variable '{variable}', which is not set.",
        remedy="Set it here and, on Spark, in the executors (spark.executorEnv).",
    )


@lru_cache(maxsize=8)
def asker(cluster: Cluster, process: int) -> Consumer:
    """The client of a process that asks a cluster; a forked process has its own."""
    return cluster.consumer()


@lru_cache(maxsize=8)
def admin_asker(cluster: Cluster, process: int) -> AdminClient:
    """The same for what only an administrator's client can ask."""
    return cluster.admin()


def made_anew(topic: str) -> str:
    """That a topic is not the one that was read, in words."""
    return f"topic '{topic}' was deleted and made anew since it was read"


def lost(topic: str, partition: int, position: int, begin: int) -> str:
    """That records were deleted before they were read, in words."""
    return (
        f"partition {partition} of topic '{topic}' is to be read on from offset {position}, and it begins at "
        f"{begin} now: {begin - position} offsets are gone, deleted before they were read"
    )


def refuse_gap(topic: str, partition: int, position: int, begin: int) -> NoReturn:
    """Stops where retention has passed a saved offset."""
    raise StreamError(
        lost(topic, partition, position, begin) + ".",
        remedy=SKIP,
    )


def refuse_ahead(topic: str, partition: int, position: int, end: int) -> NoReturn:
    """Stops where a topic ends before a saved offset: it is another one."""
    raise StreamError(
        f"partition {partition} of topic '{topic}' is to be read on from offset {position}, and it ends at "
        f"{end}: it is not the topic that was read before.",
        remedy=GIVE_TOPIC,
    )


def refuse_made_anew(bounds: TopicBounds, passed: Mapping[str, int]) -> None:
    """Stops where a topic has become another one under its reader."""
    if why := bounds.displaced(passed):
        raise StreamError(f"{why}: its records have other offsets.", remedy=GIVE_TOPIC)


def _first_line(error: object) -> str:
    if isinstance(error, Exception) and error.args:
        error = error.args[0]
    text = error.str() if hasattr(error, "str") else str(error)
    return next(iter(str(text).splitlines()), type(error).__name__).rstrip(". ")
