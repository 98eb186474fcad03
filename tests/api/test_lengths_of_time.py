"""Every argument that is a length of time, in every form: what has a unit is taken, a bare number is refused.

Where a stream's time is plain integers it is the other way round. The arguments are found by their types, so
that a new one fails here until it says how it is used.
"""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from public_calls import public_functions

import caesura as cz
from caesura import CaesuraError, Stream, col, contracts, qre
from caesura.io.sources.source import Source
from caesura.plan import walk

FORMS = (
    *(
        "60s",
        "1m",
        "60S",
        "1 minute",
        "60 seconds",
        "1min",
        "60 secs",
        "60000 milliseconds",
        "0.5 min 30 sec",
    ),
    *("INTERVAL '1' MINUTE", "interval 60 seconds", "INTERVAL '30 seconds 30 seconds'"),
    *("INTERVAL '00:01' HOUR TO MINUTE", "INTERVAL '0 00:00:60' DAY TO SECOND", timedelta(minutes=1)),
)
"""A minute."""
WRONG = ("1M", "1 month", "2 years", "60", "", "1 fortnight", "s", "1 s 2", 1.5, b"1s")
HOST = "127.0.0.1:1"
START = datetime(2024, 5, 1)
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def timed(punctuate: Any = None) -> Stream:
    rows = [{"ts": START + timedelta(seconds=20 * n), "id": n % 2, "v": n} for n in range(6)]
    return cz.from_rows(rows, time="ts", punctuate=punctuate or cz.delay("0s"), name="read")


def numbered(punctuate: Any = None) -> Stream:
    rows = [{"ts": 20 * n, "id": n % 2, "v": n} for n in range(6)]
    return cz.from_rows(rows, time="ts", punctuate=punctuate or cz.delay(0), name="read")


Use = Callable[[Callable[..., Stream], Any], Any]
"""What is done with a length: from a way to make the stream, and the length, to what can be compared."""


def step(build: Callable[[Stream, Any], Any]) -> Use:
    """A step of a plan, or windows."""

    def use(stream: Callable[..., Stream], length: Any) -> Any:
        made = build(stream(), length)
        return (made if isinstance(made, Stream) else made.agg(n=cz.count())).node.fingerprint

    return use


def policy(make: Callable[[Any], Any]) -> Use:
    """A policy, which meets the time of its stream where the source is made."""

    def use(stream: Callable[..., Stream], length: Any) -> Any:
        source = stream(make(length)).node
        ahead = source.policy.ahead(source.time)
        lags, stride = source.policy.lags(source.time), source.policy.stride(source.time)
        return lags, stride, source.policy.period, ahead and ahead.ticks

    return use


def matched(stream: Callable[..., Stream], length: Any) -> Any:
    arcs = [cz.arc("S", "S", col("v") > 0)]
    return stream().match(cz.automaton(arcs, within=length)).node.within


