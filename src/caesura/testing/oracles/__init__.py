"""Oracles: what each operator does to a history, slowly and from scratch.

They share no code with the operators; the law suite holds the two against each other.

>>> from caesura.testing import oracles
>>> oracles.distinct([(1, 4, {"v": 7}), (2, 9, {"v": 7})])
[(1, 9, {'v': 7})]
"""

from caesura.testing.oracles import of_steps
from caesura.testing.oracles.aggregates import totals
from caesura.testing.oracles.alive import alive
from caesura.testing.oracles.asof import join_asof
from caesura.testing.oracles.bags import difference, distinct
from caesura.testing.oracles.explode import explode
from caesura.testing.oracles.join import join
from caesura.testing.oracles.latest import latest
from caesura.testing.oracles.lifetime import (
    chop,
    clip,
    extend,
    forever,
    points_at_end,
    points_at_start,
    scale,
    set_duration,
    shift,
    start_at,
)
from caesura.testing.oracles.over import over
from caesura.testing.oracles.rows import Payload, Row, Rows
from caesura.testing.oracles.sample import sample
from caesura.testing.oracles.stateless import select, union, where
from caesura.testing.oracles.top import first_of, top
from caesura.testing.oracles.tumbling import horizon, tumbling
from caesura.testing.oracles.upserts import current

__all__ = [
    "Payload",
    "Row",
    "Rows",
    "alive",
    "chop",
    "clip",
    "current",
    "difference",
    "distinct",
    "explode",
    "extend",
    "first_of",
    "forever",
    "horizon",
    "join",
    "join_asof",
    "latest",
    "of_steps",
    "over",
    "points_at_end",
    "points_at_start",
    "sample",
    "scale",
    "select",
    "set_duration",
    "shift",
    "start_at",
    "top",
    "totals",
    "tumbling",
    "union",
    "where",
]
