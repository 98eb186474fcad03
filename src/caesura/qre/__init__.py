"""StreamQRE: quantitative regular expressions over streams, type-checked and compiled.

A query reads a stream as a regular expression would, and computes a value on the way. It is refused
when it is built if a stream could be read in two ways.

>>> import pyarrow as pa
>>> from caesura import qre
>>> from caesura.expr import col
>>> items = qre.items(pa.schema([("kind", pa.string()), ("v", pa.float64())]))
>>> begin, end = (qre.match(col("kind") == k, items=items) for k in ("B", "E"))
>>> measured = qre.iter(qre.atom(col("kind") == "M", col("v"), items=items), qre.avg())
>>> episode = qre.split(begin, measured, end, op=col("_1"))
>>> qre.evaluate(episode, pa.record_batch({"kind": ["B", "M", "M", "E"], "v": [None, 1.0, 4.0, None]}))
[undefined, undefined, undefined, 2.5]
"""

from types import FunctionType

from caesura.expr import Column
from caesura.misuse import checked, checked_methods
from caesura.qre.checking.checking import check
from caesura.qre.engine.evaluation import Evaluator, evaluate, explain
from caesura.qre.language.build import apply, atom, combine, iter1, iter_n, or_, part, split, value
from caesura.qre.language.build import iter_ as iter
from caesura.qre.language.derived import filter_ as filter
from caesura.qre.language.derived import iter_last, map_collect, match, partition, wnd, wnd_count
from caesura.qre.language.derived import map_ as map
from caesura.qre.language.folds import Fold, avg, count, custom, discounted, interpolated_avg, linreg, stddev
from caesura.qre.language.folds import max_ as max
from caesura.qre.language.folds import min_ as min
from caesura.qre.language.folds import sum_ as sum
from caesura.qre.language.items import TICK as TICK_COLUMN
from caesura.qre.language.items import Items, items, tagged
from caesura.qre.language.operations import function
from caesura.qre.language.query import Query
from caesura.qre.language.regex import Regex, any_of, letter, plus, seq, star
from caesura.qre.language.relations import rel
from caesura.qre.language.sketches import median, quantile
from caesura.qre.reference.oracle import UNDEFINED, denote
from caesura.qre.step.node import Over, over

TICK = Column(TICK_COLUMN)
"""True for woven ticks, false for events."""

__all__ = [
    "TICK",
    "UNDEFINED",
    "Evaluator",
    "Fold",
    "Items",
    "Over",
    "Query",
    "Regex",
    "any_of",
    "apply",
    "atom",
    "avg",
    "check",
    "combine",
    "count",
    "custom",
    "denote",
    "discounted",
    "evaluate",
    "explain",
    "filter",
    "function",
    "interpolated_avg",
    "items",
    "iter",
    "iter1",
    "iter_last",
    "iter_n",
    "letter",
    "linreg",
    "map",
    "map_collect",
    "match",
    "max",
    "median",
    "min",
    "or_",
    "over",
    "part",
    "partition",
    "plus",
    "quantile",
    "rel",
    "seq",
    "split",
    "star",
    "stddev",
    "sum",
    "tagged",
    "value",
    "wnd",
    "wnd_count",
]

for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = checked(globals()[_name])
for _kind in (Evaluator, Items, Query, Regex):
    checked_methods(_kind)