def held(**options: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda length: {name: make(length) for name, make in options.items()}


def bounds(stream: Callable[..., Stream], rate: Any = None, **options: Any) -> Any:
    counted = stream().forever().group_by("id").alive().agg(n=cz.count())
    return [bound.rows for bound in counted.bounds({"read": rate}, **options)]


def unit(stream: Callable[..., Stream]) -> Any:
    return "7s" if stream is timed else 7


def joined(stream: Callable[..., Stream], length: Any) -> Any:
    return stream().join(_other(stream()), on="id", within=(0, length)).node.fingerprint


def utility(stream: Callable[..., Stream], length: Any) -> Any:
    return str(stream().run().utility(length))


def rates(per: bool) -> Use:
    def use(stream: Callable[..., Stream], length: Any) -> Any:
        one = unit(stream)
        given = (9, length, one) if per else (9, one, length)
        return [bound.rows for bound in stream().tumbling(one).agg(n=cz.count()).bounds({"read": given})]

    return use


def skewed(stream: Callable[..., Stream], length: Any) -> Any:
    one = unit(stream)
    return [
        b.rows for b in stream().tumbling(one).agg(n=cz.count()).bounds({"read": (9, one, one)}, skew=length)
    ]


def lived(check: Callable[..., Any]) -> Use:
    """A source whose events may be retracted, so that nothing else tells how long they live."""

    def use(stream: Callable[..., Stream], length: Any) -> Any:
        time = pa.timestamp("us") if stream is timed else pa.int64()
        rows = pa.table({"s": pa.array([], time), "e": pa.array([], time), "id": pa.array([], pa.int64())})
        ends = cz.from_arrow(rows, time="s", end="e", punctuate=cz.delay(0), name="read")
        plan = ends.group_by("id").alive().agg(n=cz.count())
        return str(check(plan, {"read": length}, unit(stream)))

    return use


IN_STREAM: dict[str, Use] = {
    "Windowing.tumbling.size": step(lambda s, d: s.tumbling(d)),
    "Windowing.tumbling.offset": step(lambda s, d: s.tumbling(_long(s), offset=d)),
    "Windowing.hopping.size": step(lambda s, d: s.hopping(d, every=d)),
    "Windowing.hopping.every": step(lambda s, d: s.hopping(d, every=d)),
    "Windowing.hopping.offset": step(lambda s, d: s.hopping(_long(s), every=_long(s), offset=d)),
    "Windowing.session.gap": step(lambda s, d: s.session(d)),
    "Windowing.session.longest": step(lambda s, d: s.session(d, longest=d)),
    "Windowing.over.range": step(lambda s, d: s.over(range=d)),
    "Windowing.match_rows.within": step(
        lambda s, d: s.match_rows("A", define={"A": "v > 0"}, measures={"n": cz.count()}, within=d)
    ),
    "WindowSteps.bucket.size": step(lambda s, d: s.bucket("LE", d)),
    "WindowSteps.bucket.slide": step(lambda s, d: s.bucket("LE", d, slide=d)),
    "WindowSteps.bucket.origin": step(lambda s, d: s.bucket("LE", d, origin=d)),
    "WindowSteps.tumbling_lifetimes.size": step(lambda s, d: s.tumbling_lifetimes(d)),
    "WindowSteps.tumbling_lifetimes.offset": step(lambda s, d: s.tumbling_lifetimes(_long(s), offset=d)),
    "WindowSteps.hopping_lifetimes.size": step(lambda s, d: s.hopping_lifetimes(d, every=d)),
    "WindowSteps.hopping_lifetimes.every": step(lambda s, d: s.hopping_lifetimes(d, every=d)),
    "WindowSteps.hopping_lifetimes.offset": step(
        lambda s, d: s.hopping_lifetimes(_long(s), every=_long(s), offset=d)
    ),
    "WindowSteps.match.ticks_every": step(lambda s, d: s.match(_sums(), ticks_every=d)),
    "over.ticks_every": step(lambda s, d: Stream(qre.over(s.node, _sums(), ticks_every=d))),
    "LifetimeSteps.shift.by": step(lambda s, d: s.shift(d)),
    "LifetimeSteps.extend.by": step(lambda s, d: s.extend(d)),
    "LifetimeSteps.set_duration.to": step(lambda s, d: s.set_duration(d)),
    "LifetimeSteps.start_at.period": step(lambda s, d: s.start_at(d)),
    "LifetimeSteps.chop.period": step(lambda s, d: s.chop(d)),
    "MeetingSteps.join.within": joined,
    "MeetingSteps.join_asof.tolerance": step(lambda s, d: s.join_asof(_other(s), on="id", tolerance=d)),
    "FeedbackSteps.pace.within": step(lambda s, d: s.pace(within=d)),
    "FeedbackSteps.deadline.after": step(lambda s, d: s.deadline(d)),
    "RunSteps.bounds.skew": skewed,
    "RunSteps.bounds.rates": rates(per=True),
    "SourceRate.__init__.per": rates(per=True),
    "SourceRate.__init__.within": rates(per=False),
    "RunSteps.bounds.lifetimes": lived(
        lambda plan, lives, one: [b.rows for b in plan.bounds({"read": (9, one, one)}, lifetimes=lives)]
    ),
    "RunSteps.check.lifetimes": lived(lambda plan, lives, one: plan.check(lifetimes=lives)),
    "adequate.lifetimes": lived(lambda plan, lives, one: contracts.adequate(plan.node, lifetimes=lives)),
    "bounds.lifetimes": lived(
        lambda plan, lives, one: [
            b.rows
            for b in contracts.bounds(plan.node, {"read": contracts.SourceRate(9, one, one)}, lifetimes=lives)
        ]
    ),
    "check.lifetimes": lived(lambda plan, lives, one: contracts.check(plan.node, lifetimes=lives)),
    "require_safe.lifetimes": lived(
        lambda plan, lives, one: contracts.require_safe(plan.node, lifetimes=lives)
    ),
    "Result.utility.within": utility,
    "Query.utility.within": lambda stream, d: str(stream().query().utility(d).within),
    "automaton.within": matched,
    "synchronised.every": lambda stream, d: str(stream().run(claims=cz.synchronised(d)).claims),
    "delay.by": policy(lambda d: cz.delay(d)),
    "delay.moved": policy(lambda d: cz.delay(0, moved=d)),
    "delay.future": policy(lambda d: cz.delay(0, future=d)),
    "every.future": policy(lambda d: cz.every(1, future=d)),
    "heartbeat.delay": policy(lambda d: cz.heartbeat("1s", delay=d)),
    "heartbeat.future": policy(lambda d: cz.heartbeat("1s", future=d) & cz.delay(0)),
}
"""Lengths of a stream's time."""
IN_CLOCK: dict[str, Use] = {
    "delay.idle": policy(lambda d: cz.delay(0, idle=d)),
    "heartbeat.period": policy(lambda d: cz.heartbeat(d)),
    "heartbeat.idle": policy(lambda d: cz.heartbeat("1s", idle=d)),
    "ingestion_time.every": lambda stream, d: (
        cz.from_rows([{"v": 1}], time=cz.ingestion_time(every=d)).node.policy.period
    ),
    "FeedbackSteps.deadline.clock": lambda stream, d: (
        stream().deadline("5s", clock=d).node.inputs[1].policy.period
    ),
    "RunSteps.query.every": lambda stream, d: _durable(stream(), every=d)._every,
    "RunSteps.query.record": lambda stream, d: _durable(stream(), record=d)._ring.keep,
    "RunSteps.prepare_upgrade.every": lambda stream, d: str(_prepared(stream(), d)),
    "Script.query.every": lambda stream, d: _script(stream()).query(checkpoint=_new_folder(), every=d)._every,
    "TimeMethods.plus_time.duration": lambda stream, d: str(col("at").plus_time(d)),
    "TimeMethods.minus_time.duration": lambda stream, d: str(col("at").minus_time(d)),
    "plus_time.duration": lambda stream, d: str(cz.functions.plus_time("at", d)),
    "minus_time.duration": lambda stream, d: str(cz.functions.minus_time("at", d)),
    "registry.timeout": lambda stream, d: str(cz.registry("http://nowhere", timeout=d)),
    "kafka.timeout": lambda stream, d: str(cz.kafka("nowhere:1", "t", timeout=d)._target),
    "kafka.transaction_timeout": lambda stream, d: str(
        cz.kafka("nowhere:1", "t", transaction_timeout=d)._target
    ),
    "table.reload": lambda stream, d: _reader(cz.table(_rows_now, reload=d)).period,
    "tokens.latency": lambda stream, d: cz.tokens(latency=d).latency,
    "udf.timeout": lambda stream, d: cz.udf(_double, returns="bigint", timeout=d)("v").function.seconds,
}
"""Lengths of the clock's time: a bare number has no unit on any stream."""
MORE: dict[str, Callable[..., Any]] = {
    "tokens.every": lambda d: cz.tokens(every=d).period,
    "FeedbackSteps.impute.budget": lambda d: timed().impute("v", len, budget=d).node.budget,
}
"""Where a plain number counts something else: events, rows."""
REMOTE = {
    "read.kafka.timeout": lambda d: cz.read.kafka(HOST, "t", value=cz.json(SCHEMA), time="v", timeout=d),
    "read.kafka_changes.timeout": lambda d: cz.read.kafka_changes(HOST, "t", SCHEMA, timeout=d),
    "read.debezium.timeout": lambda d: cz.read.debezium(
        servers=HOST, topic="t", schema=SCHEMA, key="id", timeout=d
    ),
    "read.postgres.timeout": lambda d: cz.read.postgres("host=127.0.0.1 port=1", "t", slot="s", timeout=d),
}
"""What asks a server at once."""
ON_SPARK = ("OnSpark.start.", "Pipeline.start.", "start.ahead", "start.lifetimes", "start.record")


def _long(stream: Stream) -> Any:
    return 600 if pa.types.is_integer(stream.node.time) else "10m"


def _other(stream: Stream) -> Stream:
    return stream.select("id", w="v")


def _sums() -> qre.Query:
    return qre.iter(qre.atom(op=col("v")), qre.sum())


def _double(v: int) -> int:
    return 2 * v


def _rows_now() -> pa.Table:
    return pa.table({"id": [1]})


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="caesura-lengths-"))


