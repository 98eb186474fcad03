"""What a query means, by trying all splits: slow, obvious, and the referee of every evaluator.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> from caesura.qre.language.build import atom, iter_, split
>>> from caesura.qre.language.folds import count
>>> from caesura.qre.language.items import items
>>> a = atom(col("k") == 1, items=items(pa.schema([("k", pa.int64())])))
>>> b = atom(col("k") == 2, items=a.items)
>>> query = split(iter_(a, count()), b, op=col("_0"))
>>> denote(query, pa.record_batch({"k": [1, 1, 2]}))
[undefined, undefined, 2]
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.expr import Expr, RowError, evaluate
from caesura.kernels.hashing import I64
from caesura.qre.checking.checking import letters_of, trusts_cases
from caesura.qre.checking.inference import part_types, value_type
from caesura.qre.checking.positions import bits, positions
from caesura.qre.compiler.columns import unanswered, undeclared
from caesura.qre.language import query as q
from caesura.qre.language.arguments import batch_of, queried
from caesura.qre.language.operations import ExprOp, Operation, RecordOp
from caesura.qre.language.regex import letters
from caesura.qre.language.scalar import Closure
from caesura.qre.language.types import Record
from caesura.qre.language.whole_numbers import Void, refuse_void, whole


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()
Word = tuple[int, ...]


def denote(query: q.Query, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
    """The value of every prefix but the empty one, by the definition.

    Parameters
    ----------
    query
        What is computed; its items must be known.
    batch
        The word.
    le, re
        The rows' lifetimes, where the query reads them.

    Returns
    -------
    list
        A value for each row, as `evaluate` gives; UNDEFINED where there is none.

    Notes
    -----
    It tries every way to cut the word, so it is for short words: tests compare `evaluate` with it.

    See Also
    --------
    qre.evaluate : the fast one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.denote(qre.iter(v, qre.sum()), pa.record_batch({"v": [1, 2, 3]}))
    [1, 3, 6]
    """
    if queried("denote", query).items is None:
        raise PlanError(
            "the items of this query are not known.", remedy="Call query.on(qre.items(schema)) first."
        )
    assert query.items is not None
    batch = batch_of("denote", batch, query.items.schema)
    if isinstance(query, q.Pipe):
        return _piped(query, denote(query.first, batch, le, re))
    q.refuse_deep(query, "the oracle")
    meaning = _Meaning(batch, le, re)
    _refuse_unanswered(query, meaning)
    _refuse_undeclared(query, batch, le, re)
    rows = tuple(range(batch.num_rows))
    if isinstance(query, q.Partition):
        out = _partitioned(meaning, query, rows)
    else:
        out = [meaning.of(query, rows[: i + 1]) for i in range(len(rows))]
    refuse_void(out, batch)
    return out


def _refuse_unanswered(query: q.Query, meaning: _Meaning) -> None:
    """Every predicate is asked of every item that the query sees."""
    only = query.only
    asked = letters_of(query.per_key).exprs
    for row in range(len(meaning.rows)):
        for predicate in [*([] if only is None else [only]), *asked]:
            try:
                if meaning.read(predicate, row, query) is not True and predicate is only:
                    break
            except RowError as error:
                raise unanswered(error, 0, meaning.rows[row]) from None


def _refuse_undeclared(query: q.Query, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> None:
    """Items that no case declares have no meaning where the query is ambiguous with them."""
    body = query.per_key
    if not trusts_cases(query):
        return
    known, meaning = letters_of(body), _Meaning(batch, le, re)
    for row in range(batch.num_rows):
        truth = sum(1 << i for i, e in enumerate(known.exprs) if meaning.read(e, row, query) is True)
        seen = query.only is None or meaning.read(query.only, row, None)
        if seen and truth not in {m.truth for m in known.minterms}:
            raise undeclared(meaning.rows[row])


def _piped(query: q.Pipe, values: list[Any]) -> list[Any]:
    assert query.second.items is not None
    schema = query.second.items.schema
    given = [v for v in values if v is not UNDEFINED]
    rows = [v if isinstance(value_type(query.first), Record) else {"value": v} for v in given]
    after = iter(denote(query.second, pa.RecordBatch.from_pylist(rows, schema)))
    return [v if v is UNDEFINED else next(after) for v in values]


def _partitioned(meaning: _Meaning, query: q.Partition, rows: Word) -> list[Any]:
    """Per key its own word, which begins anew once no longer word can match."""
    lives: dict[Any, Word] = {}
    out: list[Any] = []
    for row in rows:
        if query.only is not None and meaning.read(query.only, row, None) is not True:
            out.append(UNDEFINED)
            continue
        key = meaning.key(query.by, row)
        word = (*lives.get(key, ()), row)
        out.append(meaning.of(query.body, word))
        lives[key] = word if not query.again or meaning.hopeful(query.body, word) else ()
    return out


class _Meaning:
    """The denotation over one batch of items; every (query, word) is worked out once."""

    def __init__(self, batch: pa.RecordBatch, le: I64 | None, re: I64 | None) -> None:
        self.rows = [batch.slice(i, 1) for i in range(batch.num_rows)]
        self.le, self.re = le, re
        self.known: dict[Any, Any] = {}

    def of(self, query: q.Query, word: Word) -> Any:
        key = (query, word)
        if key not in self.known:
            self.known[key] = self._denote(query, word)
        return self.known[key]

    def _denote(self, query: q.Query, word: Word) -> Any:
        match query:
            case q.Atom():
                if len(word) != 1 or self.read(query.predicate, word[0], query) is not True:
                    return UNDEFINED
                return self._value(query.op, word[0], query)
            case q.Value(op=op):
                return UNDEFINED if word else op.closure({})({})
            case q.Split():
                return self._split(query, word)
            case q.Combine():
                values = [self.of(p, word) for p in query.parts]
                if UNDEFINED in values:
                    return UNDEFINED
                return self._of_parts(query)(dict(zip(query.names, values, strict=True)))
            case q.Iter(body=body, init=init, op=op):
                pieces = self._pieces(body, word)
                return UNDEFINED if pieces is None else self._folded(query, init, op, pieces)
            case q.SlidingWindow(fold=fold, size=size):
                pieces = self._window(query, word)
                return UNDEFINED if not pieces else self._folded(query, fold.init, fold.step, pieces[-size:])
            case q.Or(parts=parts):
                return next((v for p in parts if (v := self.of(p, word)) is not UNDEFINED), UNDEFINED)
            case q.MapCollect():
                return self._collected(query, word)
        raise AssertionError(query)

    def hopeful(self, query: q.Query, word: Word) -> bool:
        """Whether some longer word matches: the rate's automaton over the items themselves as letters."""

        def mask(key: Any) -> int:
            test = next(x.predicate for x in letters(query.rate) if x.predicate.key == key)
            return sum(1 << row for row in word if self.read(test, row, query) is True)

        auto = positions(query.rate, mask)
        live = auto.by_letter[-1].get(word[0], 0)
        for row in word[1:]:
            live = sum(1 << n for n in {n for p in bits(live) for n in bits(auto.by_letter[p].get(row, 0))})
        return any(auto.follow[p] for p in bits(live))

    def _of_parts(self, query: q.Split | q.Combine) -> Closure:
        """What a node does with the values of its parts; worked out once."""
        key = ("of parts", query)
        if key not in self.known:
            self.known[key] = query.op.closure(part_types(query))
        return self.known[key]  # type: ignore[no-any-return]

    def _step(self, query: q.Query, op: Operation) -> Closure:
        """What a fold does with its last value and a piece; worked out once."""
        key = ("step", query)
        if key not in self.known:
            body = query.children()[0]
            self.known[key] = op.closure({"acc": value_type(query), "x": value_type(body)})
        return self.known[key]  # type: ignore[no-any-return]

    def _split(self, query: q.Split, word: Word) -> Any:
        run = self._of_parts(query)
        for values in self._divided(query.parts, word):
            return run(dict(zip(query.names, values, strict=True)))
        return UNDEFINED

    def _divided(self, parts: tuple[q.Query, ...], word: Word) -> list[list[Any]]:
        if not parts:
            return [] if word else [[]]
        found = []
        for i in range(len(word) + 1):
            first = self.of(parts[0], word[:i])
            if first is not UNDEFINED:
                found += [[first, *rest] for rest in self._divided(parts[1:], word[i:])]
        return found

    def _pieces(self, body: q.Query, word: Word) -> list[Any] | None:
        key = ("pieces", body, word)
        if key not in self.known:
            self.known[key] = self._cut(body, word)
        return self.known[key]  # type: ignore[no-any-return]

    def _cut(self, body: q.Query, word: Word) -> list[Any] | None:
        if not word:
            return []
        for i in range(len(word)):
            last = self.of(body, word[i:])
            before = None if last is UNDEFINED else self._pieces(body, word[:i])
            if before is not None:
                return [*before, last]
        return None

    def _window(self, query: q.SlidingWindow, word: Word) -> list[Any] | None:
        if query.first is None:
            return self._pieces(query.body, word)
        for i in range(len(word) + 1):
            first, rest = self.of(query.first, word[:i]), self._pieces(query.body, word[i:])
            if first is not UNDEFINED and rest is not None:
                return [first, *rest]
        return None

    def _folded(self, query: q.Query, init: Operation, op: Operation, pieces: list[Any]) -> Any:
        run = self._step(query, op)
        return reduce(lambda acc, x: run({"acc": acc, "x": x}), pieces, init.closure({})({}))

    def _collected(self, query: q.MapCollect, word: Word) -> Any:
        from caesura.qre.language.derived import match

        shape = self.known.setdefault(("rate", query), match(query.over, items=query.items))
        if self.of(shape, word) is UNDEFINED:
            return UNDEFINED
        synced = {i for i in word if self.read(query.sync, i, query) is True}
        keys = {self.key(query.by, i) for i in word if i not in synced}
        out = {}
        for key in keys:
            own = tuple(i for i in word if i in synced or self.key(query.by, i) == key)
            value = self.of(query.body, own)
            if value is not UNDEFINED:
                out[key] = value
        return whole(out)

    def key(self, by: tuple[tuple[str, Expr], ...], row: int) -> Any:
        """The key of an item."""
        parts = tuple(self.read(e, row, None) for _, e in by)
        if None in parts:
            raise StreamError("an item has a null key.", remedy="Leave such items out with where(...).")
        return parts[0] if len(parts) == 1 else parts

    def read(self, expr: Expr, row: int, query: q.Query | None) -> Any:
        """An expression's value on one item."""
        ends = [None if t is None else t[row : row + 1] for t in (self.le, self.re)]
        return evaluate(expr, self.rows[row], *ends)[0].as_py()

    def _value(self, op: Operation | None, row: int, query: q.Query) -> Any:
        match op:
            case None:
                return self.rows[row].to_pylist()[0]
            case ExprOp(expr=expr):
                try:
                    return self.read(expr, row, query)
                except RowError as error:
                    return Void(error.reasons[0])
            case RecordOp(fields=fields):
                return {name: self._value(inner, row, query) for name, inner in fields}
        item = self.rows[row].to_pylist()[0]
        return op.closure({"item": value_type(query)})({"item": item})
