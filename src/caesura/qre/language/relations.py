"""Relations and maps as values: filter, map, prod, join by key, and aggregates over them.

A map's elements are records {key, value}; a relation's are its own records, or {value}.

>>> from caesura.expr import col
>>> hot = rel("a").filter(col("value") > 3)
>>> run = hot.count().closure({"a": MapOf(TEXT, INT)})
>>> run({"a": {"x": 2, "y": 5, "z": 9}})
2
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from caesura.errors import PlanError, closest
from caesura.expr import Expr
from caesura.qre.language.arguments import an_instance, condition, text
from caesura.qre.language.operations import Operation, Types, operation
from caesura.qre.language.scalar import Closure, rank
from caesura.qre.language.types import FLOAT, INT, TEXT, Approx, MapOf, Record, RelOf, Scalar, ValueType
from caesura.qre.language.whole_numbers import Void, fits, real, whole

__all__ = ["INT", "TEXT", "MapOf", "RelOp", "rel"]


@dataclass(frozen=True)
class RelOp(Operation):
    """An operation whose result is a relation, a map, or an aggregate of one."""

    verb: str
    sources: tuple[RelOp, ...] = ()
    name: str = ""
    op: Operation | None = None

    @property
    def compiles(self) -> bool:  # type: ignore[override]
        return all(s.compiles for s in self.sources) and (self.op is None or self.op.compiles)

    # What users chain.

    def filter(self, predicate: Expr) -> RelOp:
        """The elements for which the predicate is true; of a map, a map."""
        return RelOp("filter", (self,), op=operation(condition("filter", predicate)))

    def map(self, op: Any) -> RelOp:
        """The relation of the elements' images; on a map, the operation sees key and value."""
        return RelOp("map", (self,), op=operation(op))

    def map_values(self, op: Any) -> RelOp:
        """A map with the same keys and other values."""
        return RelOp("map_values", (self,), op=operation(op))

    def prod(self, other: RelOp) -> RelOp:
        """All pairs, as records {left, right}."""
        return RelOp("prod", (self, _relation("prod", other)))

    def join(self, other: RelOp) -> RelOp:
        """Two maps joined by key: a map to {left, right}, for the keys that both have."""
        return RelOp("join", (self, _relation("join", other)))

    def count(self) -> RelOp:
        return RelOp("count", (self,))

    def sum(self, of: Any = None) -> RelOp:
        return self._aggregate("sum", of)

    def min(self, of: Any = None) -> RelOp:
        return self._aggregate("min", of)

    def max(self, of: Any = None) -> RelOp:
        return self._aggregate("max", of)

    def avg(self, of: Any = None) -> RelOp:
        return self._aggregate("avg", of)

    def best(self, of: Any = None) -> RelOp:
        """The {key, value} with the greatest value; the least key wins a tie; null of an empty map."""
        return self._aggregate("best", of)

    def _aggregate(self, verb: str, of: Any) -> RelOp:
        return RelOp(verb, (self,), op=None if of is None else operation(of))

    # What queries ask.

    def type(self, types: Types) -> ValueType:
        inner = [s.type(types) for s in self.sources]
        if self.verb == "rel":
            return self._named(types)
        rows = [elements(t, self.verb) for t in inner]
        match self.verb:
            case "filter":
                assert self.op is not None
                _want_condition(self.op.type(rows[0]), self.op)
                return inner[0]
            case "map":
                assert self.op is not None
                return RelOf(self.op.type(rows[0]))
            case "map_values":
                assert self.op is not None
                return MapOf(_map(inner[0], self.verb).key, self.op.type(rows[0]))
            case "prod":
                return RelOf(Record((("left", _element(inner[0])), ("right", _element(inner[1])))))
            case "join":
                a, b = (_map(t, self.verb) for t in inner)
                return MapOf(a.key, Record((("left", a.value), ("right", b.value))))
            case "count":
                return INT
            case "best":
                return Record((("key", _map(inner[0], self.verb).key), ("value", self._measured(rows[0]))))
            case "avg":
                got = self._measured(rows[0])
                return got if isinstance(got, Approx) else FLOAT
        return self._measured(rows[0])

    def _named(self, types: Types) -> ValueType:
        got = types.get(self.name)
        if got is None:
            raise PlanError(f"there is no part '{self.name}'.", remedy=closest(self.name, types))
        elements(got, "rel")
        return got

    def _measured(self, row: dict[str, ValueType]) -> ValueType:
        got = self.op.type(row) if self.op is not None else row.get("value", next(iter(row.values())))
        if isinstance(got, Approx) and self.verb == "best":
            raise PlanError(
                f"{self} chooses a key by an approximate value, which may choose the wrong one.",
                remedy="Take the greatest value alone with .max(), or compute the values exactly.",
            )
        if isinstance(got, Approx) and not got.nonnegative and self.verb in ("sum", "avg"):
            raise PlanError(
                f"{self} adds approximate values of either sign, which voids their error bound.",
                remedy="Approximate values that are never negative, or compute them exactly.",
            )
        if isinstance(got, (Record, RelOf, MapOf)):
            raise PlanError(
                f"{self} aggregates {got}.", remedy="Give the number to aggregate: .max(col(...))."
            )
        return got

    def closure(self, types: Types) -> Closure:
        inner = [s.closure(types) for s in self.sources]
        if self.verb == "rel":
            name = self.name
            return lambda env: env[name]
        first = self.sources[0].type(types)
        row = elements(first, self.verb)
        op = self.op.closure(row) if self.op is not None else None
        run = _RUNS[self.verb]
        mapped = isinstance(first, MapOf)
        plain = not mapped and not isinstance(_element(first), Record)

        def made(env: Any) -> Any:
            values = [i(env) for i in inner]
            void = next((v for v in values if isinstance(v, Void)), None)
            return run(op, mapped, plain, *values) if void is None else void

        return made

    @property
    def key(self) -> Any:
        return (
            self.verb,
            self.name,
            tuple(s.key for s in self.sources),
            None if self.op is None else self.op.key,
        )

    def __str__(self) -> str:
        if self.verb == "rel":
            return f"rel({self.name!r})"
        args = [str(s) for s in self.sources[1:]] + ([] if self.op is None else [str(self.op)])
        return f"{self.sources[0]}.{self.verb}({', '.join(args)})"


