"""A key is 0.0, whether its rows were written 0.0 or -0.0, and whichever came first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream

STEPS: dict[str, Callable[[Stream], Stream]] = {
    "totals": lambda s: s.group_by("k", "d").totals(n=cz.count()),
    "tumbling": lambda s: s.group_by("k", "d").tumbling(4).agg(n=cz.count()),
    "hopping": lambda s: s.group_by("k", "d").hopping(4, every=2).agg(n=cz.count()),
    "snapshot": lambda s: s.group_by("k", "d").snapshot().agg(n=cz.count()),
    "session": lambda s: s.group_by("k", "d").session(3).agg(n=cz.count(), low=cz.min("k")),
    "distinct": lambda s: s.select("k", "d").distinct(),
    "difference": lambda s: s.select("k", "d").difference(s.where(cz.col("ts2") > 90).select("k", "d")),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("output", ["changes", "final"])
@pytest.mark.parametrize("step", STEPS)
def test_keys_show_no_sign_of_zero(step: str, output: Literal["changes", "final"]) -> None:
    @settings(max_examples=examples(6), deadline=None)
    @given(st.lists(st.sampled_from([0.0, -0.0, 1.0, None]), min_size=1, max_size=6), st.booleans())
    def holds(keys: list[float | None], ends: bool) -> None:
        times = list(range(len(keys)))
        deep = pa.array([None if k is None else {"x": k} for k in keys], pa.struct([("x", pa.float32())]))
        columns = {"ts": times, "ts2": times, "re": [t + 3 for t in times]}
        table = pa.table({**columns, "k": pa.array(keys, pa.float64()), "d": deep})
        more = {"end": "re"} if ends else {}
        source = cz.from_arrow(table, time="ts", batch_size=1, punctuate=cz.delay(2), **more)
        assert "-0.0" not in str(STEPS[step](source).run(output=output).table().to_pylist())

    holds()
