"""The figures of a running query as metrics of Prometheus.

>>> from caesura.runtime.metrics.status import Status
>>> figures = Figures("speeds", Status(sources={"gps": SourceStatus(rows=7, late=1)}))
>>> text = QueryMetrics(lambda: figures).text().decode()
>>> [line for line in text.splitlines() if line.startswith("caesura_source_late_total")]
['caesura_source_late_total{query="speeds",source="gps"} 1.0']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.status import SourceStatus, StepStatus

MICROSECONDS = 1_000_000
Rows = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels, and the number."""


class QueryMetrics:
    """A collector: gives the figures as they are when it is asked."""

    def __init__(self, read: Callable[[], Figures]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """The metrics, each with the query's name as its first label."""
        figures = self._read()
        for parts in (_of_query, _of_epochs, _of_sources, _of_steps, _of_buckets):
            yield from parts(figures)

    def text(self) -> bytes:
        """All of them in the text format of Prometheus."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


def _of_query(given: Figures) -> Iterator[Metric]:
    yield _gauge(given, "up", "Whether the query runs.", (), [((), given.active)])
    yield _gauge(given, "started_timestamp_seconds", "When it was started.", (), [((), given.began)])
    yield _counter(given, "starts", "How often it was started on its checkpoint.", (), [((), given.starts)])
    if given.claims is not None:
        yield _counter(given, "claims", "Consistent states that were marked.", (), [((), given.claims)])


def _of_epochs(given: Figures) -> Iterator[Metric]:
    if given.status.epoch < 0:
        return
    yield _counter(given, "epochs", "Epochs completed.", (), [((), given.status.epoch + 1)])
    yield _gauge(given, "epoch_seconds", "How long the last epoch took.", (), [((), given.status.seconds)])
    parts = [((part,), seconds) for part, seconds in given.parts.items()]
    yield _gauge(given, "epoch_part_seconds", "What the last epoch spent its time on.", ("part",), parts)


def _of_sources(given: Figures) -> Iterator[Metric]:
    def rows(value: Callable[[SourceStatus], float]) -> Rows:
        return [((name,), value(source)) for name, source in given.status.sources.items()]

    labels = ("source",)
    yield _counter(given, "source_rows", "Rows read.", labels, rows(lambda s: s.rows))
    yield _counter(given, "source_late", "Rows rejected, late or malformed.", labels, rows(lambda s: s.late))
    dropped = rows(lambda s: s.late_dropped)
    yield _counter(given, "source_late_dropped", "Rejected rows no longer kept.", labels, dropped)
    unread = rows(lambda s: s.rows_unread)
    yield _counter(given, "source_unread_rows", "Rows that feedback saved from being read.", labels, unread)
    size = rows(lambda s: s.bytes_unread)
    yield _counter(given, "source_unread_bytes", "Bytes that feedback saved from being read.", labels, size)
    latest = {name: source.latest for name, source in given.status.sources.items()}
    yield from _moments(given, "source_latest", "The latest event time read", labels, latest)
    promised = {name: source.promised for name, source in given.status.sources.items()}
    yield from _moments(given, "source_promised", "The time no row may come before", labels, promised)


def _of_steps(given: Figures) -> Iterator[Metric]:
    steps = given.status.steps

    def rows(value: Callable[[StepStatus], float]) -> Rows:
        return [((name,), value(step)) for name, step in steps.items()]

    labels = ("step",)
    yield _counter(given, "step_rows_in", "Rows taken in.", labels, rows(lambda s: s.rows_in))
    yield _counter(given, "step_rows_out", "Rows given out.", labels, rows(lambda s: s.rows_out))
    yield _gauge(given, "step_state_rows", "Rows held.", labels, rows(lambda s: s.state_rows))
    yield _gauge(given, "step_state_bytes", "Bytes held.", labels, rows(lambda s: s.state_bytes))
    promised = {name: step.promised for name, step in steps.items()}
    yield from _moments(given, "step_promised", "The time up to which output is final", labels, promised)
    unit = MICROSECONDS if given.timed else 1
    lags = [((n,), lag / unit) for n in steps if (lag := given.status.lag(n)) is not None]
    name = "step_lag_seconds" if given.timed else "step_lag_ticks"
    yield _gauge(given, name, "How far its promise is behind the latest event read.", labels, lags)
    held = [((n, s.held_by), 1) for n, s in steps.items() if s.held_by]
    yield _gauge(given, "step_held", "Which step or source holds it back.", ("step", "by"), held)
    counts = [((n, what), count) for n, s in steps.items() for what, count in s.extra.items()]
    yield _gauge(given, "step_count", "What only some steps count.", ("step", "what"), counts)
    heeded = [((n, what), count) for n, s in steps.items() for what, count in s.feedback.items()]
    yield _counter(given, "step_feedback", "What feedback did.", ("step", "what"), heeded)
    seen = [((n, what), v) for n, row in given.status.observed.items() for what, v in row.items()]
    known = [(names, v) for names, v in seen if v is not None]
    yield _gauge(given, "observed", "What observe() counts.", ("observation", "what"), known)


def _of_buckets(given: Figures) -> Iterator[Metric]:
    labels = ("stage", "bucket")
    places = {place: (str(place[0]), str(place[1])) for place in given.buckets}
    taken = [(places[place], load.rows_in) for place, load in given.buckets.items()]
    yield _counter(given, "bucket_rows_in", "Rows taken in by a bucket.", labels, taken)
    held = [(places[place], load.state_bytes) for place, load in given.buckets.items()]
    yield _gauge(given, "bucket_state_bytes", "Bytes held by a bucket.", labels, held)


def _moments(
    given: Figures, name: str, what: str, labels: tuple[str, ...], times: Mapping[str, int]
) -> Iterator[Metric]:
    """Times as seconds since 1970, or as the plain integers that they are."""
    unit = MICROSECONDS if given.timed else 1
    known = [((n,), time / unit) for n, time in times.items() if MIN_TIME < time < INFINITY]
    full = f"{name}_timestamp_seconds" if given.timed else f"{name}_ticks"
    yield _gauge(given, full, f"{what}.", labels, known)


def _gauge(given: Figures, name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    metric = GaugeMetricFamily(f"caesura_{name}", text, labels=["query", *labels])
    for values, number in rows:
        metric.add_metric([given.name, *values], float(number))
    return metric


def _counter(given: Figures, name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    metric = CounterMetricFamily(f"caesura_{name}", text, labels=["query", *labels])
    for values, number in rows:
        metric.add_metric([given.name, *values], float(number))
    return metric
