"""Every kind of aggregate has all that it needs, so that a new one cannot forget a part."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import caesura as cz
from caesura.errors import PlanError
from caesura.ops.aggregate.kinds import KINDS, Aggregate, result_type
from caesura.testing.oracles.aggregates import ORACLES, TIMED

SHARES = {"whole_sum", "sketch", "merged_sketches", "float_sums", "merged_float_sums"}
WRITTEN = sorted(set(KINDS) - SHARES)
NUMERIC = (
    "sum",
    "avg",
    "median",
    "median_absolute_deviation",
    "percentile",
    "stddev",
    "variance",
    "corr",
    "covar_pop",
    "covar_samp",
)
TYPED = (*NUMERIC, "bool_or", "bool_and", "string_agg")
DOCS = Path(__file__).parents[2] / "docs"


def test_users_can_write_every_kind_but_shares_and_each_has_an_oracle() -> None:
    assert set(ORACLES) | set(TIMED) == set(WRITTEN)
    assert set(WRITTEN) <= set(cz.__all__)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_kind_is_documented(name: str) -> None:
    assert f"`{name}`" in (DOCS / "windows.md").read_text()
    assert f".. autofunction:: caesura.{name}\n" in (DOCS / "reference/aggregates.md").read_text()
    assert getattr(cz, name).__doc__


@pytest.mark.parametrize("name", WRITTEN)
def test_every_kind_refuses_what_it_cannot_take_or_names_a_type_for_it(name: str) -> None:
    pair = pa.schema([("v", pa.struct([("a", pa.int64())]))])
    one = Aggregate(name, cz.col("v"), 1)
    if name in TYPED:
        with pytest.raises(PlanError, match="wanted a"):
            result_type(one, pair, pa.int64())
        return
    made = result_type(one, pair, pa.int64())
    struct = pair.field("v").type
    assert made in (struct, pa.int64(), pa.list_(struct), pa.struct([("top1", struct)]))


def test_the_files_that_the_recipe_names_are_there() -> None:
    text = (DOCS / "adr/0019-what-an-operator-touches.md").read_text()
    named = set(re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", text))
    assert len(named) > 10
    assert not [name for name in named if not (DOCS.parent / name).exists()]
