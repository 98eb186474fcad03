"""One Spark session for all Spark tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import caesura as cz


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    made = cz.session("caesura-tests", master="local[2]", buckets=2)
    yield made
    made.stop()


@pytest.fixture
def buckets(spark: Any) -> Iterator[Any]:
    """Sets the number of buckets for one test."""

    def choose(number: int) -> None:
        spark.conf.set("spark.sql.shuffle.partitions", number)

    yield choose
    spark.conf.set("spark.sql.shuffle.partitions", 2)
