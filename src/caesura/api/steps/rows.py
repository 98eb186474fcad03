"""Steps on rows one by one: which are kept, and with which columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.api.columns import together
from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError, closest, lacking
from caesura.expr import Alias, Apply, Column, Expr, as_column, as_expr, as_predicate, col, name_of
from caesura.expr.nodes import SideColumn
from caesura.expr.paths import reached
from caesura.expr.rewrite import strip
from caesura.expr.rules_nested import generator
from caesura.ops.explode import Explode
from caesura.ops.refused import OnError
from caesura.ops.sample import Sample
from caesura.ops.select import Select
from caesura.ops.upserts import Upserts
from caesura.ops.where import Where
from caesura.plan import here

if TYPE_CHECKING:
    from caesura.api.stream import Stream


class RowSteps(Planned):
    """Steps on rows one by one: which are kept, and with which columns."""

    def where(self, predicate: Expr | bool | str, *, name: str = "") -> Stream:
        """Keeps the rows that satisfy a predicate.

        Parameters
        ----------
        predicate
            A comparison of columns, ``col("id") > 3``, or the same as SQL text, ``"id > 3"``. A row for which
            it is null is not kept.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The rows that are kept, with their columns and lifetimes; a correction of a row that is left out
            is left out with it.

        Notes
        -----
        Promises: all that its input promises. State: none. Feedback: acted on here and passed on, in the
        words of the input. Spark: in the stage of its input, before the first exchange.

        See Also
        --------
        Stream.select : which columns are kept.
        Stream.on_bad : what becomes of rows that the predicate fails on.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "mph": 62}, {"ts": 4, "mph": 9}], time="ts")
        >>> print(speeds.where("mph < 30").run())
         LE  RE | mph |
          4  5  | 9   | +
        """
        try:
            test = as_predicate(predicate)
        except CaesuraError as error:
            raise error.at(name or "where", here()) from None
        return self._then(Where(inputs=(self.node,), predicate=test, name=name))

    filter = where

    def __getitem__(self, name: str) -> Expr:
        """A column that knows whose it is: ``people.join(sales, on=people["id"] == sales["person"])``."""
        if not isinstance(name, str):
            error = PlanError(
                f"a stream has columns by name; got {name!r}.", remedy="Write stream['id'], or .select(...)."
            )
            raise error.at("stream[...]", here())
        self._known(name, "stream[...]")
        return SideColumn(name, self.node)

    def __iter__(self) -> Iterator[Any]:
        error = PlanError("a stream is not read in a loop.", remedy="Write .run().table() for its rows.")
        raise error.at("stream", here())

    def sample(self, fraction: float, seed: int = 0, *, name: str = "") -> Stream:
        """Keeps a share of the rows, chosen by what they hold and a seed: ``sample(0.1, seed=7)``.

        Equal rows are kept or left out together, and a correction goes with the row that it corrects. The
        choice is the same on every host, in any number of buckets and after a restart; a greater share
        keeps all that a smaller one does. Samples with different seeds are independent of each other.
        """
        by = tuple(self.columns)
        return self._then(Sample(inputs=(self.node,), fraction=fraction, seed=seed, by=by, name=name))

    def upserts(self, key: str | Iterable[str], *, name: str = "") -> Stream:
        """Names the key of a table that holds the stream: ``latest.upserts(key="id")``.

        A sink for tables then puts, replaces and deletes rows by that key, an epoch at a time. The table
        holds the rows that have no end; with ``"LE"`` in the key it holds the history, a row a key and
        start: ``speeds.upserts(key=["segment", "LE"])``. Two rows of a key stop the query before the commit.
        """
        names = (key,) if isinstance(key, str) else tuple(key)
        return self._then(Upserts(inputs=(self.node,), key=names, name=name))

    def select(self, /, *columns: str | Expr | Mapping[str, Any], **computed: Any) -> Stream:
        """Keeps, renames and computes columns: ``select("id", kmh=col("mph") * 1.6)``.

        ``"*"`` is all columns. What is computed may also be given as mappings or in lists:
        ``select("id", {"kmh": col("mph") * 1.6})``.
        """
        pairs: list[tuple[str, Expr]] = []
        for c in flat(columns):
            if isinstance(c, Mapping):
                pairs += [(output, as_expr(expr)) for output, expr in c.items()]
            elif isinstance(c, str) and c == "*" and "*" not in self.columns:
                pairs += [(name, col(name)) for name in self.columns]
            else:
                pairs.append((self._named(c), as_column(c)))
        if isinstance(computed.get("name"), str):
            warnings.warn(
                "select(name=...) is a column; name the step with .named(...) behind it", stacklevel=2
            )
        pairs += [(output, as_expr(expr)) for output, expr in computed.items()]
        return self._computed(pairs, "select")

    def _named(self, column: str | Expr) -> str:
        """What a column is called that is selected: of a dotted name the last part, as in Spark."""
        made = as_column(column)
        name = name_of(made)
        columns = {field.name: field.type for field in self.node.schema}
        dotted = isinstance(made, Column) and reached(name, columns) is not None
        return name.rpartition(".")[2] if dotted else name

    def _computed(self, pairs: list[tuple[str, Expr]], step: str) -> Stream:
        """These columns; one of them may make rows."""
        makers = [(place, name) for place, (name, e) in enumerate(pairs) if generator(e)]
        if len(makers) > 1:
            error = PlanError(
                f"'{makers[0][1]}' and '{makers[1][1]}' both make rows.",
                remedy="Take one step for each: .explode('a').explode('b').",
            )
            raise error.at(step, here())
        if not makers:
            return self._then(Select(inputs=(self.node,), columns=tuple(pairs)))
        place, name = makers[0]
        made = strip(pairs[place][1])
        assert isinstance(made, Apply)
        named = isinstance(pairs[place][1], Alias) or name != str(made)
        pairs = [*pairs[:place], (name, made.args[0]), *pairs[place + 1 :]]
        lists = self._then(Select(inputs=(self.node,), columns=tuple(pairs)))
        position = "pos" if made.name.startswith("pos") else None
        kind = lists.node.schema.field(name).type
        as_: str | None = name if named else "col"
        return lists.explode(
            name,
            as_=None if pa.types.is_map(kind) else as_,
            outer=made.name.endswith("outer"),
            position=position,
        )

    def explode(
        self,
        column: str,
        as_: str | tuple[str, str] | None = None,
        *,
        outer: bool = False,
        position: str | None = None,
        name: str = "",
    ) -> Stream:
        """A row for each element of a list: ``explode("items", as_="item")``.

        The element stands in the place of the list, under its name or the one given; of a map the key and
        the value do, by default as ``key`` and ``value``. With ``outer=True`` a list that is null or empty
        makes a row with null; ``position`` names a column for the element's place, from 0 on.
        """
        names = () if as_ is None else (as_,) if isinstance(as_, str) else tuple(as_)
        return self._then(
            Explode(
                inputs=(self.node,), of=column, names=names, outer=outer, position=position or "", name=name
            )
        )

    def with_columns(self, columns: Mapping[str, Any] | None = None, /, **computed: Any) -> Stream:
        """All columns, with some computed anew or added."""
        pairs: dict[str, Expr] = {name: col(name) for name in self.columns}
        made = together(columns, computed, "with_columns")
        pairs.update({name: as_expr(expr) for name, expr in made.items()})
        return self._computed(list(pairs.items()), "with_columns")

    def withColumn(self, name: str, value: Any) -> Stream:
        """PySpark's: all columns, and one computed."""
        return self.with_columns({name: value})

    withColumns = with_columns  # noqa: N815 - as PySpark calls it

    def selectExpr(self, *texts: str) -> Stream:
        """PySpark's: columns as SQL text, ``selectExpr("id", "mph * 1.6 AS kmh", "*")``."""
        return self.select(*(text if text == "*" else as_predicate(text) for text in texts))

    def on_bad(self, how: OnError) -> Stream:
        """Where rows go for which the step before this one has no value: ``stop``, the default, or ``late``.

        A sum that its type cannot hold, a text that is no number, a function that fails or takes too long:
        with ``stop`` the query stops and names the step and the row, with ``late`` the row waits in the late
        table, with its values and the reason.
        """
        if how not in ("stop", "late") or not isinstance(self.node, Select | Where):
            error = PlanError(
                f"on_bad({how!r}) says nothing about '{self.node.step}'.",
                remedy="Write .on_bad('late') or .on_bad('stop') behind where, select or with_columns; files "
                "and lines are told at their source, as in cz.read.csv(..., on_bad='quarantine').",
            )
            raise error.at("on_bad", here())
        return self._then(replace(self.node, on_error=how))

    def on_error(self, where: OnError) -> Stream:
        """The older name of `on_bad`."""
        warnings.warn("on_error() is now on_bad().", DeprecationWarning, stacklevel=2)
        return self.on_bad(where)

    def drop(self, *names: str) -> Stream:
        """All columns but these."""
        for name in names:
            self._known(name, "drop")
        pairs = [(name, col(name)) for name in self.columns if name not in names]
        return self._then(Select(inputs=(self.node,), columns=tuple(pairs)))

    exclude = drop

    def withColumnRenamed(self, existing: str, new: str) -> Stream:
        """PySpark's: one column under another name."""
        self._known(existing, "withColumnRenamed")
        return self.rename({new: existing})

    def rename(self, columns: Mapping[str, str] | None = None, /, **more: str) -> Stream:
        """Renames columns: ``rename(new="old")``, or ``rename({"new": "old"})``.

        A mapping from old names to new ones, as pandas has it, is understood where no new name is a column.
        """
        names = together(columns, more, "rename")
        if (
            columns
            and not more
            and set(names) <= set(self.columns)
            and not set(names.values()) & set(self.columns)
        ):
            names = {new: old for old, new in names.items()}
        for old in names.values():
            self._known(old, "rename")
        new = {old: output for output, old in names.items()}
        return self._then(
            Select(inputs=(self.node,), columns=tuple((new.get(n, n), col(n)) for n in self.columns))
        )

    def _known(self, name: str, step: str) -> None:
        if name not in self.columns:
            told = self.node.as_time(name)
            remedy = told or closest(name, self.columns)
            raise lacking(PlanError(f"there is no column '{name}'.", remedy=remedy), name).at(step, here())


def flat(columns: Iterable[Any]) -> Iterator[Any]:
    """Columns one by one, also those in lists."""
    for given in columns:
        if isinstance(given, list | tuple):
            yield from flat(given)
        else:
            yield given
