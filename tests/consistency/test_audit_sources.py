"""Sources read again: lateness, lanes, corrections and promises, in any batches, under every mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Claim, Stream, col, qre
from caesura.audit import AuditFinding, audit_states
from caesura.consistency import Mode
from caesura.consistency.token import is_token
from caesura.events import History, Item
from caesura.io import Reader
from caesura.io.ingress.policy import Policy
from caesura.io.ingress.shape import Shape
from caesura.io.sources.source import Source
from caesura.plan import Raw
from caesura.runtime import Query, Shuffled

EXAMPLES = examples(8)
PLAIN = pa.schema([("t", pa.int64()), ("end", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
CHANGES = PLAIN.append(pa.field("kind", pa.string())).append(pa.field("new", pa.int64()))
TOLD = PLAIN.append(pa.field("punct", pa.string()))


@dataclass(frozen=True)
class Lanes(Reader):
    """Batches of several lanes, in the order in which they are read."""

    schema: pa.Schema
    batches: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]
    lanes: int = 1
    punctuates = False

    @property
    def key(self) -> str:
        return repr(self.batches)

    def read(self, offsets: Mapping[int, int]) -> Iterator[Raw]:
        at: dict[int, int] = {}
        for lane, rows in self.batches:
            begin, end = at.get(lane, 0), at.get(lane, 0) + len(rows)
            at[lane] = end
            first = max(begin, offsets.get(lane, 0))
            if first < end:
                yield Raw(lane, first, pa.RecordBatch.from_pylist(list(rows[first - begin :]), self.schema))

    def describe(self) -> str:
        return "lanes"


def rows(data: st.DataObject, form: str) -> list[dict[str, Any]]:
    """Rows with late ones, malformed ones, some that never end, and corrections or punctuation."""
    out: list[dict[str, Any]] = []
    now = 0
    for _ in range(data.draw(st.integers(1, 14))):
        now += data.draw(st.integers(0, 4))
        t = max(0, now - data.draw(st.sampled_from((0, 0, 0, 1, 3, 7))))
        span = data.draw(st.sampled_from((1, 3, 8, 0, None)))
        row = {"t": t, "end": None if span is None else t + span, "k": data.draw(st.integers(0, 1)), "v": now}
        past = data.draw(st.sampled_from((1, 1, 2)))
        if form == "changes":
            out.append({**row, "kind": "+"})
            if past == 2 and row["end"] != t:
                out.append({**row, "kind": "-", "new": data.draw(st.integers(t, t + 5))})
        elif form == "in data" and past == 2:
            said = data.draw(st.sampled_from((f"time < {max(0, now - 3)}", "k = 1, time < 9", "k = 0")))
            out.append({"punct": said})
        else:
            out.append(row)
    return out


def source(data: st.DataObject) -> Source:
    form = data.draw(st.sampled_from(("plain", "plain", "changes", "in data")))
    lanes = 1 if form == "in data" else data.draw(st.sampled_from((1, 1, 2)))
    batches = []
    todo = rows(data, form)
    while todo:
        size = data.draw(st.integers(1, 5))
        batches.append((data.draw(st.integers(0, lanes - 1)), todo[:size]))
        todo = todo[size:]
    policy: Policy = cz.delay(data.draw(st.integers(0, 4)), every=data.draw(st.sampled_from((1, 1, 3))))
    late = data.draw(st.sampled_from(("reject", "reject", "adjust"))) if form != "changes" else "reject"
    shape, schema = Shape.of(time="t", end="end"), PLAIN
    if form == "changes":
        shape, schema = Shape.of(time="t", end="end", kind="kind", new_end="new"), CHANGES
    if form == "in data":
        policy = cz.in_data("punct") & (policy if data.draw(st.booleans()) else cz.at_end())
        schema = TOLD
    return Source(reader=Lanes(schema, batches, lanes), shape=shape, policy=policy, late=late)  # type: ignore[arg-type]


def plan(read: Stream, other: Stream, name: str) -> Stream:
    match name:
        case "itself":
            return read
        case "filtered":
            return read.where(col("k") == 1)
        case "totals":
            return read.group_by("k").totals(n=cz.count(), s=cz.sum("v"))
        case "windows":
            return read.group_by("k").hopping(6, every=3).agg(n=cz.count())
        case "joined":
            return read.join(other.select("k", w=col("v")), on="k", how="left")
    return Stream(qre.over(read.select("k", "v"), RUNNING))


RUNNING = qre.iter1(
    qre.atom(op=col("v"), items=qre.items(pa.schema([("k", pa.int64()), ("v", pa.int64())]))), qre.sum()
)
PLANS = ("itself", "filtered", "totals", "windows", "joined", "qre")
MODES: list[Mode] = [
    cz.tokens(every=2),
    cz.tokens(every=3, saves=True),
    cz.tokens(every=2, sync_group="none"),
]
MODES += [cz.synchronised(3), cz.heeding(), cz.draining(), cz.tokens()]


def audited(stream: Stream, mode: Mode, seed: int) -> list[AuditFinding]:
    done = stream.run(claims=mode, schedule=Shuffled(seed))
    return audit_states({"out": stream.node}, [(c, {"out": done.at(c)}) for c in done.claims])


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PLANS)
def test_every_claim_over_any_source_passes_the_audit(name: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        read, other = source(data), source(data)
        stream = plan(Stream(read), Stream(other), name)
        mode = data.draw(st.sampled_from(MODES))
        for finding in audited(stream, mode, data.draw(st.integers(0, 9))):
            assert finding.right, (
                f"{mode}\n{read.reader}\n{read.policy} {read.late}\n{finding.claim}\n{finding}"
            )

    holds()


@pytest.mark.parametrize("mode", [cz.tokens(every=2), cz.heeding(), cz.draining()], ids=str)
def test_claims_over_tables_pass_the_audit(mode: Mode) -> None:
    events = [{"ts": n, "id": n % 6} for n in range(9)]
    read = cz.from_rows(events, time="ts", punctuate=cz.delay(2), batch_size=2, name="events")
    names = cz.table([{"id": 3, "name": "Ada"}, {"id": 4, "name": "Bob"}], name="names")
    met = read.join(names, on="id", how="full").join(cz.table([{"id": 4, "w": 1}]), on="id", how="left")
    findings = audited(met.latest("id"), mode, 1)
    assert findings and all(finding.right for finding in findings), list(map(str, findings))


def ended(
    stream: Stream, mode: Mode, seed: int
) -> tuple[list[Item], list[tuple[Claim, int, dict[str, bytes]]]]:
    """What comes out, and per claim how much had come and what a restart needs."""
    query = Query({"out": stream.node}, claims=mode, schedule=Shuffled(seed))
    came: list[Item] = []
    kept: dict[str, bytes] = {}
    places = []
    while query.step():
        came += [item for item in query.take("out") if not is_token(item)]
        for claim, chunks in query.saved():
            kept = {n: d for n, d in {**kept, **chunks}.items() if d is not None}
            places.append((claim, len(came), dict(kept)))
    return came, places


@pytest.mark.parametrize("mode", [cz.tokens(every=3), cz.synchronised(4)], ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_a_restart_lands_on_its_claim_over_any_source(name: str, mode: Mode) -> None:
    saving = replace(mode, saves=True, release="consistent")  # type: ignore[call-arg]

    @settings(
        max_examples=EXAMPLES // 2, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        stream = plan(Stream(source(data)), Stream(source(data)), name)
        seed = data.draw(st.integers(0, 9))
        came, places = ended(stream, saving, seed)
        wanted = History.of(came, stream.schema)
        for claim, seen, chunks in places[:-1]:
            again = Query({"out": stream.node}, claims=saving, schedule=Shuffled(seed + 1))
            again.restore(chunks)
            again.run()
            rest = [item for item in again.take("out") if not is_token(item)]
            assert History.of([*came[:seen], *rest], stream.schema) == wanted, str(claim)
            assert all(later.follows(claim) for later in again.claims)

    holds()


def row(t: int, k: int = 0, **more: Any) -> dict[str, Any]:
    return {"t": t, "end": t + 8, "k": k, "v": t, **more}


KEPT = {
    "punctuation inside of a batch": Lanes(
        TOLD, [(0, [row(0), {"punct": "time < 5"}]), (0, [{"punct": "time < 10"}, row(13), row(14)])]
    ),
    "a batch of late rows alone": Lanes(
        PLAIN, [(0, [row(12)]), (0, [row(1)]), (0, [row(15)]), (0, [row(16)])]
    ),
    "a retract that waits for its insert": Lanes(
        CHANGES,
        [(0, [row(1, kind="+"), row(9, kind="-", new=9)]), (0, [row(9, kind="+"), row(12, kind="+")])],
    ),
}
"""Sources over which a claim was once false: its offsets were not those of the rows that had entered."""


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("what", KEPT)
def test_kept_sources_make_no_false_claim(what: str, mode: Mode) -> None:
    reader = KEPT[what]
    changes = {"kind": "kind", "new_end": "new"} if reader.schema is CHANGES else {}
    policy = cz.in_data("punct") & cz.delay(2) if reader.schema is TOLD else cz.delay(2)
    shape = Shape.of(time="t", end="end", **changes)  # type: ignore[arg-type]
    stream = Stream(Source(reader=reader, shape=shape, policy=policy))
    for seed in range(4):
        findings = audited(stream, mode, seed)
        assert findings
        assert [str(f) for f in findings if not f.right] == []
