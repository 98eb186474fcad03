"""A job on its way as bytes: processes that pass it on, or only plan with it, never read it.

Spark starts several of those for each query. What a plan is made of takes longer to import than most epochs.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import lru_cache
from pickle import loads
from typing import TYPE_CHECKING

from pyspark.cloudpickle import dumps

if TYPE_CHECKING:
    from caesura.spark.worker.job import Job

MAX_JOBS = 16


@dataclass(frozen=True)
class ShippedJob:
    """A job that is read where it is used, once in each process."""

    key: str
    data: bytes = field(compare=False, repr=False)

    @staticmethod
    def of(job: Job) -> ShippedJob:
        return ShippedJob(uuid.uuid4().hex, dumps(job))  # type: ignore[no-untyped-call]

    @property
    def job(self) -> Job:
        return _read(self)


@lru_cache(maxsize=MAX_JOBS)
def _read(shipped: ShippedJob) -> Job:
    job: Job = loads(shipped.data)
    return job
