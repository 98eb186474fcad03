"""One Spark session for all Spark tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from quick_start import lay_out, quick_start

import caesura as cz

SECOND = {"test_change_on_spark"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With two processes, one has the session and the other the tests that start Spark by themselves.

    So that both take as long, the second has a session too, for some of the others.
    """
    for item in items:
        shared = "spark" in getattr(item, "fixturenames", ()) and item.path.stem not in SECOND
        item.add_marker(pytest.mark.xdist_group("shared" if shared else "alone"))


@pytest.fixture(scope="session", autouse=True)
def classes() -> None:
    """What all starts of Spark read is there before the first."""
    lay_out()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    fast = {"spark_sql_streaming_stateStore_maintenanceInterval": "5s"}  # epochs are short
    made = cz.session("caesura-tests", master="local[2]", buckets=2, **fast, **quick_start())
    yield made
    made.stop()


@pytest.fixture
def buckets(spark: Any) -> Iterator[Any]:
    """Sets the number of buckets for one test."""

    def choose(number: int) -> None:
        spark.conf.set("spark.sql.shuffle.partitions", number)

    yield choose
    spark.conf.set("spark.sql.shuffle.partitions", 2)
