"""Tests of streams: draw what goes in, draw what comes out, compare what they mean.

>>> import pyarrow as pa
>>> from caesura.ops.input import Input
>>> from caesura.testing import assert_history, run
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> out = run(clicks, {"clicks": '''
...  LE  RE    | id |
...   1  9     | 7  | +
...   1  9->5  | 7  | -
... '''})
>>> assert_history(out, '''
...  LE  RE | id |
...   1  5  | 7  | +
... ''')

The law suite is in `caesura.testing.laws`, random streams in `caesura.testing.strategies` (both need
Hypothesis), the slow recomputations in `caesura.testing.oracles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Protocol

import pyarrow as pa

from caesura.events import History, Item, Page, draw, parse
from caesura.events.differences import drawn_difference
from caesura.expr import Expr
from caesura.expr.evaluation import evaluate
from caesura.ops.input import Input
from caesura.plan import Node, walk
from caesura.runtime import Query
from caesura.testing.replay import assert_replay, load_stream

__all__ = ["assert_history", "assert_replay", "draw", "load_stream", "parse", "run", "values"]


class HasNode(Protocol):
    """Anything that stands for a plan, such as a `Stream`."""

    @property
    def node(self) -> Node: ...


def run(plan: Node | HasNode, inputs: Mapping[str, str]) -> list[Item]:
    """Feeds drawn streams to the inputs of a plan, in turn, and gives what comes out.

    Parameters
    ----------
    plan
        A stream, or a plan's step.
    inputs
        For each input, by its label, a drawn stream; see `caesura.parse`.

    Returns
    -------
    list
        Pages and punctuation, as they came out.

    See Also
    --------
    assert_history : compares it with a drawn table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura.testing import run
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> out = run(clicks.where("id > 3"), {"clicks": '''
    ...  LE RE | id |
    ...   1 2  | 7  | +
    ...   2 3  | 1  | +
    ... '''})
    >>> print(cz.draw(out))
     LE  RE | id |
      1  2  | 7  | +
    """
    node = plan if isinstance(plan, Node) else plan.node
    schemas = {n.label: n.schema for n in walk(node) if isinstance(n, Input)}
    query = Query({"out": node})
    parsed = [[(label, item) for item in parse(text, schemas.get(label))] for label, text in inputs.items()]
    for turn in zip_longest(*parsed):
        for fed in turn:
            if fed is not None:
                query.feed(*fed)
                query.run()
    return query.take("out")


def assert_history(got: Iterable[Item] | History, drawn: str) -> None:
    """Fails unless a history is the drawn one.

    Parameters
    ----------
    got
        What came out: items of a stream, or a `History`.
    drawn
        What is wanted; see `caesura.parse`.

    Raises
    ------
    AssertionError
        With both drawn as one, and a mark at each row that only one of them has.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura.testing import assert_history
    >>> rows = cz.from_rows([{"t": 1, "id": 7}], time="t")
    >>> assert_history(rows.run().history, '''
    ...  LE RE | id |
    ...   1 2  | 7  | +
    ... ''')
    """
    items = [] if isinstance(got, History) else list(got)
    schema = _schema(got, items)
    if schema is not None:
        _same_columns(drawn, schema)
    wanted_items = parse(drawn, schema)
    schema = schema or next((i.schema for i in wanted_items if isinstance(i, Page)), pa.schema([]))
    wanted = History.of(wanted_items, schema)
    mine = got if isinstance(got, History) else History.of(items, schema)
    if mine == wanted:
        return
    raise AssertionError(f"the histories differ\n{drawn_difference(wanted, mine)}")


def values(expr: Expr, /, **columns: Iterable[Any]) -> list[Any]:
    """The values of an expression over a few rows, without a stream.

    Parameters
    ----------
    expr
        What is computed: ``col("a") + 1``, or a function of `caesura.functions`.
    **columns
        The columns that it reads, each with a value for every row: a list, or an Arrow array where the type
        matters. Without any, the expression is computed for one row.

    Returns
    -------
    list
        A Python value for each row; None for null. What a query would refuse is refused here too.

    See Also
    --------
    run : what a whole plan makes of drawn streams.

    Examples
    --------
    >>> from caesura import col
    >>> from caesura.testing import values
    >>> values(col("a") * 2 + 1, a=[1, None, 3])
    [3, None, 7]
    """
    arrays = {name: c if isinstance(c, pa.Array) else pa.array(c) for name, c in columns.items()}
    batch = pa.record_batch(arrays or {"": pa.nulls(1)})
    made: list[Any] = evaluate(expr, batch).to_pylist()
    return made


def _same_columns(drawn: str, schema: pa.Schema) -> None:
    heading = next((line for line in drawn.splitlines() if "|" in line), "||")
    named = [name.partition(":")[0] for name in heading.split("|")[1].split()]
    if named and named != schema.names:
        wanted, got = ", ".join(named), ", ".join(schema.names)
        raise AssertionError(f"the columns differ\nwanted: {wanted}\ngot: {got}")


def _schema(got: object, items: Iterable[Item]) -> pa.Schema | None:
    if isinstance(got, History):
        return got.schema
    return next((item.schema for item in items if isinstance(item, Page)), None)
