"""`pipeline`: several views that answer for one prefix of the input.

>>> import caesura as cz
>>> moves = cz.from_rows([{"t": 1, "who": "a", "n": 2}, {"t": 2, "who": "b", "n": 3}], time="t")
>>> bank = pipeline(moves=moves, total=moves.totals(n=cz.sum("n")))
>>> done = bank.run(claims=cz.tokens(every=1))
>>> [(claim.prefix["read"].rows, len(done["moves"].at(claim))) for claim in done.claims]
[(1, 1), (2, 2), (2, 2)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caesura.api.stream import Stream
from caesura.consistency import Claim, Mode, Tokens
from caesura.consistency.reading import claimed_source
from caesura.errors import CaesuraError, PlanError, looked_up
from caesura.misuse import checked_methods
from caesura.plan import Node, here
from caesura.plan.prune import prune
from caesura.runtime.inspect.inconsistent_states import Eager, eager
from caesura.runtime.query.pipelines import Views, check_folder, run_views, token_mode, write_views
from caesura.runtime.query.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from caesura.runtime import Schedule, ScheduleName
    from caesura.spark import SparkQuery


@checked_methods
class Pipeline:
    """Views that are run, written and read together."""

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
        """Runs all views in this process until every source is at its end."""
        return run_views(self.nodes, claims or Tokens(), schedule)

    def query(self, *, claims: Mode | None = None, schedule: Schedule | ScheduleName | None = None) -> Query:
        """All views as one query in this process, to be fed and stepped; its outputs are the views."""
        return Query(prune(self.nodes), claims=claims or Tokens(), schedule=schedule)

    def eager(self, *, schedule: Schedule | ScheduleName | None = None) -> Eager:
        """Runs without claims, and counts the states that a reader would have seen and that are wrong.

        It looks at every row twice: take a small part of the input.
        """
        return eager(self.nodes, schedule)

    def write(self, path: str | Path, *, claims: Mode | None = None) -> list[Claim]:
        """Runs all views into a folder that `cz.read_claimed` reads; goes on behind its last claim."""
        return list(self.writing(path, claims=claims))

    def writing(self, path: str | Path, *, claims: Mode | None = None) -> Iterator[Claim]:
        """Like `write`, but gives each claim as it is made."""
        try:
            mode = token_mode(claims or Tokens())
            check_folder(self.nodes, path)
        except CaesuraError as error:
            raise error.at("pipeline", here()) from None
        return write_views(self.nodes, path, mode)

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
        allow_unbounded: bool = False,
        name: str | None = None,
        metrics_port: int | str | None = None,
    ) -> SparkQuery:
        """Starts all views on Spark as one query; each epoch ends in a claim with a manifest in ``path``.

        Views whose state would grow without bound are refused, unless ``allow_unbounded``; so is a checkpoint
        that another process goes on with, unless you ``take_over``. ``name`` is what Spark's pages, metrics
        and logs call it; metrics for Prometheus are served at ``metrics_port``.
        """
        from caesura.contracts import require_safe
        from caesura.spark.host.pipelines import start_pipeline

        for node in self.nodes.values():
            require_safe(node, allow_unbounded=allow_unbounded)
        options: dict[str, Any] = {
            "trigger": trigger,
            "files_per_epoch": files_per_epoch,
            "bytes_per_epoch": bytes_per_epoch,
            "take_over": take_over,
            "name": name,
            "metrics_port": metrics_port,
        }
        return start_pipeline(self.nodes, spark, path=path, checkpoint=checkpoint, **options)


def from_claimed(path: str | Path, view: str) -> Stream:
    """A view that another pipeline has written, as a stream; its claims come with it, as tokens."""
    return Stream(claimed_source(path, view))


def pipeline(**views: Stream) -> Pipeline:
    """Views of one pipeline: all share one prefix per claim."""
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
