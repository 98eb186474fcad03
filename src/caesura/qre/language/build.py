"""What users call to build queries: the paper's combinators and the patterns derived from them.

Parts are positional (their values are named ``_0``, ``_1``, ...) or keywords (named so); operations
are expressions over those names, dicts of them, or Python functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, col, lit
from caesura.plan import here
from caesura.qre.language import query as q
from caesura.qre.language.arguments import an_instance, condition, queried, whole
from caesura.qre.language.folds import Fold, custom
from caesura.qre.language.items import Items
from caesura.qre.language.operations import ExprOp, Operation, RecordOp, X, constant, operation
from caesura.qre.language.regex import (
    letters,
)

UNIT_OP = RecordOp(())
MAX_POSITIONS = 10_000
"""So large may a pattern be that `iter_n` makes: preparing it takes seconds."""


def part(number: int) -> Expr:
    """The value of a positional part.

    Parameters
    ----------
    number
        Which part, from 0 on.

    Returns
    -------
    Expr
        The expression ``col("_0")``, for operations of `split` and `combine`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> both = qre.split(v, v, op=qre.part(0) + qre.part(1))
    >>> qre.evaluate(both, pa.record_batch({"v": [1, 2, 3]}))
    [undefined, 3, undefined]
    """
    whole("part", number, "a part")
    return col(f"_{number}")


def made(query: q.Query) -> q.Query:
    """The node, checked now if the items are known."""
    known = next((c.items for c in query.children() if c.items is not None), query.items)
    if known is None:
        return query
    from caesura.qre.checking.checking import check

    object.__setattr__(query, "items", known)
    check(query)
    return query


def atom(predicate: Expr | None = None, op: Any = None, *, items: Items | None = None) -> q.Query:
    """One item that satisfies a predicate.

    Parameters
    ----------
    predicate
        What the item satisfies; any item without it. Null is not true.
    op
        An operation: an expression, a dict of them for a record, a Python function, or a constant, over
        the item's columns. Without it the value is the item, as a record.
    items
        What the stream's items are, as `qre.items` gives them; without it the query is checked when it is
        put on a stream.

    Returns
    -------
    Query
        It has a value on one such item.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> qre.evaluate(qre.atom(col("v") > 1, col("v") * 10, items=items), pa.record_batch({"v": [5]}))
    [50]
    """
    test = lit(True) if predicate is None else condition("atom", predicate)
    want_items("atom", items)
    return made(q.Atom(predicate=test, op=None if op is None else operation(op), items=items))


def value(given: Any) -> q.Query:
    """A value for the empty word.

    Parameters
    ----------
    given
        The value, of Python; a dict is a record.

    Returns
    -------
    Query
        It reads nothing and has that value: a branch of `or_`, or a part of `split`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> found = qre.split(n=qre.value(0), v=v)
    >>> qre.evaluate(found, pa.record_batch({"v": [7]}))
    [{'n': 0, 'v': 7}]
    """
    return q.Value(op=constant(given))


def _parts(
    parts: tuple[q.Query, ...], named: Mapping[str, q.Query], what: str
) -> tuple[tuple[q.Query, ...], tuple[str, ...]]:
    names = tuple(f"_{i}" for i in range(len(parts))) + tuple(named)
    every = (*parts, *named.values())
    for name, one in zip(names, every, strict=True):
        if not isinstance(one, q.Query):
            raise PlanError(
                f"the part '{name}' of {what} is {one!r}, which is no query.",
                remedy="Make it one: atom(...), iter(...), match(...).",
            ).at(what, here())
    if not every:
        raise PlanError(f"{what} has no parts.", remedy="Give at least one query.").at(what, here())
    return every, names


def _joined(op: Any, names: tuple[str, ...], what: str) -> Operation:
    if op is not None:
        return operation(op)
    if any(n.startswith("_") for n in names):
        raise PlanError(
            f"{what} of unnamed parts has no operation.",
            remedy="Name the parts to get a record of them, or give op=, as in op=col('_0') + col('_1').",
        ).at(what, here())
    return RecordOp(tuple((n, ExprOp(col(n))) for n in names))


def _named_op(op: Any, named: dict[str, q.Query]) -> tuple[Any, dict[str, q.Query]]:
    """The operation and the parts, of which one may be called ``op``."""
    return (None, {**named, "op": op}) if isinstance(op, q.Query) else (op, named)


def split(*parts: q.Query, op: Any = None, **named: q.Query) -> q.Query:
    """The parts on consecutive pieces of the stream, their values combined.

    Parameters
    ----------
    *parts
        Queries; their values are named ``_0``, ``_1``, and so on.
    op
        An operation: an expression, a dict of them for a record, a Python function, or a constant, over
        the names of the parts. Without it, named parts make a record.
    **named
        Queries whose values go by these names.

    Returns
    -------
    Query
        It has a value where the stream so far can be cut into such pieces.

    Notes
    -----
    A stream that could be cut in two ways is refused when the query is built.

    See Also
    --------
    qre.combine : the parts on the same piece.
    qre.iter : one part again and again.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> both = qre.split(v, v, op=col("_0") + col("_1"))
    >>> qre.evaluate(both, pa.record_batch({"v": [1, 2, 3]}))
    [undefined, 3, undefined]
    """
    op, named = _named_op(op, named)
    every, names = _parts(parts, named, "split")
    return made(q.Split(parts=every, names=names, op=_joined(op, names, "split")))


def combine(*parts: q.Query, op: Any = None, **named: q.Query) -> q.Query:
    """The parts on the same stream, their values combined.

    Parameters
    ----------
    *parts
        Queries; their values are named ``_0``, ``_1``, and so on.
    op
        An operation: an expression, a dict of them for a record, a Python function, or a constant, over
        the names of the parts. Without it, named parts make a record.
    **named
        Queries whose values go by these names.

    Returns
    -------
    Query
        It has a value where the parts have one.

    Notes
    -----
    The parts must have a value on the same words; others are refused when the query is built.

    See Also
    --------
    qre.split : the parts one behind the other.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> n, s = qre.iter(v, qre.count()), qre.iter(v, qre.sum())
    >>> qre.evaluate(qre.combine(n, s, op=col("_1") / col("_0")), pa.record_batch({"v": [1, 2, 3]}))
    [1.0, 1.5, 2.0]
    """
    op, named = _named_op(op, named)
    every, names = _parts(parts, named, "combine")
    return made(q.Combine(parts=every, names=names, op=_joined(op, names, "combine")))


def apply(query: q.Query, op: Any) -> q.Query:
    """The query's value, changed.

    Parameters
    ----------
    query
        What is read.
    op
        An operation: an expression, a dict of them for a record, a Python function, or a constant, over
        the value, named ``_0``.

    Returns
    -------
    Query
        It reads what the query reads.

    See Also
    --------
    qre.combine : of several queries.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.apply(qre.iter(v, qre.sum()), col("_0") * 100), pa.record_batch({"v": [1, 2, 3]}))
    [100, 300, 600]
    """
    queried("apply", query)
    return made(q.Combine(parts=(query,), names=("_0",), op=operation(op)))


def iter_(body: q.Query, init: Any, op: Any = None) -> q.Query:
    """The body any number of times, its values folded into one.

    Parameters
    ----------
    body
        What each piece is read by.
    init
        A fold, such as ``qre.sum()``; or the value that it begins with.
    op
        With a beginning value: what becomes of the value so far, ``acc``, and the next one, ``x``.

    Returns
    -------
    Query
        It has a value after every whole number of pieces, also after none.

    Notes
    -----
    State: the folded value. A stream that could be cut into pieces in two ways is refused when the query is
    built.

    See Also
    --------
    qre.iter1 : at least once.
    qre.iter_n : so many times.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter(v, qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 3, 6]
    >>> qre.evaluate(qre.iter(v, 1, col("acc") * col("x")), pa.record_batch({"v": [1, 2, 3]}))
    [1, 2, 6]
    """
    queried("iter", body)
    if isinstance(init, Fold):
        inner = made(q.Iter(body=body, init=init.init, op=init.step, fold=init))
        return inner if init.finish is None else finished(inner, init)
    fold = folding("iter", init, op)
    return made(q.Iter(body=body, init=fold.init, op=fold.step))


def folding(what: str, init: Any, op: Any) -> Fold:
    """A fold, or a starting value with a step."""
    if not isinstance(init, Fold) and op is None:
        raise PlanError(
            f"{what} has a starting value but no step.", remedy="Give op=, or a fold such as qre.sum()."
        ).at(what, here())
    return init if isinstance(init, Fold) else custom(init, op)


def want_items(what: str, given: Any) -> None:
    if given is not None:
        an_instance(what, given, Items, "the items of a stream", "Give items=qre.items(schema).")


def finished(inner: q.Query, fold: Fold) -> q.Query:
    assert fold.finish is not None
    return made(q.Combine(parts=(inner,), names=("acc",), op=fold.finish))


def iter1(body: q.Query, init: Any, op: Any = None) -> q.Query:
    """The body at least once, its values folded into one.

    Parameters
    ----------
    body
        What each piece is read by.
    init
        A fold, such as ``qre.sum()``; or the value that it begins with.
    op
        With a beginning value: what becomes of the value so far, ``acc``, and the next one, ``x``.

    Returns
    -------
    Query
        It has a value after every piece.

    See Also
    --------
    qre.iter : any number of times.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter1(v, qre.max()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 2, 3]
    """
    queried("iter1", body)
    fold = folding("iter1", init, op)
    begun = made(
        q.Iter(body=body, init=fold.init, op=fold.step, fold=fold if isinstance(init, Fold) else None)
    )
    inner = made(q.Split(parts=(begun, body), names=("acc", "x"), op=fold.step))
    return inner if fold.finish is None else finished(inner, fold)


def iter_n(body: q.Query, times: int, init: Any, op: Any = None) -> q.Query:
    """The body so many times, its values folded into one.

    Parameters
    ----------
    body
        What each piece is read by.
    times
        How many times.
    init
        A fold, such as ``qre.sum()``; or the value that it begins with.
    op
        With a beginning value: what becomes of the value so far, ``acc``, and the next one, ``x``.

    Returns
    -------
    Query
        It has a value after that many pieces, and no other.

    Notes
    -----
    The query grows with the number of times: it may have 10,000 positions.

    See Also
    --------
    qre.wnd : the last so many pieces, again and again.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.evaluate(qre.iter_n(v, 2, qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [undefined, 3, undefined]
    """
    queried("iter_n", body)
    if whole("iter_n", times, "times") < 0:
        error = PlanError(f"iter_n cannot run {times} times.", remedy="Give a count of 0 or more.")
        raise error.at("iter_n", here())
    positions = times * len(letters(body.rate))
    if positions > MAX_POSITIONS:
        raise PlanError(
            f"iter_n of {times} times has {positions} atoms; at most {MAX_POSITIONS} are possible.",
            remedy="Repeat fewer times, or count pieces with iter(..., qre.count()) and look at the count.",
        ).at("iter_n", here())
    fold = folding("iter_n", init, op)
    inner: q.Query = q.Value(op=fold.init, items=body.items)
    for _ in range(times):
        inner = q.Split(parts=(inner, body), names=("acc", "x"), op=fold.step, items=body.items)
    inner = made(inner)
    return inner if fold.finish is None else finished(inner, fold)


def or_(*parts: q.Query) -> q.Query:
    """Whichever part has a value.

    Parameters
    ----------
    *parts
        Queries that never have a value on the same word; others are refused when the query is built.

    Returns
    -------
    Query
        It reads what one of the parts reads.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> low = qre.atom(col("v") < 2, col("v"), items=items)
    >>> high = qre.atom(col("v") >= 2, -col("v"), items=items)
    >>> qre.evaluate(qre.iter(qre.or_(low, high), qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [1, -1, -4]
    """
    every, _ = _parts(parts, {}, "or_")
    return made(q.Or(parts=every)) if len(every) > 1 else every[0]


__all__ = [
    "UNIT_OP",
    "X",
    "apply",
    "atom",
    "combine",
    "finished",
    "folding",
    "iter1",
    "iter_",
    "iter_n",
    "made",
    "or_",
    "part",
    "split",
    "value",
    "want_items",
]
