"""What users call to build queries: the paper's combinators and the patterns derived from them.

Parts are positional (their values are named ``_0``, ``_1``, ...) or keywords (named so); operations
are expressions over those names, dicts of them, or Python functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, col, lit, name_of, rename, when
from caesura.plan import here
from caesura.qre.language import query as q
from caesura.qre.language.arguments import an_instance, condition, queried, whole, wrong
from caesura.qre.language.folds import Fold, custom
from caesura.qre.language.items import Items
from caesura.qre.language.operations import ACC, ExprOp, Operation, RecordOp, X, constant, operation
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
    letters,
    plus,
    seq,
    star,
)

UNIT_OP = RecordOp(())
MAX_POSITIONS = 10_000
"""So large may a pattern be that `iter_n` makes: preparing it takes seconds."""


def part(number: int) -> Expr:
    """The value of a positional part."""
    whole("part", number, "a part")
    return col(f"_{number}")


def _made(query: q.Query) -> q.Query:
    """The node, checked now if the items are known."""
    known = next((c.items for c in query.children() if c.items is not None), query.items)
    if known is None:
        return query
    from caesura.qre.checking.checking import check

    object.__setattr__(query, "items", known)
    check(query)
    return query


def atom(predicate: Expr | None = None, op: Any = None, *, items: Items | None = None) -> q.Query:
    """One item that satisfies the predicate (any without one); its value is the item itself by default."""
    test = lit(True) if predicate is None else condition("atom", predicate)
    _want_items("atom", items)
    return _made(q.Atom(predicate=test, op=None if op is None else operation(op), items=items))


def value(given: Any) -> q.Query:
    """A value for the empty word."""
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
    """The parts on consecutive pieces of the stream, their values combined; a query is a part in any case."""
    op, named = _named_op(op, named)
    every, names = _parts(parts, named, "split")
    return _made(q.Split(parts=every, names=names, op=_joined(op, names, "split")))


def combine(*parts: q.Query, op: Any = None, **named: q.Query) -> q.Query:
    """The parts on the same stream, their values combined; their rates must be equivalent."""
    op, named = _named_op(op, named)
    every, names = _parts(parts, named, "combine")
    return _made(q.Combine(parts=every, names=names, op=_joined(op, names, "combine")))


def apply(query: q.Query, op: Any) -> q.Query:
    """The query's value, changed: the operation names it ``_0``."""
    queried("apply", query)
    return _made(q.Combine(parts=(query,), names=("_0",), op=operation(op)))


def iter_(body: q.Query, init: Any, op: Any = None) -> q.Query:
    """The body any number of times; its values folded from ``init`` with ``op``, or by a fold."""
    queried("iter", body)
    if isinstance(init, Fold):
        inner = _made(q.Iter(body=body, init=init.init, op=init.step, fold=init))
        return inner if init.finish is None else _finished(inner, init)
    fold = _folding("iter", init, op)
    return _made(q.Iter(body=body, init=fold.init, op=fold.step))


def _folding(what: str, init: Any, op: Any) -> Fold:
    """A fold, or a starting value with a step."""
    if not isinstance(init, Fold) and op is None:
        raise PlanError(
            f"{what} has a starting value but no step.", remedy="Give op=, or a fold such as qre.sum()."
        ).at(what, here())
    return init if isinstance(init, Fold) else custom(init, op)


def _want_items(what: str, given: Any) -> None:
    if given is not None:
        an_instance(what, given, Items, "the items of a stream", "Give items=qre.items(schema).")


def _finished(inner: q.Query, fold: Fold) -> q.Query:
    assert fold.finish is not None
    return _made(q.Combine(parts=(inner,), names=("acc",), op=fold.finish))


def iter1(body: q.Query, init: Any, op: Any = None) -> q.Query:
    """At least once: split(iter(f, init, op), f, op)."""
    queried("iter1", body)
    fold = _folding("iter1", init, op)
    begun = _made(
        q.Iter(body=body, init=fold.init, op=fold.step, fold=fold if isinstance(init, Fold) else None)
    )
    inner = _made(q.Split(parts=(begun, body), names=("acc", "x"), op=fold.step))
    return inner if fold.finish is None else _finished(inner, fold)


