"""`pipeline`: several views that answer for one prefix of the input.

>>> import caesura as cz
>>> moves = cz.from_rows([{"t": 1, "who": "a", "n": 2}, {"t": 2, "who": "b", "n": 3}], time="t")
>>> bank = pipeline(moves=moves, total=moves.totals(n=cz.sum("n")))
>>> done = bank.run(claims=cz.tokens(every=1))
>>> [(claim.prefix["read"].rows, len(done["moves"].at(claim))) for claim in done.claims]
[(1, 1), (2, 2), (2, 2)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from caesura.api.stream import Stream
from caesura.consistency import Claim, Mode, Tokens
from caesura.consistency.reading import claimed_source
from caesura.errors import CaesuraError, PlanError, looked_up
from caesura.misuse import checked_methods
from caesura.plan import Duration, Node, here
from caesura.plan.prune import prune
from caesura.runtime.durable.change import OnChange
from caesura.runtime.durable.claimed_views import ClaimedFolder, prepare_views, write_views
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.preparing import Preparation
from caesura.runtime.inspect.inconsistent_states import Eager, eager
from caesura.runtime.query.pipelines import Views, run_views, token_mode
from caesura.runtime.query.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from caesura.runtime import Schedule, ScheduleName
    from caesura.spark import SparkQuery


@checked_methods
class Pipeline:
    """Views that are run, written and read together; made by `cz.pipeline`.

    Parameters
    ----------
    views
        Streams by the name of the view.
    """

    def __init__(self, views: Mapping[str, Stream]) -> None:
        self.views = dict(views)
        for name, stream in self.views.items():
            if not isinstance(stream, Stream):
                raise PlanError(
                    f"the view {name!r} is no stream; got {stream!r}.",
                    remedy="Write pipeline(name=stream, ...).",
                ).at("pipeline", here())

    @property
    def nodes(self) -> dict[str, Node]:
        """The last step of each view."""
        return {name: stream.node for name, stream in self.views.items()}

    def __getitem__(self, view: str) -> Stream:
        return looked_up(self.views, view, "view")

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self.views)})"

    def run(self, *, claims: Mode | None = None, schedule: Schedule | ScheduleName | None = None) -> Views:
        """Runs all views in this process until every source is at its end.

        Parameters
        ----------
        claims
            How claims come about; by default `cz.tokens`.
        schedule
            Which step works next; for tests and measurements.

        Returns
        -------
        Views
            A `Result` by view, and ``claims``.

        See Also
        --------
        Pipeline.query : a query that is stepped.
        Pipeline.write : into a folder, with claims.
        Pipeline.start : on Spark.
        Pipeline.eager : how many wrong states a reader would see.
        pipeline : views that share their claims.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
        >>> bank = cz.pipeline(moves=moves, total=moves.totals(n=cz.sum("n")))
        >>> done = bank.run(claims=cz.tokens(every=1))
        >>> [(claim.prefix["read"].rows, len(done["moves"].at(claim))) for claim in done.claims]
        [(1, 1), (2, 2), (2, 2)]
        """
        return run_views(self.nodes, claims or Tokens(), schedule)

    def query(self, *, claims: Mode | None = None, schedule: Schedule | ScheduleName | None = None) -> Query:
        """All views as one query in this process, to be fed and stepped; its outputs are the views.

        Parameters
        ----------
        claims
            How claims come about; by default `cz.tokens`.
        schedule
            Which step works next; for tests and measurements.

        Returns
        -------
        caesura.runtime.Query
            The query.

        See Also
        --------
        Pipeline.run : in this process, to the end.
        Pipeline.write : into a folder, with claims.
        Pipeline.start : on Spark.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}], time="t")
        >>> query = cz.pipeline(moves=moves, twice=moves.select(n=cz.col("n") * 2)).query()
        >>> query.run()
        >>> print(query.marked("twice").select(["n"]).to_pylist())
        [{'n': 4}]
        """
        return Query(prune(self.nodes), claims=claims or Tokens(), schedule=schedule)

    def eager(self, *, schedule: Schedule | ScheduleName | None = None) -> Eager:
        """Runs without claims, and counts the states that a reader would have seen and that are wrong.

        It looks at every row twice: take a small part of the input.

        Parameters
        ----------
        schedule
            Which step works next.

        Returns
        -------
        Eager
            How many states there were, and how many of them answer for no prefix of the input.

        See Also
        --------
        Pipeline.run : in this process, to the end.

        Examples
        --------
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
        >>> print(cz.pipeline(moves=moves, total=moves.totals(n=cz.sum("n"))).eager())
        of 2 states 1 (50 %) are those of no prefix of the input
        """
        return eager(self.nodes, schedule)

    def write(
        self,
        path: str | Path,
        *,
        claims: Mode | None = None,
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
    ) -> list[Claim]:
        """Runs all views into a folder that `cz.read_claimed` reads; goes on behind its last claim.

        Parameters
        ----------
        path
            The folder, on this machine or in an object store.
        claims
            How claims come about; by default `cz.tokens`.
        on_change
            Where the folder belongs to another plan: ``"refuse"``, ``"continue"`` or ``"rebuild"``, as in
            `Stream.query`. Each claim says which plan has made it.
        final_rows
            As in `Stream.query`.

        Returns
        -------
        list of Claim
            The claims that were made.

        See Also
        --------
        Pipeline.run : in this process, to the end.
        Pipeline.query : a query that is stepped.
        Pipeline.start : on Spark.
        Pipeline.writing : claim by claim.
        Pipeline.prepare_upgrade : reads beforehand what a rebuild reads.
        read_claimed : what a pipeline wrote, as of one claim.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}], time="t")
        >>> folder = tempfile.mkdtemp()
        >>> claims = cz.pipeline(moves=moves).write(folder)
        >>> cz.read_claimed(folder).table("moves").to_pylist()
        [{'LE': 1, 'RE': 2, 'n': 2}]
        """
        return list(self.writing(path, claims=claims, on_change=on_change, final_rows=final_rows))

    def writing(
        self,
        path: str | Path,
        *,
        claims: Mode | None = None,
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
    ) -> Iterator[Claim]:
        """Like ``write``, but gives each claim as it is made.

        Parameters
        ----------
        path
            The folder, on this machine or in an object store.
        claims
            How claims come about; by default `cz.tokens`.
        on_change
            As in ``write``.
        final_rows
            As in ``write``.

        Returns
        -------
        Iterator of Claim
            The claims, as they are made.

        See Also
        --------
        Pipeline.write : into a folder, with claims.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
        >>> for claim in cz.pipeline(moves=moves).writing(tempfile.mkdtemp(), claims=cz.tokens(every=1)):
        ...     print(claim)
        claim 1: input-prefix consistent for read 1 row + 0 punctuations
        claim 2: input-prefix consistent for read 2 rows + 0 punctuations
        claim 3: input-prefix consistent for read 2 rows + 1 punctuation (*)
        """
        try:
            mode = token_mode(claims or Tokens())
            return write_views(ClaimedFolder.of(self.nodes, path, on_change, final_rows), mode)
        except CaesuraError as error:
            raise error.at("pipeline", here()) from None

    def prepare_upgrade(self, path: str | Path, *, take_over: bool = False) -> Preparation:
        """Reads, beside a pipeline that runs, what it has claimed so far; a rebuild then has little to read.

        The folder's claims stay as they are. Called again, it reads only what was claimed since. Then stop
        the pipeline that runs, and write this one with ``on_change="rebuild"``.

        Parameters
        ----------
        path
            The folder that the pipeline writes into, in this process; what is prepared lies in its folder
            ``_prepared`` until the switch.
        take_over
            Whether it is taken from another process that prepares there; by default that is refused.

        Returns
        -------
        caesura.runtime.durable.preparing.Preparation
            How many rows were read.

        See Also
        --------
        Pipeline.write : into a folder, with claims.
        Stream.prepare_upgrade : of a query with a checkpoint.

        Examples
        --------
        >>> import tempfile
        >>> import caesura as cz
        >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
        >>> folder = tempfile.mkdtemp()
        >>> claims = cz.pipeline(moves=moves).write(folder)
        >>> other = cz.pipeline(moves=moves.where("n > 2"))
        >>> print(other.prepare_upgrade(folder))
        prepared: 2 rows read now, 2 in all
        >>> claims = other.write(folder, on_change="rebuild")
        """
        try:
            return prepare_views(self.nodes, path, take_over=take_over)
        except CaesuraError as error:
            raise error.at("prepare_upgrade", here()) from None

    def start(
        self,
        spark: SparkSession,
        *,
        path: str | Path,
        checkpoint: str | Path,
        trigger: str = "continuous",
        files_per_epoch: int | None = None,
        bytes_per_epoch: int | None = None,
        take_over: bool = False,
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
        state_memory: int | str | None = None,
        allow_unbounded: bool = False,
        lifetimes: Mapping[str, Duration | Literal["finite"]] | None = None,
        bounded_columns: Mapping[str, Iterable[str]] | None = None,
        name: str | None = None,
        metrics_port: int | str | None = None,
    ) -> SparkQuery:
        """Starts all views on Spark as one query; each epoch ends in a claim with a manifest.

        Parameters
        ----------
        spark
            The session.
        path
            The folder of the views and manifests, for `cz.read_claimed`.
        checkpoint
            The folder that Spark keeps offsets and state in.
        trigger
            As in `Stream.start`.
        files_per_epoch
            As in `Stream.start`.
        bytes_per_epoch
            As in `Stream.start`.
        take_over
            Whether a checkpoint that another process goes on with is taken from it.
        on_change
            As in ``write``.
        final_rows
            As in ``write``.
        state_memory
            As in `Stream.start`.
        allow_unbounded
            Whether views whose state would grow without bound are started all the same, with a warning.
        lifetimes
            By source, how long its events live at most, where `check` cannot know.
        bounded_columns
            By source, which columns have a bounded set of values.
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
        Pipeline.run : in this process, to the end.
        Pipeline.query : a query that is stepped.
        Pipeline.write : into a folder, with claims.

        Examples
        --------
        With a session at hand::

            query = bank.start(spark, path="bank/", checkpoint="state/", trigger="available")
            query.wait()
        """
        from caesura.spark.host.pipelines import start_pipeline

        options: dict[str, Any] = {
            "trigger": trigger,
            "files_per_epoch": files_per_epoch,
            "bytes_per_epoch": bytes_per_epoch,
            "take_over": take_over,
            "on_change": on_change,
            "final_rows": final_rows,
            "state_memory": state_memory,
            "allow_unbounded": allow_unbounded,
            "lifetimes": lifetimes,
            "bounded_columns": bounded_columns,
            "name": name,
            "metrics_port": metrics_port,
        }
        return start_pipeline(self.nodes, spark, path=path, checkpoint=checkpoint, **options)


def from_claimed(path: str | Path, view: str) -> Stream:
    """A view that another pipeline has written, as a stream; its claims come with it, as tokens.

    Parameters
    ----------
    path
        The folder that the pipeline writes to.
    view
        The view.

    Returns
    -------
    Stream
        The rows of the view.

    Notes
    -----
    Promises: nothing before the end of what is written. State: the events that corrections may still name.
    Feedback: rows that will be ignored go no further. Spark: read by one task of a batch.

    See Also
    --------
    read_claimed : what a pipeline wrote, as of one claim.
    pipeline : views that share their claims.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> folder = tempfile.mkdtemp()
    >>> _ = cz.pipeline(moves=cz.from_rows([{"t": 1, "n": 2}], time="t")).write(folder)
    >>> print(cz.from_claimed(folder, "moves").run())
     LE  RE | n |
      1  2  | 2 | +
    """
    return Stream(claimed_source(path, view))


def pipeline(**views: Stream) -> Pipeline:
    """Views of one pipeline: all share one prefix of the input per claim.

    Parameters
    ----------
    **views
        Streams by the name of the view; a name does not begin with ``_``.

    Returns
    -------
    Pipeline
        The views, to be run, written or started together.

    See Also
    --------
    from_claimed : a view that a pipeline wrote.
    Pipeline.run : in this process, to the end.
    tokens : claims where sources put marks.

    Examples
    --------
    >>> import caesura as cz
    >>> moves = cz.from_rows([{"t": 1, "n": 2}, {"t": 2, "n": 3}], time="t")
    >>> bank = cz.pipeline(moves=moves, total=moves.totals(n=cz.sum("n")))
    >>> print(bank.run()["total"])
     LE  RE | n |
      1  3  | 5 | +
    """
    if not views:
        raise PlanError("a pipeline needs a view.", remedy="Write pipeline(name=stream, ...).").at(
            "pipeline", here()
        )
    for name in views:
        if name.startswith("_"):
            raise PlanError(
                f"a view cannot be called '{name}'.",
                remedy="Give it another name: those that begin with '_' are the folder's own.",
            ).at("pipeline", here())
    return Pipeline(views)
