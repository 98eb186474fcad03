"""Steps on rows one by one: which are kept, and with which columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.api.columns import Given, outputs, together
from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError, closest, lacking
from caesura.expr import Alias, Apply, Column, Expr, as_column, as_expr, as_predicate, col, name_of
from caesura.expr.nodes import SideColumn
from caesura.expr.paths import reached
from caesura.expr.rewrite import strip
from caesura.expr.rules_nested import generator
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.explode import Explode
from caesura.ops.observe import Observe
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
            A comparison of columns, ``col("id") > 3``, or the same as SQL text, ``"id > 3"``. A row for
            which it is null is not kept.
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
        words of the input. Spark: in the stage of its input; directly behind a source it runs before the
        first exchange.

        See Also
        --------
        Stream.select : which columns are kept.
        Stream.on_bad : what becomes of rows for which a step has no value.
        Stream.sample : a share of the rows.
        Stream.join : pairs of rows with equal keys.

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
        """Keeps a share of the rows, chosen by what they hold and a seed.

        Equal rows are kept or left out together, and a correction goes with the row that it corrects. The
        choice is the same on every host, in any number of buckets and after a restart; a greater share
        keeps all that a smaller one does. Samples with different seeds are independent of each other.

        Parameters
        ----------
        fraction
            The share, from 0 to 1.
        seed
            A whole number that chooses which rows.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The rows that are kept, with their columns and lifetimes.

        Notes
        -----
        Promises: all that its input promises. State: none. Feedback: stopped at its input, and passed on as
        it is. Spark: as `where`, before the first exchange where it stands behind a source.

        See Also
        --------
        Stream.where : which rows are kept.
        Stream.select : which columns are kept.
        Stream.on_bad : what becomes of rows for which a step has no value.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": t, "id": t} for t in range(6)], time="ts")
        >>> print(clicks.sample(0.5, seed=7).run())
         LE  RE | id |
          1  2  | 1  | +
        """
        by = tuple(self.columns)
        return self._then(Sample(inputs=(self.node,), fraction=fraction, seed=seed, by=by, name=name))

    def observe(self, name: str, *counted: Given, **named: Aggregate) -> Stream:
        """Counts the rows that pass, for whoever watches the query; the stream stays as it is.

        A row that is taken back as a whole is no longer counted, one whose end moves still is: what is
        observed in the end does not depend on order, on the host or on the number of buckets. It is shown by
        ``query.status().observed``, `Result.observed`, metrics for Prometheus, the console, and on Spark, per
        epoch, by ``query.lastProgress["observedMetrics"]``.

        Parameters
        ----------
        name
            What the observation is called; a query has each name once.
        *counted
            Aggregates that have an ``alias``, or mappings from names to aggregates.
        **named
            Aggregates by name: ``n=cz.count()``. Of ``cz.count``, ``cz.sum``, ``cz.avg``, and, where rows are
            never taken back, ``cz.min`` and ``cz.max``.

        Returns
        -------
        Stream
            The same rows.

        Notes
        -----
        Promises: all that its input promises. State: some numbers. Feedback: rows that feedback stops are not
        counted; it is passed on as it is. Spark: in the stage of its input, behind the gate of its source:
        late rows are not counted. Filters behind it stay behind it.

        See Also
        --------
        caesura.note : counts of a function of your own.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "mph": 62}, {"ts": 4, "mph": 9}], time="ts")
        >>> seen = speeds.observe("seen", n=cz.count(), slow=cz.count(where="mph < 30"), mean=cz.avg("mph"))
        >>> seen.where("mph > 60").run().observed
        {'seen': {'n': 2, 'slow': 1, 'mean': 35.5}}
        """
        made, _ = outputs(counted, named, "observe", {})
        counting: Any = tuple(made.items())  # whatever cannot be counted is refused by the step
        return self._then(Observe(inputs=(self.node,), aggregates=counting, name=name))

    def upserts(self, key: str | Iterable[str], *, name: str = "") -> Stream:
        """Names the key of a table that holds the stream.

        A sink for tables then puts, replaces and deletes rows by that key, an epoch at a time. The table
        holds the rows that have no end; with ``"LE"`` in the key it holds the history, a row per key and
        start. Two rows of a key that hold at once stop the query before the commit.

        Parameters
        ----------
        key
            The column that tells rows of the table apart, or several: ``"id"``, ``["segment", "LE"]``.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The same stream; sinks read the key from its last step.

        Notes
        -----
        Promises: all that its input promises. State: none here; the sink looks at what an epoch changes.
        Feedback: stopped at its input, and passed on as it is. Spark: in the stage of its input.

        See Also
        --------
        Stream.latest : the current row of every key.
        postgres : a table of Postgres by key.
        duckdb : a table of DuckDB by key.
        delta : a Delta table by key.
        iceberg : an Iceberg table by key.
        parquet : a folder of Parquet files by key.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = [{"ts": 1, "car": 7, "at": "a"}, {"ts": 5, "car": 7, "at": "b"}]
        >>> cars = cz.from_rows(moves, time="ts").latest("car").upserts(key="car")
        >>> print(cars.run())
         LE  RE  | car at |
          1  5   | 7   a  | +
          5  inf | 7   b  | +
        """
        names = (key,) if isinstance(key, str) else tuple(key)
        return self._then(Upserts(inputs=(self.node,), key=names, name=name))

    def select(self, /, *columns: str | Expr | Mapping[str, Any], **computed: Any) -> Stream:
        """Keeps, renames and computes columns.

        Parameters
        ----------
        *columns
            Names of columns that are kept, ``"*"`` for all of them; expressions, which keep their
            ``alias``; mappings from new names to expressions; or lists of these. Of a dotted name,
            ``"address.city"``, the last part is the column's name.
        **computed
            New columns by name: ``kmh=col("mph") * 1.6``. An expression that makes rows, such as
            ``functions.explode``, may stand once.

        Returns
        -------
        Stream
            The same events, with these columns alone.

        Notes
        -----
        Promises: what its input promises on time, and on columns that come through unchanged, renamed or
        moved by a constant. State: none. Feedback: stopped at its output; passed on where it speaks of such
        columns alone. Spark: in the stage of its input; directly behind a source it runs before the first
        exchange, and columns that nobody reads are not read.

        See Also
        --------
        Stream.where : which rows are kept.
        Stream.on_bad : what becomes of rows for which a step has no value.
        Stream.sample : a share of the rows.
        Stream.with_columns : columns added or computed anew.
        Stream.drop : all columns but some.
        Stream.rename : columns under other names.
        Stream.selectExpr : columns as SQL text.
        Stream.explode : a row for each element of a list.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> speeds = cz.from_rows([{"ts": 1, "id": 7, "mph": 62}, {"ts": 4, "id": 8, "mph": 9}], time="ts")
        >>> print(speeds.select("id", kmh=col("mph") * 1.6).run())
         LE  RE | id kmh  |
          1  2  | 7  99.2 | +
          4  5  | 8  14.4 | +
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
        _refuse_options(computed, "select")
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
        """A row for each element of a list, or for each entry of a map.

        The element stands in the place of the list; all other columns and the lifetime are those of the
        row.

        Parameters
        ----------
        column
            The column of lists or maps.
        as_
            What the element is called, by default as the list was; of a map a pair of names, by default
            ``("key", "value")``.
        outer
            Whether a list that is null or empty makes a row with null. By default it makes none.
        position
            A column for the element's place, from 0 on; none unless it is named.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The rows of elements.

        Notes
        -----
        Promises: what its input promises on time and on the other columns. State: none. Feedback: stopped
        at its output; passed on where it speaks of the other columns alone. Spark: in the stage of its
        input, behind the gate of its source.

        See Also
        --------
        Stream.select : which columns are kept.

        Examples
        --------
        >>> import caesura as cz
        >>> orders = cz.from_rows([{"ts": 1, "id": 7, "items": ["tea", "milk"]}], time="ts")
        >>> print(orders.explode("items", as_="item", position="place").run())
         LE  RE | id place item |
          1  2  | 7  0     tea  | +
          1  2  | 7  1     milk | +
        """
        names = () if as_ is None else (as_,) if isinstance(as_, str) else tuple(as_)
        return self._then(
            Explode(
                inputs=(self.node,), of=column, names=names, outer=outer, position=position or "", name=name
            )
        )

    def with_columns(self, columns: Mapping[str, Any] | None = None, /, **computed: Any) -> Stream:
        """All columns, with some computed anew or added.

        Parameters
        ----------
        columns
            A mapping from names to expressions, for names that Python cannot write as keywords.
        **computed
            New or replaced columns by name. All are computed from the columns of the input, not from each
            other.

        Returns
        -------
        Stream
            The same events with all columns, those that are new at the end.

        Notes
        -----
        Promises, State, Feedback, Spark: as `select`. A column that is computed anew carries no promise of
        the one that it replaces.

        See Also
        --------
        Stream.select : which columns are kept.
        Stream.withColumn : one column added.
        Stream.on_bad : what becomes of rows for which a step has no value.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> speeds = cz.from_rows([{"ts": 1, "mph": 62}, {"ts": 4, "mph": 9}], time="ts")
        >>> print(speeds.with_columns(slow=col("mph") < 30).run())
         LE  RE | mph slow  |
          1  2  | 62  false | +
          4  5  | 9   true  | +
        """
        pairs: dict[str, Expr] = {name: col(name) for name in self.columns}
        _refuse_options(computed, "with_columns")
        made = together(columns, computed, "with_columns")
        pairs.update({name: as_expr(expr) for name, expr in made.items()})
        return self._computed(list(pairs.items()), "with_columns")

    def withColumn(self, name: str, value: Any) -> Stream:
        """All columns, and one computed: PySpark's name for a part of `with_columns`.

        Parameters
        ----------
        name
            The column that is computed.
        value
            An expression, or a plain value for all rows.

        Returns
        -------
        Stream
            The same events, with that column.

        Notes
        -----
        Promises, State, Feedback, Spark: as `with_columns`, which it calls.

        See Also
        --------
        Stream.with_columns : columns added or computed anew.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> speeds = cz.from_rows([{"ts": 1, "mph": 62}], time="ts")
        >>> print(speeds.withColumn("slow", col("mph") < 30).run())
         LE  RE | mph slow  |
          1  2  | 62  false | +
        """
        return self.with_columns({name: value})

    withColumns = with_columns  # noqa: N815 - as PySpark calls it

    def selectExpr(self, *texts: str) -> Stream:
        """Columns as SQL text: PySpark's name for a part of `select`.

        Parameters
        ----------
        *texts
            ``"id"``, ``"mph * 1.6 AS kmh"``, or ``"*"`` for all columns.

        Returns
        -------
        Stream
            The same events, with these columns alone.

        Notes
        -----
        Promises, State, Feedback, Spark: as `select`, which it calls.

        See Also
        --------
        Stream.select : which columns are kept.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "id": 7, "mph": 62}], time="ts")
        >>> print(speeds.selectExpr("id", "mph * 1.6 AS kmh").run())
         LE  RE | id kmh  |
          1  2  | 7  99.2 | +
        """
        return self.select(*(text if text == "*" else as_predicate(text) for text in texts))

    def on_bad(self, how: OnError) -> Stream:
        """Where rows go for which the step before this one has no value.

        A sum that its type cannot hold, a text that is no number, a function that fails or takes too long.
        The step before is a `where`, `select` or `with_columns`; files and lines that cannot be read are
        told at their source, with ``on_bad=`` there.

        Parameters
        ----------
        how
            ``"stop"``, the default of every step: the query stops and names the step and the row.
            ``"late"``: the row goes to the late table, with its values and the reason.

        Returns
        -------
        Stream
            The stream behind the same step, with this choice.

        Notes
        -----
        Promises, State, Feedback, Spark: those of the step before; rows in the late table are counted
        there.

        See Also
        --------
        Stream.where : which rows are kept.
        Stream.select : which columns are kept.
        Stream.sample : a share of the rows.
        Stream.with_columns : columns added or computed anew.
        Stream.on_error : the older name.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura import col
        >>> texts = cz.from_rows([{"ts": 1, "v": "12"}, {"ts": 2, "v": "a dozen"}], time="ts")
        >>> counts = texts.select(v=col("v").cast("bigint")).on_bad("late")
        >>> print(counts.run())
         LE  RE | v  |
          1  2  | 12 | +
        1 of 2 rows at 'select': 'CAST(v AS BIGINT)' of ('a dozen') is no bigint (result.late['select']).
        >>> query = counts.query()
        >>> query.run()
        >>> print(query.late()["select"].to_pylist()[0]["reason"])
        'CAST(v AS BIGINT)' of ('a dozen') is no bigint
        """
        if how not in ("stop", "late") or not isinstance(self.node, Select | Where):
            error = PlanError(
                f"on_bad({how!r}) has no effect behind '{self.node.step}'.",
                remedy="Write .on_bad('late') or .on_bad('stop') behind where, select or with_columns; files "
                "and lines are told at their source, as in cz.read.csv(..., on_bad='quarantine').",
            )
            raise error.at("on_bad", here())
        return self._then(replace(self.node, on_error=how))

    def on_error(self, where: OnError) -> Stream:
        """The older name of `on_bad`; it warns.

        Parameters
        ----------
        where
            What `on_bad` takes.

        Returns
        -------
        Stream
            What `on_bad` gives.

        Notes
        -----
        Promises, State, Feedback, Spark: as `on_bad`, which it calls.

        See Also
        --------
        Stream.on_bad : what becomes of rows for which a step has no value.

        Examples
        --------
        >>> import warnings
        >>> import caesura as cz
        >>> from caesura import col
        >>> texts = cz.from_rows([{"ts": 1, "v": "12"}, {"ts": 2, "v": "a dozen"}], time="ts")
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     counts = texts.select(v=col("v").cast("bigint")).on_error("late")
        >>> print(counts.run())
         LE  RE | v  |
          1  2  | 12 | +
        1 of 2 rows at 'select': 'CAST(v AS BIGINT)' of ('a dozen') is no bigint (result.late['select']).
        """
        warnings.warn("on_error() is now on_bad().", DeprecationWarning, stacklevel=2)
        return self.on_bad(where)

    def drop(self, *names: str) -> Stream:
        """All columns but these.

        Parameters
        ----------
        *names
            The columns that go; each must be there.

        Returns
        -------
        Stream
            The same events, without these columns.

        Notes
        -----
        Promises, State, Feedback, Spark: as `select`. A promise on a column that goes is lost.

        See Also
        --------
        Stream.select : which columns are kept.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "id": 7, "mph": 62}], time="ts")
        >>> print(speeds.drop("id").run())
         LE  RE | mph |
          1  2  | 62  | +
        """
        for name in names:
            self._known(name, "drop")
        pairs = [(name, col(name)) for name in self.columns if name not in names]
        return self._then(Select(inputs=(self.node,), columns=tuple(pairs)))

    exclude = drop

    def withColumnRenamed(self, existing: str, new: str) -> Stream:
        """One column under another name: PySpark's name for a part of `rename`.

        Parameters
        ----------
        existing
            The column as it is called.
        new
            As it is to be called.

        Returns
        -------
        Stream
            The same events; the column stays in its place.

        Notes
        -----
        Promises, State, Feedback, Spark: as `rename`, which it calls.

        See Also
        --------
        Stream.rename : columns under other names.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "mph": 62}], time="ts")
        >>> print(speeds.withColumnRenamed("mph", "speed").run())
         LE  RE | speed |
          1  2  | 62    | +
        """
        self._known(existing, "withColumnRenamed")
        return self.rename({new: existing})

    def rename(self, columns: Mapping[str, str] | None = None, /, **more: str) -> Stream:
        """Renames columns: ``rename(new="old")``.

        Parameters
        ----------
        columns
            A mapping from new names to old ones; from old names to new ones, as pandas has it, where no new
            name is a column yet.
        **more
            New names with the old ones.

        Returns
        -------
        Stream
            The same events; columns stay in their places.

        Notes
        -----
        Promises: all that its input promises, under the new names. State: none. Feedback: stopped at its
        output and passed on under the old names. Spark: as `select`.

        See Also
        --------
        Stream.select : which columns are kept.
        Stream.withColumnRenamed : one column under another name.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 1, "id": 7, "mph": 62}], time="ts")
        >>> print(speeds.rename(speed="mph").run())
         LE  RE | id speed |
          1  2  | 7  62    | +
        >>> print(speeds.rename({"mph": "speed"}).columns)
        ['id', 'speed']
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


def _refuse_options(computed: Mapping[str, Any], step: str) -> None:
    """Refuses what is meant as an option and would quietly be a column of one text."""
    for name in ("on_error", "on_bad"):
        given = computed.get(name)
        if isinstance(given, str) and given in ("late", "stop"):
            raise PlanError(
                f"{name}= is no option of {step}: it would be a column of the text '{given}'.",
                remedy=f"Write .on_bad('{given}') behind it; for a column of that text, "
                f"{name}=cz.lit('{given}').",
            ).at(step, here())
