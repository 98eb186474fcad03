"""Promises between the records of a topic: every writer gives its own in every partition.

A promise is a record whose header `caesura` holds it; its value says it in words, for people and for other
readers of the topic. Written behind the rows of an epoch, in the same transaction, it counts when they do.

>>> [record] = promise_records([Pattern.before(20)], Share(1, 2), partitions=1)
>>> record.value
b'{"kind":"punctuation","punctuation":"time < 20"}'
>>> decoded(record.headers)
WriterPromise(pattern=Pattern(time < 20), writer=1, writers=2, lanes=1)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caesura.errors import CaesuraError
from caesura.events import Item, Page
from caesura.io.codecs.protocol import reason
from caesura.io.kafka.written import Headers, OutRecord
from caesura.plan import Raw
from caesura.punctuation import INFINITY, Intent, Pattern
from caesura.punctuation.writers import GivenPromise, WriterPromise, promise_from_json

if TYPE_CHECKING:
    from confluent_kafka import Message

HEADER = "caesura"
HEADERS = methodcaller("headers")


def given_promises(items: Iterable[Item]) -> list[Pattern]:
    """What an epoch promises, in its order; of promises on time alone the last, and the one on everything.

    >>> from caesura.punctuation import cti
    >>> given_promises([cti(5), cti(9), cti(INFINITY)])
    [Pattern(time < 9), Pattern(*)]
    """
    patterns = [i.pattern for i in items if not isinstance(i, Page) and i.intent is Intent.DEFINITE]
    last = {_timely(pattern): at for at, pattern in enumerate(patterns)}
    return [p for at, p in enumerate(patterns) if (kind := _timely(p)) is None or last[kind] == at]


def _timely(pattern: Pattern) -> str | None:
    """What kind of promise supersedes earlier ones; None for one on more than time."""
    if not set(pattern.attributes) <= {"time"} or pattern.time_bound is None:
        return None
    return "all" if pattern.time_bound == INFINITY else "time"


class Share(NamedTuple):
    """Which of the writers of a topic one is, and of how many."""

    writer: int
    writers: int


def promise_records(
    patterns: Sequence[Pattern], share: Share, partitions: int, only: Sequence[int] = ()
) -> Iterator[OutRecord]:
    """Promises of a writer as records for every partition, or for some."""
    for pattern in patterns:
        promise = WriterPromise(pattern, *share, partitions)
        header = (HEADER, json.dumps(promise.to_json()).encode())
        words = {"kind": "punctuation", "punctuation": str(pattern)}
        value = json.dumps(words, separators=(",", ":"), ensure_ascii=False).encode()
        for partition in only or range(partitions):
            yield OutRecord(None, value, partition, (header,))


def decoded(headers: Headers) -> GivenPromise:
    """The promise that the headers of a record hold."""
    return promise_from_json(json.loads(dict(headers)[HEADER]))


def found_promises(messages: Sequence[Message]) -> Mapping[int, GivenPromise | str]:
    """The promises among records, by their place; or why one cannot be read."""
    found: dict[int, GivenPromise | str] = {}
    headers: list[Any] = list(map(HEADERS, messages))
    for at in [at for at, own in enumerate(headers) if own]:
        if HEADER not in dict(headers[at]):
            continue
        try:
            found[at] = decoded(headers[at])
        except (CaesuraError, ValueError, TypeError, KeyError) as error:
            found[at] = f"its punctuation cannot be read: {reason(error)}"
    return found


def with_promises(raw: Raw, promises: Sequence[tuple[int, GivenPromise | str]]) -> Raw:
    """Rows of a partition with the promises at some offsets between them."""
    places = raw.offset + np.arange(raw.batch.num_rows) if raw.offsets is None else raw.offsets
    marks = tuple(
        (int(np.searchsorted(places, offset)), promise)
        for offset, promise in promises
        if not isinstance(promise, str)
    )
    refused = tuple((offset, why) for offset, why in promises if isinstance(why, str))
    return replace(raw, punctuations=marks, refused=(*raw.refused, *refused))