def _reader(stream: Stream) -> Any:
    return next(node.reader for node in walk(stream.node) if isinstance(node, Source))


def _prepared(stream: Stream, every: Any) -> Any:
    folder = _new_folder() / "state"
    stream.query(checkpoint=folder).run()
    return str(stream.where("v > 0").prepare_upgrade(folder, every=every, take_over=True))


def _script(stream: Stream) -> cz.Script:
    folder = _new_folder()
    return cz.script(f"CREATE SINK o TO parquet '{folder}/o'; INSERT INTO o SELECT * FROM s;", s=stream)


def _durable(stream: Stream, **options: Any) -> Any:
    return stream.query(checkpoint=_new_folder() / "state", **options)


def lengths() -> set[str]:
    """The arguments that are lengths of time, by what their types say."""
    return {
        f"{function.__qualname__}.{name}"
        for function in public_functions().values()
        for name, parameter in inspect.signature(function).parameters.items()
        if re.search(r"\bDuration\b|timedelta|\bLifetime\b", str(parameter.annotation))
        and not function.__qualname__.startswith("Policy.")
    }


def test_every_length_of_time_that_can_be_given_is_tried_here() -> None:
    tried = {*IN_STREAM, *IN_CLOCK, *MORE, *REMOTE}
    assert {name for name in lengths() if not name.startswith(ON_SPARK)} == tried


