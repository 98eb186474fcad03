"""What a running query shows to monitors: true figures, to whoever may ask."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

import caesura as cz
from caesura.errors import PlanError
from caesura.runtime.metrics.endpoint import CLIENTS, MetricsEndpoint
from caesura.runtime.metrics.families import QueryMetrics
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.status import Board, BucketLoad, SourceStatus, Status, StepStatus

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def asked(endpoint: MetricsEndpoint, path: str, host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.fixture
def served() -> Iterator[tuple[Any, MetricsEndpoint]]:
    stream = cz.input_stream("taps", SCHEMA).where(cz.col("v") > 0).group_by("k").tumbling(10)
    query = stream.agg(total=cz.sum("v")).query()
    endpoint = query.serve_metrics(0, name='taps of "us"\n')
    yield query, endpoint
    endpoint.close()


def feed(query: Any, *texts: str) -> None:
    for text in texts:
        for item in cz.parse(text, SCHEMA):
            query.feed("taps", item)
    query.run()


def test_figures_are_those_of_the_query(served: tuple[Any, MetricsEndpoint]) -> None:
    query, endpoint = served
    feed(query, " LE RE | k v |\n 1 2 | 1 5 | +\n 3 4 | 2 -1 | +\n-- 7 --\n 4 5 | 1 1 | +\n 12 13 | 1 1 | +")
    samples = parsed(asked(endpoint, "/metrics")[1])
    name = 'taps of "us"\n'
    status = query.status()
    assert value(samples, "caesura_up", query=name) == 1
    assert value(samples, "caesura_source_late_total", query=name, source="taps") == 1
    assert (
        value(samples, "caesura_source_rows_total", query=name, source="taps") == status.sources["taps"].rows
    )
    assert value(samples, "caesura_source_promised_ticks", query=name, source="taps") == 7
    assert value(samples, "caesura_step_rows_in_total", query=name, step="where") == 3
    assert value(samples, "caesura_step_rows_out_total", query=name, step="where") == 2
    [held] = [step for step in status.steps if status.steps[step].state_rows]
    assert value(samples, "caesura_step_state_rows", query=name, step=held) == status.steps[held].state_rows
    assert value(samples, "caesura_step_lag_ticks", query=name, step="where") == 12 - 7


def test_health(served: tuple[Any, MetricsEndpoint]) -> None:
    query, endpoint = served
    assert asked(endpoint, "/healthz") == (200, "ok\n")
    assert asked(endpoint, "/readyz") == (503, "nothing was read yet\n")
    feed(query, " LE RE | k v |\n 1 2 | 1 5 | +")
    assert asked(endpoint, "/readyz") == (200, "ok\n")


def test_a_query_at_work_is_seen_from_another_thread(tmp_path: Path) -> None:
    rows = [{"ts": n, "v": n} for n in range(200)]
    query = cz.from_rows(rows, time="ts", punctuate=cz.delay(5)).group_by().tumbling(10).agg(n=cz.count())
    made = query.query()
    endpoint = made.serve_metrics(0)
    seen: list[str] = []
    asking = threading.Thread(target=lambda: seen.append(asked(endpoint, "/metrics")[1]))
    asking.start()
    while asking.is_alive():
        made.step()
    asking.join()
    made.run()
    last = parsed(asked(endpoint, "/metrics")[1])
    endpoint.close()
    assert "caesura_source_rows_total" in seen[0]
    assert value(last, "caesura_source_rows_total", query="query", source="read") == 200


def test_ended_queries_are_not_alive() -> None:
    endpoint = MetricsEndpoint(lambda: Figures("q", Status(), active=False), 0)
    assert asked(endpoint, "/healthz") == (503, "the query has ended\n")
    assert value(parsed(asked(endpoint, "/metrics")[1]), "caesura_up", query="q") == 0
    endpoint.close()


def test_only_reads_under_its_own_names(served: tuple[Any, MetricsEndpoint]) -> None:
    _, endpoint = served
    assert asked(endpoint, "/metrics", "evil.example")[0] == 403
    assert asked(endpoint, "/metrics", f"localhost:{endpoint.port}")[0] == 200
    assert asked(endpoint, "/../../etc/passwd")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("POST", "/metrics", body="x")
    assert connection.getresponse().status == 501
    connection.close()


def test_silent_clients_do_not_keep_others_out(
    served: tuple[Any, MetricsEndpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, endpoint = served
    monkeypatch.setattr(endpoint._server.RequestHandlerClass, "timeout", 0.2)
    silent = [socket.create_connection(("127.0.0.1", endpoint.port)) for _ in range(2 * CLIENTS)]
    assert asked(endpoint, "/healthz")[0] == 200
    for one in silent:
        one.close()


@pytest.mark.parametrize("port", [-1, 70000, "x", "host:", ":9464", True])
def test_what_is_no_port_is_refused(port: Any) -> None:
    query = cz.input_stream("taps", SCHEMA).query()
    with pytest.raises(PlanError, match="metrics_port is a port or an address"):
        query.serve_metrics(port)


def test_a_port_that_is_taken_is_named(served: tuple[Any, MetricsEndpoint]) -> None:
    query, endpoint = served
    with pytest.raises(PlanError, match=f"metrics cannot be served at 127.0.0.1:{endpoint.port}"):
        query.serve_metrics(endpoint.port)


def test_a_durable_query_counts_its_epochs_and_starts(tmp_path: Path) -> None:
    for start in (1, 2):
        stream = cz.from_rows([{"ts": 1, "v": 1}], time="ts", name="rows").group_by().tumbling(10)
        query = stream.agg(n=cz.count()).query(checkpoint=tmp_path / "checkpoint")
        endpoint = query.serve_metrics(0)
        query.run()
        samples = parsed(asked(endpoint, "/metrics")[1])
        endpoint.close()
        assert value(samples, "caesura_starts_total", query="query") == start
        assert value(samples, "caesura_epochs_total", query="query") >= 1


def test_claims_are_counted() -> None:
    query = cz.from_rows([{"ts": 1, "v": 1}], time="ts").query(claims=cz.tokens())
    endpoint = query.serve_metrics(0)
    query.run()
    samples = parsed(asked(endpoint, "/metrics")[1])
    endpoint.close()
    assert value(samples, "caesura_claims_total", query="query") == len(query.claims) > 0


def test_buckets_show_who_has_too_many_rows() -> None:
    board = Board()
    for bucket, rows in enumerate((5, 900)):
        step = {"stage": 1, "rows_in": rows, "state_rows": 3, "state_bytes": rows}
        board.take(f"1:{bucket}", {"steps": {"join": step, "where": {**step, "rows_in": 1}}, "sources": {}})
    figures = Figures("q", board.status(), buckets=board.buckets())
    samples = parsed(QueryMetrics(lambda: figures).text().decode())
    assert value(samples, "caesura_bucket_rows_in_total", query="q", stage="1", bucket="1") == 900
    assert value(samples, "caesura_bucket_state_bytes", query="q", stage="1", bucket="0") == 10


def every_metric() -> set[str]:
    """The names that a query may show, of times that are moments."""
    step = StepStatus(promised=10**15, held_by="gps", extra={"rounds": 1}, feedback={"guards": 1})
    source = SourceStatus(promised=10**15, latest=2 * 10**15)
    status, loads = Status({"s": step}, {"gps": source}, 3), {(1, 0): BucketLoad()}
    figures = Figures("q", status, claims=1, parts={"addBatch": 1.0}, buckets=loads)
    return {name for name, _ in parsed(QueryMetrics(lambda: figures).text().decode())}


def test_the_dashboard_and_the_alerts_name_metrics_that_are_there() -> None:
    folder = Path(__file__).parents[2] / "examples" / "monitoring"
    dashboard = json.loads((folder / "grafana-dashboard.json").read_text())
    asked_for = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    texts = [*asked_for, (folder / "alerts.yml").read_text()]
    named = {name for text in texts for name in re.findall(r"\bcaesura_\w+", text)}
    assert len(asked_for) >= 8
    assert named and named <= every_metric(), named - every_metric()


def test_the_log_has_the_query_and_the_epoch(tmp_path: Path) -> None:
    out = StringIO()
    cz.set_log_level("INFO", json=True, to=out)
    try:
        rows = cz.from_rows([{"ts": 1, "v": 1}], time="ts")
        rows.query(checkpoint=tmp_path / "checkpoint").run()
    finally:
        cz.set_log_level("WARNING")
        logging.getLogger("caesura").handlers.clear()
        logging.getLogger("caesura").propagate = True
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    [saved] = [line for line in lines if line["logger"] == "caesura.epochs"]
    assert saved["epoch"] == 1 and saved["query"] and saved["message"] == "epoch 1 saved"


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(PlanError, match="no log level 'LOUD'"):
        cz.set_log_level("LOUD")  # type: ignore[arg-type]
