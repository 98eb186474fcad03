"""A Spark Connect server and a client of it, for all tests; what is not there is not run, and says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clusters import NotRunError, connect_server, spark_home


@pytest.fixture(scope="session", autouse=True)
def there() -> None:
    try:
        spark_home()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of a Spark Connect server."""
    from pyspark.sql import SparkSession

    from caesura.spark.session import ROCKSDB, STORE

    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder / "server") as address:
        spark = SparkSession.builder.remote(address).getOrCreate()
        spark.conf.set(STORE, ROCKSDB)
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        yield spark
        spark.stop()