def refused(use: Callable[[], Any]) -> CaesuraError:
    with pytest.raises(CaesuraError) as told:
        use()
    return told.value


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", sorted(IN_STREAM))
def test_a_length_of_stream_time_means_the_same_in_every_form(name: str) -> None:
    use = IN_STREAM[name]
    assert len({repr(use(timed, form)) for form in FORMS}) == 1
    assert repr(use(timed, "1h")) != repr(use(timed, "60s")) or name in SAME
    for wrong in WRONG:
        refused(lambda wrong=wrong: use(timed, wrong))
    bare = refused(lambda: use(timed, 60))
    assert "a number without a unit" in bare.problem and '"60s"' in bare.remedy
    assert use(numbered, 60) is not None
    for form in FORMS:
        refused(lambda form=form: use(numbered, form))


COARSE = (
    "RunSteps.check.lifetimes",
    "require_safe.lifetimes",
    "RunSteps.bounds.rates",
    "SourceRate.__init__.per",
)
SAME = ("Result.utility.within", "synchronised.every", "adequate.lifetimes", "check.lifetimes", *COARSE)
"""What shows no difference between a minute and an hour here."""


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", sorted(IN_CLOCK))
def test_a_length_of_clock_time_has_a_unit_on_every_stream(name: str) -> None:
    use = IN_CLOCK[name]
    for stream in (timed, numbered):
        assert len({repr(use(stream, form)) for form in FORMS[:: 1 if stream is timed else 5]}) == 1
        for wrong in (*WRONG, 60):
            told = refused(lambda stream=stream, wrong=wrong: use(stream, wrong))
            assert told.remedy, wrong


@pytest.mark.parametrize("name", sorted(MORE))
def test_a_number_of_rows_may_also_be_a_length_of_time(name: str) -> None:
    assert len({repr(MORE[name](form)) for form in FORMS}) == 1
    assert MORE[name](60) != MORE[name]("60s")
    for wrong in WRONG:
        refused(lambda wrong=wrong: MORE[name](wrong))


@pytest.mark.parametrize("name", sorted(REMOTE))
def test_a_time_to_wait_for_a_server_has_a_unit(name: str) -> None:
    for wrong in (*WRONG, 60):
        assert "timeout" in refused(lambda wrong=wrong: REMOTE[name](wrong)).problem, wrong


def test_a_capital_m_may_be_a_month() -> None:
    told = refused(lambda: timed().tumbling("1M"))
    assert told.problem == "the window size: '1M' may be minutes or months."
    assert "'1m'" in told.remedy


def test_a_bare_number_on_a_timestamp_stream_is_told_with_what_to_write() -> None:
    told = refused(lambda: timed().tumbling(60))
    assert told.step == "tumbling" and __file__.rsplit("/")[-1] in str(told)
    assert told.remedy.startswith('Write "60s" for seconds (or us, ms, m, h, d, w), or a timedelta')
