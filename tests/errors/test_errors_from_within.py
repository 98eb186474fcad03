"""What fails within is told as that, and never as a call that was wrong, whichever layer it fails in.

Each layer is made to fail by a function of the standard library, so that no line of a user's is in the trace.
"""

from __future__ import annotations

import errno
import html
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from cluster import Cluster
from served_console import Client, served

import caesura as cz
from caesura import Stream, col
from caesura.errors import CaesuraError

ROWS = [{"ts": n, "k": n % 3, "v": n} for n in range(30)]
KINDS: dict[str, Callable[[], Exception]] = {
    "type": lambda: TypeError("got 3"),
    "value": lambda: ValueError("no such thing"),
    "key": lambda: KeyError("k"),
    "stop": lambda: StopIteration(),
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "permission": lambda: PermissionError(errno.EACCES, "Permission denied", "/data/in"),
    "away": lambda: ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    "memory": lambda: MemoryError(),
    "runtime": lambda: RuntimeError("odd"),
    "zero": lambda: ZeroDivisionError("division by zero"),
}


def stream() -> Stream:
    return cz.from_rows(ROWS, time="ts", punctuate=cz.delay(3), batch_size=5)


def windows() -> Stream:
    return stream().where(col("v") >= 0).group_by("k").tumbling(5).agg(n=cz.sum("v"))


def hopping() -> Stream:
    return stream().group_by("k").hopping(6, every=2).agg(n=cz.sum("v"))


def running() -> Stream:
    return stream().group_by("k").over(rows=3).agg(n=cz.sum("v"))


def durable(folder: Path) -> None:
    windows().query(sink=str(folder / "out"), checkpoint=str(folder / "cp")).run()


def spoken(folder: Path) -> None:
    query = windows().query()
    query.step()
    query.assume(col("k") == 1)
    query.run()


OPERATOR = "caesura.ops.over.rows.RowsInOrder.page"
Action = Callable[[Path], object]
LAYERS: dict[str, tuple[str, Action]] = {
    "a step is built": ("caesura.ops.where.Where.output_schema", lambda _: stream().where(col("v") > 1)),
    "plan: it is pruned": ("caesura.runtime.query.result.prune", lambda _: windows().run()),
    "plan: it is cut": ("caesura.runtime.threads.spreading.cut", lambda _: windows().run(threads=2)),
    "it is explained": ("caesura.api.steps.running.explain", lambda _: windows().explain()),
    "a contract": ("caesura.contracts.analysis.Analysis.__init__", lambda _: windows().check()),
    "a source": ("caesura.io.sources.python_rows.RowsReader.read", lambda _: windows().run()),
    "a source on threads": (
        "caesura.io.sources.python_rows.RowsReader.read",
        lambda _: windows().run(threads=2),
    ),
    "ingress": ("caesura.io.ingress.ingress.SourceIngress.raw", lambda _: windows().run()),
    "an operator": (OPERATOR, lambda _: running().run()),
    "an operator on threads": (OPERATOR, lambda _: running().run(threads=2)),
    "a kernel": ("caesura.ops.aggregate.tumbling_operator.spread", lambda _: hopping().run()),
    "threads: a bucket": (
        "caesura.runtime.threads.bucket.ThreadBucket.step",
        lambda _: windows().run(threads=2),
    ),
    "threads: the reader": (
        "caesura.runtime.threads.query.ThreadedQuery._read",
        lambda _: windows().run(threads=2),
    ),
    "an operator in buckets": (OPERATOR, lambda _: Cluster({"out": running().node}, 2).run()),
    "output": ("caesura.ops.deliver.Deliver.operator", lambda _: windows().run(output="final")),
    "a result": ("caesura.runtime.query.result.history_table", lambda _: windows().run().table()),
    "feedback": ("caesura.runtime.feedback.at_step.StepFeedback.take", spoken),
    "a sink writes": ("caesura.runtime.sinks.parquet.parquet_bytes", durable),
    "a sink commits": ("caesura.runtime.sinks.parquet.ParquetSink.commit", durable),
    "a checkpoint": ("caesura.runtime.durable.query.DurableQuery.snapshot", durable),
    "a manifest": ("caesura.runtime.durable.manifest.Manifests.add", durable),
    "the disk": ("caesura.io.places.local._write", durable),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", LAYERS)
def test_an_error_from_within_names_where_it_came_from_and_is_no_misuse(
    layer: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, action = LAYERS[layer]
    raised = KINDS[kind]()
    monkeypatch.setattr(target, Mock(side_effect=raised))
    with pytest.raises(CaesuraError) as caught:
        action(tmp_path)
    told, causes = str(caught.value), chain(caught.value)
    assert raised in causes, [type(c) for c in causes]
    for misuse in ("does not understand", "It is called as", "wanted"):
        assert misuse not in told, told
    assert caught.value.step and caught.value.remedy
    if isinstance(raised, OSError):
        assert "fault of ours" not in told, told
        assert raised.strerror in told and "trace" not in caught.value.remedy, told
        if layer in ("the disk",):
            assert str(raised.filename) in told and (str(tmp_path) in told or kind == "permission"), told
    elif not isinstance(raised, MemoryError):
        assert type(raised).__name__ in told, told


@pytest.fixture(scope="module")
def visitor() -> Iterator[Client]:
    with served(windows().query()) as client:
        yield client.follow_link()


PAGES = {
    "/": ("caesura.console.web.app.plan_page", "GET"),
    "/check": ("caesura.console.web.app.check_page", "GET"),
    "/feedback": ("caesura.console.web.app.said", "POST"),
    "/time": ("caesura.console.web.time_page.TimePage.page", "GET"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_the_console_that_fails_says_why_and_the_next_one_comes(
    path: str, kind: str, visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (target, method), raised = PAGES[path], KINDS[kind]()
    with monkeypatch.context() as broken:
        broken.setattr(target, Mock(side_effect=raised))
        answer = visitor.ask(path) if method == "GET" else visitor.post(path, "verb=assume&text=k+%3D+1")
    words = raised.strerror if isinstance(raised, OSError) else type(raised).__name__
    assert words in html.unescape(answer.body) or (kind == "memory" and "memory" in answer.body), answer.body
    assert "Traceback" not in answer.body
    assert visitor.ask("/feedback").code == 200


def chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
