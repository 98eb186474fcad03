"""A script in SQL: sources, views and sinks declared by statements, run as one query.

>>> import tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "bids.csv").write_text("ts,item,price\\n1,7,3\\n12,7,5\\n")
>>> made = script(f'''
...     CREATE STREAM bids FROM csv '{folder}/bids.csv' (TIME ts) LIFETIME POINT;
...     CREATE VIEW best AS
...       SELECT item, max(price) AS best FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10))
...       GROUP BY item, window_start, window_end;
... ''')
>>> print(made["best"].run(output="final"))
 LE  RE | item best |
  0  10 | 7    3    | +
 10  20 | 7    5    | +
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from caesura.api.pipeline import Pipeline, pipeline
from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError, closest, looked_up
from caesura.expr import Expr
from caesura.expr.sql_text import lowered
from caesura.io.places import Place
from caesura.io.sinks.protocol import Sink
from caesura.plan import Duration, Node, here
from caesura.plan.prune import prune
from caesura.runtime.durable.making import saving_period
from caesura.runtime.durable.query import DurableQuery
from caesura.runtime.query.result import Output, delivered
from caesura.runtime.sinks.by_output import SinkByOutput
from caesura.sql.declared import function_of, sink_of, static_table, stream_of
from caesura.sql.dialects import SqlFlavour, known_dialect
from caesura.sql.query import meaning
from caesura.sql.statements import (
    Ask,
    Asked,
    CreateFunction,
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    Drop,
    Give,
    InsertInto,
    SetOption,
    Statement,
    statements,
)
from caesura.sql.text import QueryText, script_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from caesura.spark import SparkQuery

SETTINGS = ("checkpoint", "dialect")


@dataclass(frozen=True)
class Insert:
    """A query whose output goes to a sink."""

    stream: Stream
    output: Output


@dataclass(frozen=True)
class Question:
    """A query to be shown: its rows, its plan, whether it is safe, its first rows."""

    what: Asked
    stream: Stream
    output: Output


class ScriptQuery(Protocol):
    """A running query on any host."""

    def assume(self, what: Expr, *, output: str | None = ...) -> object: ...
    def desire(self, what: Expr, *, output: str | None = ...) -> object: ...
    def demand(self, what: Expr | bool = ..., *, output: str | None = ...) -> object: ...


@dataclass
class Script:
    """What statements have declared so far, and what they ask for."""

    text: str = ""
    dialect: SqlFlavour = "spark"
    file: str = ""
    """The name of the file, for errors."""
    streams: dict[str, Stream] = field(default_factory=dict)
    """Everything that a query can read from: what was given, sources, tables, views."""
    functions: dict[str, Any] = field(default_factory=dict)
    views: dict[str, Stream] = field(default_factory=dict)
    sinks: dict[str, CreateSink] = field(default_factory=dict)
    inserts: dict[str, Insert] = field(default_factory=dict)
    """By the name of the sink."""
    feedback: list[Give] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Stream:
        return looked_up(self.streams, name, "stream or view")

    def __repr__(self) -> str:
        return f"Script({', '.join([*self.streams, *self.sinks])})"

    # -- statements ---------------------------------------------------------------------------------------

    def execute(self, text: str) -> Iterator[Question]:
        """Takes up more statements, and gives those that ask for something to be shown, as they come.

        Parameters
        ----------
        text
            The statements.

        Returns
        -------
        Iterator of Question
            What SELECT, EXPLAIN, CHECK and PREVIEW ask for; the others are taken up as it is read.

        See Also
        --------
        script : several statements of SQL.

        Examples
        --------
        >>> import caesura as cz
        >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}], time="ts")
        >>> made = cz.script("CREATE VIEW dear AS SELECT item FROM bids WHERE price > 2;", bids=bids)
        >>> for asked in made.execute("SELECT item FROM dear;"):
        ...     print(asked.stream.run())
         LE  RE | item |
          1  2  | 7    | +
        """
        self.text = text
        line = 0
        try:
            for statement in statements(text):
                line = statement.line
                asked = self._take(statement)
                if asked is not None:
                    yield asked
        except CaesuraError as error:
            raise self._placed(error, line) from None

    def _placed(self, error: CaesuraError, line: int) -> CaesuraError:
        """An error with the line of its statement, in the file where there is one."""
        known = error.problem.startswith("line ") or not line
        if self.file:
            return error.at("script", f"{self.file}:{line}" if line else self.file)
        if not known:
            error.problem = f"line {line}: {error.problem}"
        return error

    def _take(self, statement: Statement) -> Question | None:
        match statement:
            case CreateStream(name=name):
                self._declare(name, stream_of(statement))
            case CreateTable(name=name):
                self._declare(name, static_table(statement))
            case CreateView(name=name, query=query):
                self._refuse_emit(query, name)
                self._declare(name, self._meaning(query))
                self.views[name] = self.streams[name]
            case CreateSink(name=name):
                self._refuse_taken(name)
                sink_of(statement)  # what is wrong with it is said where it stands
                self.sinks[name] = statement
            case CreateFunction(name=name):
                self.functions[name] = function_of(statement)
            case Drop():
                self._drop(statement)
            case InsertInto():
                self._insert(statement)
            case Give():
                self.feedback.append(statement)
            case SetOption():
                self._set(statement)
            case Ask(what=what, query=query):
                return Question(what, self._meaning(query), query.emit or "changes")
        return None

    def _drop(self, statement: Drop) -> None:
        """Views that were made of it stay as they are."""
        kinds: tuple[dict[str, Any], ...] = (self.streams, self.views, self.sinks, self.functions)
        if not statement.may_lack:
            looked_up({name: None for one in kinds for name in one}, statement.name, "declaration")
        for one in kinds:
            one.pop(statement.name, None)

    def _meaning(self, query: QueryText) -> Stream:
        return meaning(query.tree, self.text, self.streams, self.functions, dialect=self.dialect)

    def _declare(self, name: str, stream: Stream) -> None:
        self._refuse_taken(name)
        self.streams[name] = stream

    def _refuse_taken(self, name: str) -> None:
        if name in self.streams or name in self.sinks:
            raise PlanError(f"'{name}' is declared already.", remedy="Give this one another name.")

    def _refuse_emit(self, query: QueryText, name: str) -> None:
        if query.emit is not None:
            raise PlanError(
                f"the view '{name}' says EMIT, and a view is read by other queries.",
                remedy="Say it where rows come out: INSERT INTO sink SELECT ... EMIT FINAL.",
            )

    def _insert(self, statement: InsertInto) -> None:
        sink = looked_up(self.sinks, statement.sink, "sink")
        if statement.sink in self.inserts:
            raise PlanError(
                f"two queries write to '{statement.sink}'.",
                remedy="Write one with UNION ALL, or another sink.",
            )
        stream = self._meaning(statement.query)
        if sink.key and sink.format != "kafka":
            stream = stream.upserts(list(sink.key))
        self.inserts[statement.sink] = Insert(stream, statement.query.emit or "changes")

    def _set(self, statement: SetOption) -> None:
        if statement.name not in SETTINGS:
            raise PlanError(
                f"there is no setting '{statement.name}'.", remedy=closest(statement.name, SETTINGS)
            )
        self.settings[statement.name] = statement.value
        if statement.name == "dialect":
            self.dialect = known_dialect(str(statement.value))

    # -- what it is run as --------------------------------------------------------------------------------

    def pipeline(self) -> Pipeline:
        """Its views as one pipeline, each of whose claims is about all of them.

        Returns
        -------
        Pipeline
            The views by name.

        See Also
        --------
        script : several statements of SQL.
        Script.target : one stream of it.

        Examples
        --------
        >>> import caesura as cz
        >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}], time="ts")
        >>> made = cz.script("CREATE VIEW dear AS SELECT item FROM bids WHERE price > 2;", bids=bids)
        >>> print(made.pipeline().run()["dear"])
         LE  RE | item |
          1  2  | 7    | +
        """
        if not self.views:
            raise PlanError("the script has no view.", remedy="Write CREATE VIEW name AS SELECT ...").at(
                "script", here()
            )
        return pipeline(**self.views)

    def target(self, name: str = "") -> Stream:
        """One stream of it: by name, or that of its only INSERT, or its only view.

        Parameters
        ----------
        name
            A sink that is written to, a stream or a view.

        Returns
        -------
        Stream
            The stream.

        Notes
        -----
        Promises, State, Feedback, Spark: those of the steps that it is made of.

        See Also
        --------
        Script.pipeline : its views as a pipeline.

        Examples
        --------
        >>> import caesura as cz
        >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}], time="ts")
        >>> made = cz.script("CREATE VIEW dear AS SELECT item FROM bids WHERE price > 2;", bids=bids)
        >>> print(made.target().run())
         LE  RE | item |
          1  2  | 7    | +
        """
        if name in self.inserts:
            return _emitted(self.inserts[name])
        if name:
            return self[name]
        found = [_emitted(one) for one in self.inserts.values()] or list(self.views.values())
        if len(found) == 1:
            return found[0]
        names = ", ".join(self.inserts or self.views)
        raise PlanError(
            f"the script has {len(found)} queries to run{f': {names}' if names else ''}.",
            remedy="Name one, as in script.sql:name; or let it INSERT INTO one sink.",
        )

    def query(
        self, *, checkpoint: str | Path | None = None, every: Duration = "10s", take_over: bool = False
    ) -> DurableQuery:
        """All its INSERTs as one query in this process, saved to the checkpoint as it runs.

        Parameters
        ----------
        checkpoint
            Where it is saved; by default where ``SET checkpoint`` says.
        every
            How long it goes on without saving: ``"10s"``; ``"0s"`` saves at every step.
        take_over
            Whether a checkpoint that another process goes on with is taken from it.

        Returns
        -------
        caesura.runtime.durable.query.DurableQuery
            The query; its outputs have the names of the sinks.

        See Also
        --------
        script : several statements of SQL.
        Script.give : feedback to it as it runs.
        Script.start : its INSERTs on Spark.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caesura as cz
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}], time="ts")
        >>> made = cz.script(f'''
        ...     CREATE SINK dear TO parquet '{folder}/dear';
        ...     INSERT INTO dear SELECT item FROM bids WHERE price > 2;
        ... ''', bids=bids)
        >>> query = made.query(checkpoint=folder / "state")
        >>> query.run()
        >>> [found.suffix for found in (folder / "dear").rglob("*.parquet")]
        ['.parquet']
        """
        place = Place.of(self._checkpoint(checkpoint)).absolute()
        final = all(one.output == "final" for one in self.inserts.values())
        made = DurableQuery(
            prune(self._outputs()),
            checkpoint=place,
            sink=self._sink(),
            every=saving_period(every),
            take_over=take_over,
            speculate="watermark" if final else "arrival",
        )
        self._begin(made)
        return made

    def start(
        self,
        spark: SparkSession,
        *,
        checkpoint: str | Path | None = None,
        trigger: str = "continuous",
        take_over: bool = False,
        allow_unbounded: bool = False,
        name: str | None = None,
        metrics_port: int | str | None = None,
    ) -> SparkQuery:
        """All its INSERTs as one streaming query on Spark.

        Parameters
        ----------
        spark
            The session.
        checkpoint
            Where it is saved; by default where ``SET checkpoint`` says.
        trigger
            As in `Stream.start`.
        take_over
            Whether a checkpoint that another process goes on with is taken from it.
        allow_unbounded
            Whether a plan whose state would grow without bound is started all the same, with a warning.
        name
            What Spark's pages, metrics and logs call it.
        metrics_port
            Where metrics for Prometheus are served.

        Returns
        -------
        caesura.spark.SparkQuery
            The query that runs.

        See Also
        --------
        script : several statements of SQL.
        Script.query : its INSERTs as a query.

        Examples
        --------
        With a session at hand::

            query = cz.script("speeds.sql").start(cz.session(), trigger="available")
        """
        from caesura.spark import start

        place = self._checkpoint(checkpoint)
        nodes = self._outputs()
        options: dict[str, Any] = {
            "trigger": trigger,
            "feedback": bool(self.feedback),
            "take_over": take_over,
            "allow_unbounded": allow_unbounded,
            "name": name,
            "metrics_port": metrics_port,
        }
        made = start(nodes, spark, sink=self._sink(), checkpoint=place, **options)
        self._begin(made)
        return made

    def give(self, query: ScriptQuery, text: str) -> None:
        """Gives ASSUME, DESIRE and DEMAND statements to a query of this script that runs.

        Parameters
        ----------
        query
            What ``query`` or ``start`` gave.
        text
            The statements: ``"ASSUME dear WHERE item = 7"``.

        See Also
        --------
        Script.query : its INSERTs as a query.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caesura as cz
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}], time="ts")
        >>> made = cz.script(f'''
        ...     CREATE SINK dear TO parquet '{folder}/dear';
        ...     INSERT INTO dear SELECT item FROM bids WHERE price > 2;
        ... ''', bids=bids)
        >>> query = made.query(checkpoint=folder / "state")
        >>> made.give(query, "ASSUME dear WHERE item = 7")
        >>> query.feedback()
        ['#1 assumed: item = 7']
        """
        for statement in statements(text):
            if not isinstance(statement, Give):
                raise PlanError(
                    "a running query takes ASSUME, DESIRE and DEMAND only.",
                    remedy="Write them by themselves.",
                ).at("script", here())
            self._give(query, statement)

    def _begin(self, query: ScriptQuery) -> None:
        for statement in self.feedback:
            self._give(query, statement)

    def _give(self, query: ScriptQuery, statement: Give) -> None:
        looked_up(self.inserts, statement.target, "sink that is written to")
        where = None if statement.where is None else lowered(statement.where, self.text)
        match statement.intention:
            case "demand":
                query.demand(True if where is None else where, output=statement.target)
            case "assume":
                query.assume(_given(where), output=statement.target)
            case "desire":
                query.desire(_given(where), output=statement.target)

    def _outputs(self) -> dict[str, Node]:
        if not self.inserts:
            raise PlanError(
                "nothing is written to a sink.", remedy="Write INSERT INTO sink SELECT ..., or run one view."
            ).at("script", here())
        return {name: delivered(one.stream.node, one.output) for name, one in self.inserts.items()}

    def _sink(self) -> Sink:
        made = {name: sink_of(self.sinks[name]) for name in self.inserts}
        return SinkByOutput(made) if len(made) > 1 else next(iter(made.values()))

    def _checkpoint(self, given: str | Path | None) -> str | Path:
        place: str | Path | None = given or self.settings.get("checkpoint")
        if place is None:
            raise PlanError(
                "a query that writes to sinks needs a place to go on from after a stop.",
                remedy="Write SET checkpoint = 'folder', or give checkpoint=.",
            ).at("script", here())
        return place


def _given(where: Expr | None) -> Expr:
    assert where is not None, "ASSUME and DESIRE have a condition"
    return where


def _emitted(insert: Insert) -> Stream:
    return Stream(delivered(insert.stream.node, insert.output))


def script(source: str | Path, /, *, dialect: SqlFlavour = "spark", **given: Any) -> Script:
    """The statements of a text, or of a file that ends in .sql, taken up; nothing runs yet.

    Parameters
    ----------
    source
        The text, or the path of the file.
    dialect
        Whose functions they are: ``"spark"`` or ``"flink"``.
    **given
        Streams that it reads from, and functions, as in `cz.sql`.

    Returns
    -------
    Script
        What it declares: streams, views, sinks and what is written to them.

    See Also
    --------
    sql : a query in SQL.
    Script.query : its INSERTs as a query.
    Script.start : its INSERTs on Spark.
    Script.pipeline : its views as a pipeline.
    Script.execute : more statements.

    Examples
    --------
    >>> import caesura as cz
    >>> bids = cz.from_rows([{"ts": 1, "item": 7, "price": 3}], time="ts")
    >>> made = cz.script("CREATE VIEW dear AS SELECT item FROM bids WHERE price > 2;", bids=bids)
    >>> print(made["dear"].run())
     LE  RE | item |
      1  2  | 7    | +
    """
    is_file = isinstance(source, Path) or source.endswith(".sql")
    functions = {name: one for name, one in given.items() if not isinstance(one, Stream)}
    streams = {name: one for name, one in given.items() if isinstance(one, Stream)}
    made = Script(
        file=Path(source).name if is_file else "", dialect=dialect, streams=streams, functions=functions
    )
    try:
        text = script_text(Place.of(source).read_bytes()) if is_file else str(source)
        for _ in made.execute(text):
            pass  # what it asks to be shown is for `caesura sql`
    except FileNotFoundError:
        raise PlanError(f"there is no file '{source}'.", remedy="Give a script that ends in .sql.").at(
            "script", here()
        ) from None
    except CaesuraError as error:
        raise error.at("script", here()) from None
    return made
