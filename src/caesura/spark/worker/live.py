"""What a worker process keeps between tasks: stage 0 of sources, and fragments at work."""

from __future__ import annotations

import gc
from typing import NamedTuple

from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.stage0 import Mapper
from caesura.spark.worker.job import Job, secret_of
from caesura.spark.worker.neighbours import BucketKey

MAX_QUERIES = 16
COLLECTED_OBJECTS = 20_000
MAPPERS: dict[tuple[str, str], Mapper] = {}


class LiveFragment(NamedTuple):
    """A fragment at work, and the stamp of the store at which it stands."""

    stamp: str
    fragment: Fragment


FRAGMENTS: dict[BucketKey, LiveFragment] = {}
"""By place."""


def exempt_from_collection() -> None:
    """Exempts all there is from later garbage collections, once much has come to be.

    Spark's daemon collects after every task, and to look through the modules, kernels and plan that a
    worker has loaded for good takes longer than most epochs.
    """
    if len(gc.get_objects()) > COLLECTED_OBJECTS:
        gc.collect()
        gc.freeze()


def mapper(job: Job, fingerprint: str) -> Mapper:
    """Stage 0 for a source, made once per worker."""
    place = (job.name, fingerprint)
    if place not in MAPPERS:
        forget_old(job.name)
        source = job.source(fingerprint)
        # A frame or a lane may come in other chunks when a task runs again; so may a file of which feedback,
        # which goes through the loop log, leaves out parts.
        repeats = source.reader.spark_form == "files" and not job.loop
        MAPPERS[place] = Mapper(job.stages, source, job.buckets, secret_of(job), repeats=repeats)
    return MAPPERS[place]


def forget_old(name: str) -> None:
    """Lets go of queries that this worker served long ago."""
    names = list(dict.fromkeys([*(n for n, _ in MAPPERS), *(n for n, _, _ in FRAGMENTS)]))
    for old in [n for n in names if n != name][:-MAX_QUERIES]:
        for place in [p for p in MAPPERS if p[0] == old]:
            del MAPPERS[place]
        for held in [p for p in FRAGMENTS if p[0] == old]:
            FRAGMENTS.pop(held).fragment.release()
