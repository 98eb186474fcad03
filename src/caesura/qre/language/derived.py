"""Patterns that are made of the combinators: windows, filters, keys, and reading without a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, col, lit, name_of, rename, when
from caesura.plan import here
from caesura.qre.language import query as q
from caesura.qre.language.arguments import condition, queried, whole, wrong
from caesura.qre.language.build import UNIT_OP, apply, finished, folding, iter1, made, want_items
from caesura.qre.language.folds import Fold, custom
from caesura.qre.language.items import Items
from caesura.qre.language.operations import ACC, ExprOp, X, operation
from caesura.qre.language.regex import (
    ANYTHING,
    Choice,
    Empty,
    Letter,
    Regex,
    Sequence,
    Star,
    any_of,
    as_regex,
    plus,
    seq,
    star,
)

__all__ = [
    "filter_",
    "iter_last",
    "keys_of",
    "map_",
    "map_collect",
    "match",
    "partition",
    "wnd",
    "wnd_count",
]


def keys_of(by: Any) -> tuple[tuple[str, Expr], ...]:
    """Key columns: names, expressions, or a dict from names to expressions."""
    named = list(by.values()) if isinstance(by, Mapping) else by if isinstance(by, (list, tuple)) else [by]
    if not named or not all(isinstance(e, (str, Expr)) for e in named):
        remedy = "Give a column's name, an expression, a list of them, or a dict from names to them."
        raise wrong("by", by, "the columns of a key", remedy)
    if isinstance(by, Mapping):
        return tuple((str(n), as_column(e)) for n, e in by.items())
    some = [as_column(e) for e in (by if isinstance(by, (list, tuple)) else [by])]
    return tuple((name_of(e), e) for e in some)


def map_collect(sync: Expr, by: Any, body: q.Query, *, every: Any = None, rate: Any = None) -> q.Query:
    """The body once per key, collected into a map.

    Parameters
    ----------
    sync
        The predicate of synchronisation items, which every key's body reads.
    by
        The key: a column's name, an expression, a list of them, or a dict of them by name.
    body
        What each key's items, and the synchronisation items, are read by.
    every
        A regular expression over the synchronisation items alone: the map comes out when they match it.
        One or more of them without it.
    rate
        The whole rate instead, which must then ignore the other items.

    Returns
    -------
    Query
        A map from keys to values at every synchronisation item.

    Notes
    -----
    State: that of the body for each key.

    See Also
    --------
    qre.partition : an answer for each key as it comes.
    qre.rel : goes on with such a map.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("k", pa.string()), ("v", pa.int64())]))
    >>> word = pa.record_batch({"k": ["a", "b", "a", "sync"], "v": [1, 2, 3, 0]})
    >>> own = qre.iter1(qre.atom(col("k") != "sync", col("v"), items=items), qre.sum())
    >>> sync = qre.match(col("k") == "sync", items=items)
    >>> body = qre.split(own, sync, op=col("_0"))
    >>> qre.evaluate(qre.map_collect(col("k") == "sync", "k", body), word)[-1]
    {'a': 4, 'b': 2}
    """
    queried("map_collect", body)
    unit = seq(star(Letter(_not_true(condition("map_collect", sync)))), Letter(sync))
    if rate is None:
        over = _spread(plus(Letter(sync)) if every is None else as_regex(every), sync, unit)
    else:
        over = as_regex(rate)
    return made(q.MapCollect(sync=sync, by=keys_of(by), body=body, over=over, given=rate is not None))


def _not_true(predicate: Expr) -> Expr:
    """True exactly where the predicate is false or null."""
    return ~predicate.coalesce(False)


def _spread(r: Regex, sync: Expr, unit: Regex) -> Regex:
    """s[(not S)* S / S]: keyed items may stand before each synchronisation item."""
    match r:
        case Letter(predicate=predicate):
            if predicate.key != sync.key:
                raise PlanError(
                    f"every= names '{predicate}', but only the synchronisation predicate may stand in it.",
                    remedy=f"Use '{sync}' alone, or write the whole rate with rate=.",
                ).at("map_collect", here())
            return unit
        case Sequence(parts=parts):
            return seq(*(_spread(p, sync, unit) for p in parts))
        case Choice(parts=parts):
            return any_of(*(_spread(p, sync, unit) for p in parts))
        case Star(body=body):
            return Star(_spread(body, sync, unit))
    return r


def match(rate: Any, *, items: Items | None = None) -> q.Query:
    """Reads a regular expression, and gives the unit value.

    Parameters
    ----------
    rate
        A predicate, or what `seq`, `any_of`, `star` and `plus` make of predicates.
    items
        What the stream's items are, as `qre.items` gives them; without it the query is checked when it is
        put on a stream.

    Returns
    -------
    Query
        It has a value, without content, on the words of the expression: a part of `split` that others
        stand beside.

    See Also
    --------
    qre.atom : one item with its value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> word = qre.seq(col("v") == 1, qre.star(col("v") > 1))
    >>> qre.evaluate(qre.apply(qre.match(word, items=items), True), pa.record_batch({"v": [1, 2, 3]}))
    [True, True, True]
    """
    want_items("match", items)
    return made(_matching(as_regex(rate), items))


def _matching(r: Regex, items: Items | None) -> q.Query:
    match r:
        case Letter(predicate=predicate):
            return q.Atom(predicate=predicate, op=UNIT_OP, items=items)
        case Choice(parts=parts):
            return q.Or(parts=tuple(_matching(p, items) for p in parts), items=items)
        case Sequence(parts=parts):
            names = tuple(f"_{i}" for i in range(len(parts)))
            return q.Split(
                parts=tuple(_matching(p, items) for p in parts), names=names, op=UNIT_OP, items=items
            )
        case Star(body=body):
            return q.Iter(body=_matching(body, items), init=UNIT_OP, op=UNIT_OP, items=items)
        case Empty():
            return q.Value(op=UNIT_OP, items=items)
    raise AssertionError(r)


def _after(skipped: Regex, last: q.Query) -> q.Query:
    skip = _matching(skipped, last.items)
    return made(q.Split(parts=(skip, last), names=("_0", "_1"), op=ExprOp(col("_1"))))


def filter_(predicate: Expr, *, items: Items | None = None) -> q.Query:
    """The items that satisfy a predicate, each as it comes.

    Parameters
    ----------
    predicate
        What the items satisfy; null is not true.
    items
        What the stream's items are, as `qre.items` gives them; without it the query is checked when it is
        put on a stream.

    Returns
    -------
    Query
        It has a value, the item, at every such item.

    See Also
    --------
    qre.map : what is made of each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> qre.evaluate(qre.filter(col("v") > 1, items=items), pa.record_batch({"v": [1, 2, 3]}))
    [undefined, {'v': 2}, {'v': 3}]
    """
    want_items("filter", items)
    return _after(Star(ANYTHING), q.Atom(predicate=condition("filter", predicate), items=items))


def map_(op: Any, *, items: Items | None = None) -> q.Query:
    """Every item's image, as it comes.

    Parameters
    ----------
    op
        An operation: an expression, a dict of them for a record, a Python function, or a constant, over
        the item's columns.
    items
        What the stream's items are, as `qre.items` gives them; without it the query is checked when it is
        put on a stream.

    Returns
    -------
    Query
        It has a value at every item.

    See Also
    --------
    qre.filter : some items as they are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> qre.evaluate(qre.map(col("v") + 1, items=items), pa.record_batch({"v": [1, 2, 3]}))
    [2, 3, 4]
    """
    want_items("map", items)
    return _after(Star(ANYTHING), q.Atom(predicate=lit(True), op=operation(op), items=items))


def iter_last(body: q.Query) -> q.Query:
    """The body again and again, with the value of its last match: tumbling windows by a pattern.

    Parameters
    ----------
    body
        What each match is read by.

    Returns
    -------
    Query
        It has a value after every whole match.

    See Also
    --------
    qre.iter : all values, folded.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> pair = qre.split(v, v, op=col("_0") + col("_1"))
    >>> qre.evaluate(qre.iter_last(pair), pa.record_batch({"v": [1, 2, 3, 4]}))
    [undefined, 3, undefined, 7]
    """
    return _after(Star(queried("iter_last", body).rate), body)


def wnd(body: q.Query, size: int, init: Any, op: Any = None, *, first: q.Query | None = None) -> q.Query:
    """The fold over the last so many pieces, at every piece.

    Parameters
    ----------
    body
        What each piece is read by.
    size
        How many pieces a window has.
    init
        A fold, such as ``qre.sum()``; or the value that it begins with.
    op
        With a beginning value: what becomes of the value so far, ``acc``, and the next one, ``x``.
    first
        What reads the first piece, where it differs from the others.

    Returns
    -------
    Query
        It has a value after every piece; while there are fewer, of all that there are.

    Notes
    -----
    State: the window's values, or partial folds of them. A fold that combines or takes values out again
    slides in constant time.

    See Also
    --------
    qre.iter_n : so many pieces once.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.wnd(v, 2, qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 3, 5]
    """
    queried("wnd", body)
    if first is not None:
        queried("wnd", first)
    if whole("wnd", size, "pieces") < 1:
        raise PlanError(f"a window of {size} pieces holds nothing.", remedy="Give a size of 1 or more.").at(
            "wnd", here()
        )
    fold = folding("wnd", init, op)
    inner = made(q.SlidingWindow(body=body, size=size, fold=fold, first=first))
    return inner if fold.finish is None else finished(inner, fold)


def wnd_count(body: q.Query, size: int, predicate: Expr, *, epsilon: float | None = None) -> q.Query:
    """How many of the last so many pieces have a value that satisfies a predicate.

    Parameters
    ----------
    body
        What each piece is read by.
    size
        How many pieces a window has.
    predicate
        What the value, named ``x``, satisfies; null is not true.
    epsilon
        With it the count is within this share, in logarithmic state; without it, it is exact.

    Returns
    -------
    Query
        A whole number after every piece.

    Notes
    -----
    State: the last pieces; with ``epsilon``, so many numbers as the logarithm of the size.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.wnd_count(v, 2, col("x") > 1), pa.record_batch({"v": [1, 2, 3]}))
    [0, 1, 2]
    """
    if whole("wnd_count", size, "pieces") < 1:
        raise wrong("wnd_count", size, "a window of at least one piece", "Give a size of 1 or more.")
    one = when(rename(condition("wnd_count", predicate), {"x": "_0"}), 1).otherwise(0)
    hit = apply(body, one)
    if epsilon is not None:
        from caesura.qre.language.sketches import event_count

        return iter1(hit, event_count(size, epsilon))
    add = custom(0, ACC + X, combine=col("a") + col("b"))
    return wnd(hit, size, Fold("count_if", add.init, add.step, None, add.combine, operation(ACC - X)))


def partition(body: q.Query, by: Any, *, only: Expr | None = None, again: bool = True) -> q.Query:
    """The body once per key, with an answer whenever the key's own items match.

    Parameters
    ----------
    body
        What each key's items are read by.
    by
        The key: a column's name, an expression, a list of them, or a dict of them by name.
    only
        Which items are seen; all without it.
    again
        Whether a key whose items can never match again begins anew, and holds no state until then. With
        False it stays closed, and is remembered.

    Returns
    -------
    Query
        Rows with the key's columns and the value. It stands at the top of a query only.

    Notes
    -----
    State: that of the body for each key that is within a match. On Spark and in buckets the keys are shared
    out.

    See Also
    --------
    qre.map_collect : all keys in one map.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("k", pa.string()), ("v", pa.int64())]))
    >>> own = qre.iter1(qre.atom(op=col("v"), items=items), qre.sum())
    >>> word = pa.record_batch({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    >>> qre.evaluate(qre.partition(own, "k"), word)
    [1, 2, 4]
    """
    queried("partition", body)
    seen = None if only is None else condition("partition", only)
    return made(q.Partition(body=body, by=keys_of(by), only=seen, again=bool(again)))