def _relation(what: str, given: Any) -> RelOp:
    return an_instance(what, given, RelOp, "a relation", "Give another part: rel('name').")


def rel(part: str = "_0") -> RelOp:
    """A part whose value is a map or a relation, to go on with.

    Parameters
    ----------
    part
        The part's name; the only part when none is given.

    Returns
    -------
    RelOp
        An operation with ``filter``, ``map``, ``map_values``, ``join``, ``prod``, ``count``, ``sum``,
        ``avg``, ``min``, ``max`` and ``best``, in which ``key`` and ``value`` name those of a map.

    See Also
    --------
    qre.map_collect : makes maps.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("k", pa.string()), ("v", pa.int64())]))
    >>> word = pa.record_batch({"k": ["a", "b", "a", "sync"], "v": [1, 2, 3, 0]})
    >>> own = qre.iter1(qre.atom(col("k") != "sync", col("v"), items=items), qre.sum())
    >>> body = qre.split(own, qre.match(col("k") == "sync", items=items), op=col("_0"))
    >>> sums = qre.map_collect(col("k") == "sync", "k", body)
    >>> qre.evaluate(qre.apply(sums, qre.rel().filter(col("value") > 2).count()), word)[-1]
    1
    """
    text("rel", part, "a part")
    return RelOp("rel", name=part)


def elements(t: ValueType, verb: str) -> dict[str, ValueType]:
    """The names that an operation on elements may read."""
    match t:
        case MapOf(key=key, value=value):
            inner = dict(value.fields) if isinstance(value, Record) else {}
            return {**inner, "key": key, "value": value}
        case RelOf(element=Record(fields=fields)):
            return dict(fields)
        case RelOf(element=element):
            return {"value": element}
    raise PlanError(
        f"'{verb}' works on relations and maps; this is {t}.", remedy="Apply it to a map_collect."
    )


def _element(t: ValueType) -> ValueType:
    if isinstance(t, MapOf):
        return Record((("key", t.key), ("value", t.value)))
    assert isinstance(t, RelOf)
    return t.element


