"""What a query reads: a schema, perhaps tagged cases of it, perhaps woven ticks.

A tagged record is a disjoint union: each tag says which columns its items have, and the other
columns are null. Knowing that, two predicates that belong to different tags are known to be disjoint.

>>> schema = pa.schema([("kind", pa.string()), ("item", pa.int64()), ("inc", pa.float64())])
>>> auctions = tagged(schema, "kind", bid=("item", "inc"), close=("item",))
>>> str(auctions.is_("bid"))
"kind = 'bid'"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Expr, col, lit, type_of
from caesura.qre.language import arguments as argued
from caesura.qre.language.types import Record, of_schema

if TYPE_CHECKING:
    from caesura.qre.checking.minterms import Alphabet

TICK = "tick"
"""The column that is true for woven ticks and false for events."""


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a stream."""

    schema: pa.Schema
    tag: str | None = None
    cases: tuple[tuple[Any, tuple[str, ...]], ...] = ()
    names: tuple[tuple[str, Any], ...] = ()
    time: pa.DataType = field(default_factory=pa.int64)
    alphabets: dict[Any, Alphabet] = field(default_factory=dict, repr=False)
    """Minterms that were worked out before, by the predicates they are of."""

    @cached_property
    def record(self) -> Record:
        """The type of an item."""
        return of_schema(self.schema)

    @property
    def ticks(self) -> bool:
        """Whether ticks are woven in."""
        return TICK in self.schema.names

    def is_(self, name: str) -> Expr:
        """The predicate of a case.

        Parameters
        ----------
        name
            The case's name.

        Returns
        -------
        Expr
            True for items of that kind.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import qre
        >>> schema = pa.schema([("kind", pa.string()), ("item", pa.int64())])
        >>> qre.tagged(schema, "kind", bid=("item",)).is_("bid")
        Expr(kind = 'bid')
        """
        known = dict(self.names)
        argued.text("is_", name, "a case")
        if name not in known:
            raise PlanError(f"there is no case '{name}'.", remedy=closest(name, known))
        assert self.tag is not None
        return col(self.tag) == lit(known[name], self.schema.field(self.tag).type)

    def with_ticks(self) -> Items:
        """The same items with ticks woven in.

        Returns
        -------
        Items
            Items with one more column, ``tick``, that is true for ticks.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import qre
        >>> qre.items(pa.schema([("v", pa.int64())])).with_ticks().schema.names
        ['v', 'tick']
        """
        if self.ticks:
            return self
        own = [pa.field(f.name, f.type) for f in self.schema]  # a tick's columns are null
        grown = pa.schema([*own, pa.field(TICK, pa.bool_(), nullable=False)])
        return Items(grown, self.tag, self.cases, self.names, self.time)

    def check(self, predicate: Expr) -> None:
        """Refuses a predicate that is none over these items.

        Parameters
        ----------
        predicate
            What is looked at.

        Raises
        ------
        PlanError
            Where it is not of true and false.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from caesura import col, qre
        >>> items = qre.items(pa.schema([("v", pa.int64())]))
        >>> try:
        ...     items.check(col("v") + 1)
        ... except Exception as error:
        ...     print(error.problem)
        the predicate 'v + 1' is of type int64; wanted boolean.
        """
        got = type_of(predicate, self.schema, time=self.time)
        if not (pa.types.is_boolean(got) or pa.types.is_null(got)):
            raise PlanError(
                f"the predicate '{predicate}' is of type {got}; wanted boolean.", remedy="Write a comparison."
            )


def items(schema: pa.Schema, *, ticks: bool = False, time: pa.DataType | None = None) -> Items:
    """The items of a stream with a schema.

    Parameters
    ----------
    schema
        The stream's columns.
    ticks
        Whether ticks are woven in: items for which ``col("tick")`` is true.
    time
        The type of the stream's time; whole numbers without it.

    Returns
    -------
    Items
        For ``items=`` of queries, and `Query.on`.

    See Also
    --------
    qre.tagged : where a column says which kind an item is.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> qre.evaluate(qre.map(col("v") + 1, items=items), pa.record_batch({"v": [1, 2]}))
    [2, 3]
    """
    argued.schema("items", schema)
    plain = Items(schema, time=time or pa.int64())
    return plain.with_ticks() if ticks else plain


def _cases(given: Any) -> dict[str, tuple[Any, tuple[str, ...]]]:
    remedy = "Give {name: (tag value, (its columns))}."
    named: dict[str, Any] = argued.an_instance("tagged", given or {}, dict, "a dict of cases", remedy)
    for case in named.values():
        if not isinstance(case, tuple) or len(case) != 2:
            raise argued.wrong("tagged", case, "a tag value and a case's columns", remedy)
    return dict(named)


def _refuse_no_columns(cases: Mapping[str, tuple[Any, Any]]) -> None:
    for _, own in cases.values():
        if not isinstance(own, (tuple, list)) or not all(isinstance(c, str) for c in own):
            remedy = "Give their names: bid=('item', 'inc')."
            raise argued.wrong("tagged", own, "the columns of a case", remedy)


def tagged(
    schema: pa.Schema,
    tag: str,
    cases: Mapping[str, tuple[Any, tuple[str, ...]]] | None = None,
    /,
    *,
    ticks: bool | tuple[str, ...] = False,
    time: pa.DataType | tuple[str, ...] | None = None,
    **columns: tuple[str, ...],
) -> Items:
    """Items of several kinds, told apart by one column.

    Parameters
    ----------
    schema
        The stream's columns.
    tag
        The column that says which kind an item is.
    cases
        Kinds whose tag is no name: ``{name: (tag value, (its columns))}``.
    ticks
        Whether ticks are woven in; a tuple is a case of that name.
    time
        The type of the stream's time; a tuple is a case of that name.
    **columns
        The columns that items of a kind have, by its tag; the others are null.

    Returns
    -------
    Items
        Items whose cases are known to be disjoint, so that predicates of different kinds never meet.

    See Also
    --------
    qre.items : of one kind.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> schema = pa.schema([("kind", pa.string()), ("item", pa.int64()), ("inc", pa.float64())])
    >>> auctions = qre.tagged(schema, "kind", bid=("item", "inc"), close=("item",))
    >>> auctions.is_("bid")
    Expr(kind = 'bid')
    """
    argued.schema("tagged", schema)
    argued.text("tagged", tag, "a column")
    if isinstance(ticks, tuple):
        columns, ticks = {**columns, "ticks": ticks}, False
    if isinstance(time, tuple):
        columns, time = {**columns, "time": time}, None
    given = {**{n: (n, c) for n, c in columns.items()}, **_cases(cases)}
    _refuse_no_columns(given)
    if tag not in schema.names:
        raise PlanError(f"there is no column '{tag}'.", remedy=closest(tag, schema.names))
    for name, (_, own) in given.items():
        for column in own:
            if column not in schema.names:
                raise PlanError(
                    f"the case '{name}' has no column '{column}'.", remedy=closest(column, schema.names)
                )
    made = Items(
        schema,
        tag,
        tuple((value, tuple(own)) for value, own in given.values()),
        tuple((name, value) for name, (value, _) in given.items()),
        time or pa.int64(),
    )
    return made.with_ticks() if ticks else made
