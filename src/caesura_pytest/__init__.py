"""Fixtures for tests of pipelines: draw a stream, run it, compare.

pytest loads this by itself where Caesura is installed, and nothing else of it until a fixture is used.

    def test_a_late_order_corrects_its_window(draw_stream, assert_says):
        orders = draw_stream('''
         LE  RE | shop amount |
          3   4 | A    30     | +
        ''')
        assert_says(per_shop(orders), '''
         LE  RE | shop revenue |
          0  10 | A    30      | +
        ''')

A test that asks for the fixture ``spark`` as well is run on both hosts, and they must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pyarrow as pa

    import caesura as cz

SPARK = "caesura_spark_fixture"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which fixture of the user's gives a SparkSession."""
    parser.addini(SPARK, "the fixture that gives a SparkSession", default="spark")


@pytest.fixture
def draw_stream() -> Callable[..., cz.Stream]:
    """Makes a stream from a drawn table; columns are typed by ``schema``, ``name:type``, or their values."""
    import caesura as cz

    def made(drawn: str, schema: pa.Schema | None = None, **options: Any) -> cz.Stream:
        return cz.from_items(drawn, schema, **options)

    return made


@pytest.fixture
def assert_says(request: pytest.FixtureRequest) -> Callable[..., cz.Result]:
    """Fails unless a stream's history is the drawn one; gives what came out."""
    from caesura.testing import assert_history

    name = request.config.getini(SPARK)
    spark = request.getfixturevalue(name) if name in request.fixturenames else None

    def compared(stream: cz.Stream, drawn: str, *, late: int | None = None) -> cz.Result:
        result = stream.run()
        assert_history(result.history, drawn)
        _assert_late(result, late)
        if spark is not None:
            again = stream.run_batch(spark)
            assert_history(again.history, drawn)
            _assert_late(again, late)
        return result

    return compared


def _assert_late(result: cz.Result, wanted: int | None) -> None:
    events = {source: table["kind"].to_pylist() for source, table in result.late.items()}
    got = {source: sum(kind != "punctuation" for kind in kinds) for source, kinds in events.items()}
    if wanted is not None and sum(got.values()) != wanted:
        raise AssertionError(f"wanted {wanted} late rows, got {sum(got.values())}: {got}")
