"""Places in Azure's blob store, as its own emulator serves it: what holds in S3 holds there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from conftest import forget_store
from local_azurite import ACCOUNT, CONTAINER, AzureServer
from local_kafka import NotRunError
from test_object_store import (
    test_a_checkpoint_goes_on_after_a_fault_at_every_put as test_a_checkpoint_goes_on,
)
from test_object_store import (
    test_a_folder_there_holds_the_table_after_a_fault_at_a_put as test_a_folder_holds_the_table,
)
from test_object_store import (
    test_a_put_replaces_a_create_does_not_and_listings_are_of_one_folder as test_puts_and_listings,
)
from test_object_store import (
    test_an_update_begins_again_where_another_put_came_between as test_an_update_begins_again,
)
from test_object_store import (
    test_of_all_threads_that_create_a_file_one_wins as test_of_all_threads_one_wins,
)
from test_object_store import (
    test_of_two_queries_on_one_checkpoint_the_earlier_stops as test_of_two_queries_the_earlier_stops,
)

from caesura.io.places import objects

__all__ = [
    "test_a_checkpoint_goes_on",
    "test_a_folder_holds_the_table",
    "test_an_update_begins_again",
    "test_of_all_threads_one_wins",
    "test_of_two_queries_the_earlier_stops",
    "test_puts_and_listings",
]


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    try:
        running = AzureServer()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    with running:
        yield running


@pytest.fixture
def bucket(azure: AzureServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder of its own in a container, as a URI: it takes the place of the one in S3."""
    for name, value in azure.environment.items():
        monkeypatch.setenv(name, value)
    objects._opened.cache_clear()
    yield f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/{uuid.uuid4().hex}"
    forget_store()