def _map(t: ValueType, verb: str) -> MapOf:
    if isinstance(t, MapOf):
        return t
    raise PlanError(f"'{verb}' works by key; {t} has none.", remedy="Use it on the result of a map_collect.")


def _want_condition(t: ValueType, op: Operation) -> None:
    if not (isinstance(t, Scalar) and str(t) in ("boolean", "void")):
        raise PlanError(f"the filter '{op}' is of type {t}; wanted boolean.", remedy="Write a comparison.")


def rows_of(value: Any, mapped: bool, plain: bool) -> list[dict[str, Any]]:
    """A relation's elements as environments."""
    if mapped:
        return [{**(v if isinstance(v, dict) else {}), "key": k, "value": v} for k, v in value.items()]
    return [{"value": v} for v in value] if plain else list(value)


def _filter(op: Closure, mapped: bool, plain: bool, value: Any) -> Any:
    tests = [(row, op(row)) for row in rows_of(value, mapped, plain)]
    void = next((test for _, test in tests if isinstance(test, Void)), None)
    if void is not None:
        return void
    chosen = [row for row, test in tests if test is True]
    if mapped:
        return {row["key"]: row["value"] for row in chosen}
    return [row["value"] for row in chosen] if plain else chosen


def _bare(value: Any, mapped: bool) -> list[Any]:
    return [{"key": k, "value": v} for k, v in value.items()] if mapped else list(value)


def _prod(op: Any, mapped: bool, plain: bool, a: Any, b: Any) -> Any:
    right = _bare(b, isinstance(b, dict))
    return [{"left": x, "right": y} for x in _bare(a, mapped) for y in right]


def _measures(op: Closure | None, mapped: bool, plain: bool, value: Any) -> list[Any]:
    read = op or (lambda row: row["value"] if "value" in row else next(iter(row.values())))
    return [v for v in (read(row) for row in rows_of(value, mapped, plain)) if v is not None]


def total(values: list[Any]) -> Any:
    """A sum that does not depend on the order of its values: a map has none."""
    if not any(isinstance(v, float) for v in values):
        return sum(values)
    odd = [v for v in values if not math.isfinite(v)]
    if odd:
        return sum(odd)
    try:
        return math.fsum(values)
    except OverflowError:  # a sum, or one of its parts, is beyond all doubles
        return _rounded(sum(map(Fraction, values), Fraction()))


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _sum(op: Any, mapped: bool, plain: bool, value: Any) -> Any:
    some = _measures(op, mapped, plain, value)
    return _of(some, total) if some else None


def _avg(op: Any, mapped: bool, plain: bool, value: Any) -> Any:
    some = _measures(op, mapped, plain, value)
    return _of(some, lambda given: real(total(given)) / len(given)) if some else None


def _of(values: list[Any], make: Callable[[list[Any]], Any]) -> Any:
    """What is made of values, if all of them fit."""
    return make(values) if fits(values) else whole(values)


def _best(op: Closure | None, mapped: bool, plain: bool, value: Any) -> Any:
    read = op or (lambda row: row["value"])
    scored = [(read(row), row["key"]) for row in rows_of(value, mapped, plain)]
    some = [(v, k) for v, k in scored if v is not None]
    if not some:
        return {"key": None, "value": None}
    if not fits([v for v, _ in some]):
        return whole([v for v, _ in some])
    top = max((v for v, _ in some), key=rank)
    return {"key": min((k for v, k in some if rank(v) == rank(top)), key=rank), "value": top}


_RUNS: dict[str, Callable[..., Any]] = {
    "filter": _filter,
    "map": lambda op, m, p, v: whole([op(row) for row in rows_of(v, m, p)]),
    "map_values": lambda op, m, p, v: whole({row["key"]: op(row) for row in rows_of(v, m, p)}),
    "prod": _prod,
    "join": lambda op, m, p, a, b: {k: {"left": a[k], "right": b[k]} for k in a if k in b},
    "count": lambda op, m, p, v: len(v),
    "sum": _sum,
    "min": lambda op, m, p, v: _of(_measures(op, m, p, v), lambda some: min(some, key=rank, default=None)),
    "max": lambda op, m, p, v: _of(_measures(op, m, p, v), lambda some: max(some, key=rank, default=None)),
    "avg": _avg,
    "best": _best,
}