def iter_n(body: q.Query, times: int, init: Any, op: Any = None) -> q.Query:
    """Exactly ``times`` times."""
    queried("iter_n", body)
    if whole("iter_n", times, "times") < 0:
        error = PlanError(f"iter_n cannot run {times} times.", remedy="Give a count of 0 or more.")
        raise error.at("iter_n", here())
    positions = times * len(letters(body.rate))
    if positions > MAX_POSITIONS:
        raise PlanError(
            f"iter_n of {times} times makes {positions} positions; at most {MAX_POSITIONS} are taken.",
            remedy="Repeat fewer times, or count pieces with iter(..., qre.count()) and look at the count.",
        ).at("iter_n", here())
    fold = _folding("iter_n", init, op)
    inner: q.Query = q.Value(op=fold.init, items=body.items)
    for _ in range(times):
        inner = q.Split(parts=(inner, body), names=("acc", "x"), op=fold.step, items=body.items)
    inner = _made(inner)
    return inner if fold.finish is None else _finished(inner, fold)


def or_(*parts: q.Query) -> q.Query:
    """Whichever part is defined; their rates must be disjoint."""
    every, _ = _parts(parts, {}, "or_")
    return _made(q.Or(parts=every)) if len(every) > 1 else every[0]


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

    ``every`` is a regex over the synchronisation items alone (by default one or more of them): the map
    comes out when they match it. ``rate`` gives the whole rate instead, which must then ignore keyed items.
    """
    queried("map_collect", body)
    unit = seq(star(Letter(_not_true(condition("map_collect", sync)))), Letter(sync))
    if rate is None:
        over = _spread(plus(Letter(sync)) if every is None else as_regex(every), sync, unit)
    else:
        over = as_regex(rate)
    return _made(q.MapCollect(sync=sync, by=keys_of(by), body=body, over=over, given=rate is not None))


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
    """Reads a regex and gives the unit value."""
    _want_items("match", items)
    return _made(_matching(as_regex(rate), items))


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
    return _made(q.Split(parts=(skip, last), names=("_0", "_1"), op=ExprOp(col("_1"))))


def filter_(predicate: Expr, *, items: Items | None = None) -> q.Query:
    """The items that satisfy the predicate, each as it comes."""
    _want_items("filter", items)
    return _after(Star(ANYTHING), q.Atom(predicate=condition("filter", predicate), items=items))


def map_(op: Any, *, items: Items | None = None) -> q.Query:
    """Every item's image, as it comes."""
    _want_items("map", items)
    return _after(Star(ANYTHING), q.Atom(predicate=lit(True), op=operation(op), items=items))


def iter_last(body: q.Query) -> q.Query:
    """Pattern-based tumbling windows: the body again and again, the value of its last match."""
    return _after(Star(queried("iter_last", body).rate), body)


def wnd(body: q.Query, size: int, init: Any, op: Any = None, *, first: q.Query | None = None) -> q.Query:
    """The fold over the last ``size`` pieces (or all, while there are fewer), at every piece.

    With ``first``, the first piece is read by that query and the others by the body.
    """
    queried("wnd", body)
    if first is not None:
        queried("wnd", first)
    if whole("wnd", size, "pieces") < 1:
        raise PlanError(f"a window of {size} pieces holds nothing.", remedy="Give a size of 1 or more.").at(
            "wnd", here()
        )
    fold = _folding("wnd", init, op)
    inner = _made(q.SlidingWindow(body=body, size=size, fold=fold, first=first))
    return inner if fold.finish is None else _finished(inner, fold)


def wnd_count(body: q.Query, size: int, predicate: Expr, *, epsilon: float | None = None) -> q.Query:
    """How many of the last ``size`` pieces have a value (named ``x``) that satisfies the predicate."""
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
    """The body once per key, answering whenever the key's own items match. Only at the top of a query.

    A key whose items can never match again begins anew and holds no state until then; with ``again=False`` it
    stays closed, and is remembered. Items for which ``only`` is not true are not seen.
    """
    queried("partition", body)
    seen = None if only is None else condition("partition", only)
    return _made(q.Partition(body=body, by=keys_of(by), only=seen, again=bool(again)))


__all__ = [
    "X",
    "apply",
    "atom",
    "combine",
    "filter_",
    "iter1",
    "iter_",
    "iter_last",
    "iter_n",
    "map_",
    "map_collect",
    "match",
    "or_",
    "part",
    "partition",
    "split",
    "value",
    "wnd",
    "wnd_count",
]
