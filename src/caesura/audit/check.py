"""The audit itself: every claim of a folder, or of a run, against the query on its prefix."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import pyarrow as pa

from caesura.audit.evaluate import Evaluation
from caesura.audit.progress import Known
from caesura.audit.sources import given_by
from caesura.audit.values import NotAuditedError
from caesura.consistency import Claim, broken_order
from caesura.consistency.claimed import Claimed, page_of
from caesura.consistency.reading import ClaimedReader
from caesura.consistency.store import Manifest, Store, Written
from caesura.errors import CaesuraError, DataError, StreamError
from caesura.events import History
from caesura.events.history import comparable
from caesura.io.places import Place
from caesura.io.sources.source import Source
from caesura.misuse import renamed
from caesura.plan import Node
from caesura.punctuation import Intent
from caesura.runtime.query.pipelines import source_labels
from caesura.testing.oracles.rows import Rows
from caesura.waiting import TaskProgress, waiting

Bag = Counter[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class AuditFinding:
    """One view at one claim: right, wrong and how, or false or not audited and why."""

    claim: Claim
    view: str
    missing: tuple[Any, ...] = ()
    extra: tuple[Any, ...] = ()
    why: str = ""
    """Why it could not be recomputed, or why there is nothing to recompute: the claim is false."""

    @property
    def right(self) -> bool:
        return not (self.missing or self.extra or self.why)

    def __str__(self) -> str:
        head = f"claim {self.claim.number}, {self.view}: "
        if self.why:
            return f"{head}{self.why}"
        if self.right:
            return f"{head}right"
        lines = [f"{head}WRONG for {len(self.missing) + len(self.extra)} rows"]
        lines += [f"    only the query on the prefix has {row}" for row in self.missing[:3]]
        lines += [f"    only the view has {row}" for row in self.extra[:3]]
        return "\n".join(lines)


@dataclass
class AuditReport:
    """What an audit found."""

    findings: list[AuditFinding] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        return not self.flaws and bool(self.findings) and all(f.right for f in self.findings)

    @property
    def wrong(self) -> list[AuditFinding]:
        return [f for f in self.findings if not f.right]

    def __str__(self) -> str:
        claims = {f.claim.number for f in self.findings}
        lines = [f"{flaw}" for flaw in self.flaws] + [str(f) for f in self.wrong]
        good = sum(f.right for f in self.findings)
        lines.append(
            f"{len(claims)} claims, {len(self.findings)} states: {good} right, {len(self.wrong)} not"
        )
        return "\n".join(lines)


@renamed(most="limit")
def audit(
    path: str | Path,
    *,
    plan: Mapping[str, Node] | Literal["stored"] | None = None,
    earlier: Mapping[int, Mapping[str, Node]] | None = None,
    limit: int | None = None,
) -> AuditReport:
    """Audits a folder of claimed views; ``limit`` is how many claims are recomputed, spread evenly.

    ``plan`` is the pipeline, or "stored" for the one that the folder has. That one is a pickle, and reading
    it runs what is in it: ask for it only where you trust whoever can write to the folder. Each claim is
    recomputed with the plan that made it: where the pipeline has had others, ``earlier`` is what they were,
    by their numbers, unless they are to be taken as stored.
    """
    store = Store(path)
    _ = store.about
    chain = store.chain()
    report = AuditReport(flaws=store.flaws(chain))
    now = 1 if chain.last is None else chain.last.claim.plan
    given = dict(earlier or {}) if plan == "stored" else {**(earlier or {}), now: plan or _no_plan(store)}
    some = spread(chain.manifests, limit)
    report.flaws += _miscounted(store, chain.manifests)
    for number in dict.fromkeys(manifest.claim.plan for manifest in chain.manifests):
        asked = [manifest for manifest in some if manifest.claim.plan == number]
        if number in given or plan == "stored":
            nodes = dict(given.get(number) or _stored(store, number))
            _audit_plan(store, chain.manifests, asked, nodes, report)
        else:
            report.findings += [_not_given(manifest.claim) for manifest in asked]
    if not chain.manifests:
        report.flaws.append("there is no claim that holds")
    return report


def _counted(some: Iterable[T], progress: TaskProgress) -> Iterator[T]:
    """The same, each counted when it is done."""
    for one in some:
        yield one
        progress.done += 1


def _not_given(claim: Claim) -> AuditFinding:
    told = f"it is by plan {claim.plan}, which was not given: --plan-of {claim.plan}=FILE.py:NAME"
    return AuditFinding(claim, "all", why=f"not audited: {told}")


def _audit_plan(
    store: Store,
    manifests: Sequence[Manifest],
    asked: Sequence[Manifest],
    nodes: dict[str, Node],
    report: AuditReport,
) -> None:
    """Holds the claims of one plan against it."""
    states, consumers = [], dict[str, Consumer]()
    files: dict[int, dict[str, list[str]]] = {}
    for manifest in asked:
        seen = Claimed(store, tuple(manifests[: manifests.index(manifest) + 1]))
        files[manifest.claim.number] = _files(seen)
        try:
            views = {view: seen.history(view) for view in nodes}
            states.append((manifest.claim, views))
            for view, state in views.items():
                if manifest.claim.generation != manifests[-1].claim.generation:
                    continue  # nobody reads it any more
                if view in store.about["views"] and view not in consumers:
                    consumers[view] = Consumer(store, view)
                if view in consumers:
                    report.flaws += consumers[view].misread(manifest.claim, state)
        except (CaesuraError, OSError) as error:
            report.flaws.append(f"claim {manifest.claim.number} cannot be read: {error}")
    with waiting("recomputing claims", len(states), "claims") as progress:
        report.findings += audit_states(nodes, _counted(states, progress), files)


def _miscounted(store: Store, manifests: Sequence[Manifest]) -> list[str]:
    """Claims that say of a view that it has given other rows than their files hold."""
    found: list[str] = []
    given: dict[tuple[int, str], int] = {}
    plans = {m.claim.plan for m in manifests}
    columns = {(p, view): store.schema(view, p) for p in plans for view in store.about_plan(p)["views"]}
    for manifest in manifests:
        claim = manifest.claim
        for view in (view for plan, view in columns if plan == claim.plan):
            at, folder = (claim.generation, view), store.folder_of(claim.generation) / view
            files = manifest.files.get(view, ())
            given[at] = given.get(at, 0) + sum(_changes(folder, columns[claim.plan, view], w) for w in files)
            if (claimed := claim.output.get(view)) != given[at]:
                told = f"claim {claim.number} says that '{view}' has given {claimed} rows"
                found.append(f"{told}; its files hold {given[at]}")
    return found


def _changes(folder: Place, schema: pa.Schema, written: Written) -> int:
    """How many inserts and retracts a file holds; reminders that a row is final are none."""
    import pyarrow.parquet as pq

    file = folder / written.file
    if not file.exists():
        return written.rows  # that it is missing is reported already
    return len(page_of(pq.read_table(file.open(), schema=schema)))


class Consumer:
    """A view as a pipeline reads it that goes on from it: its rows, and where claims stand among them."""

    def __init__(self, store: Store, view: str) -> None:
        self.view = view
        reader = ClaimedReader(store, view)
        numbers = [m.claim.number for m in reader.manifests()]
        self.breaks = dict(zip(numbers, reader.claims(), strict=True))
        batches = [raw.batch for raw in reader.read_between({})]
        self.rows = pa.Table.from_batches(batches, reader.schema)

    def misread(self, claim: Claim, wanted: History) -> list[str]:
        """What it takes for the state of a claim, where that is another one."""
        at, named = self.breaks[claim.number]
        got = History.of([page_of(self.rows.slice(0, at))], wanted.schema)
        if got == wanted and named == {f"{self.view}/{source}": p for source, p in claim.prefix.items()}:
            return []
        claimed = f"takes its first {at} rows for the state of claim {claim.number}"
        return [f"a pipeline that reads '{self.view}' {claimed}"]


def spread(claims: Sequence[Any], limit: int | None) -> list[Any]:
    """Some claims from first to last, the last always among them."""
    if limit is None or len(claims) <= limit:
        return list(claims)
    step = (len(claims) - 1) / max(1, limit - 1)
    return [claims[round(i * step)] for i in range(limit - 1)] + [claims[-1]]


def _files(seen: Claimed) -> dict[str, list[str]]:
    """The files that each source has read up to a claim, epoch by epoch; another plan names them anew."""
    found: dict[str, list[str]] = {}
    for manifest in seen.manifests:
        if manifest.claim.plan != seen.claim.plan:
            continue
        for source, some in manifest.read.items():
            found.setdefault(source, []).extend(some)
    return found


def audit_states(
    nodes: Mapping[str, Node],
    states: Iterable[tuple[Claim, Mapping[str, History]]],
    files: Mapping[int, Mapping[str, Sequence[str]]] | None = None,
) -> list[AuditFinding]:
    """Holds the state of each view at each claim against the query on the claimed prefix.

    ``files`` names, per claim and source, the files that make up the prefix, where offsets do not.
    """
    labels = {node.fingerprint: label for label, node in source_labels(nodes).items()}
    findings: list[AuditFinding] = []
    claims: list[Claim] = []
    for claim, views in states:
        claims.append(claim)

        def given(node: Node, claim: Claim = claim) -> Known:
            if not isinstance(node, Source):
                raise NotAuditedError(
                    f"the rows of '{node.step}' were fed by hand, and cannot be read again.",
                    remedy="Audit a pipeline that reads its rows itself.",
                )
            label = labels[node.fingerprint]
            if label not in claim.prefix:
                raise NotAuditedError(
                    f"the claim knows no source '{label}': another plan has made it.",
                    remedy=f"Give plan {claim.plan} as it was.",
                )
            return given_by(node, claim.prefix[label], (files or {}).get(claim.number, {}).get(label))

        whole = Evaluation(given)
        for view, node in nodes.items():
            if len(claim.plans) > 1:
                findings.append(AuditFinding(claim, view, why=f"not audited: {_mixed(claim)}"))
                continue
            try:
                findings.append(compare(claim, view, node, whole.of(node).rows, views[view]))
            except NotAuditedError as error:
                findings.append(AuditFinding(claim, view, why=f"not audited: {error}"))
            except StreamError as error:
                findings.append(AuditFinding(claim, view, why=f"FALSE: {error}"))
            except CaesuraError as error:  # such as a stream that can be read once
                findings.append(AuditFinding(claim, view, why=f"not audited: {error}"))
    back = broken_order(claims)
    if back is not None:
        findings.append(AuditFinding(back, "all", why="its prefix takes back part of the one before"))
    return findings


def _mixed(claim: Claim) -> str:
    """Why nothing tells what a state should be that several plans have made."""
    plans = ", then ".join(map(str, claim.plans))
    return f"it is by plans {plans}, each on what it has read (on_change='continue'), and by none alone"


def compare(claim: Claim, view: str, node: Node, wanted: Rows, got: History) -> AuditFinding:
    """A view's state against what it must be.

    Feedback may have let rows go, or shown some before they were final, and only those that it speaks of.
    """
    names = node.schema.names
    want: Bag = Counter((le, re, tuple(comparable(p[n]) for n in names)) for le, re, p in wanted)
    have: Bag = got.bag
    if claim.covers == "before" and claim.time is not None:
        want, have = _before(want, claim.time), got.before(claim.time)
    missing, extra = want - have, have - want
    early = [m.pattern for m in claim.under if m.intent is Intent.DEMANDED]
    for rows, let_go in ((missing, [m.pattern for m in claim.under]), (extra, early)):
        for row in list(rows):
            shown = {**dict(zip(names, row[2], strict=True)), "time": row[0], "LE": row[0], "RE": row[1]}
            if any(set(p.attributes) <= set(shown) and p.matches_row(shown) for p in let_go):
                del rows[row]
    return AuditFinding(claim, view, _shown(missing), _shown(extra))


def _before(rows: Bag, t: int) -> Bag:
    """The part of a state that lies before a time."""
    cut: Bag = Counter()
    for (le, re, row), n in rows.items():
        if le < t:
            cut[(le, min(re, t), row)] += n
    return cut


def _shown(rows: Bag) -> tuple[Any, ...]:
    return tuple(sorted(rows.elements(), key=str))


def _no_plan(store: Store) -> NoReturn:
    raise DataError(
        f"the audit of '{store.path}' was given no plan.",
        remedy="Give the pipeline: plan=pipeline.nodes, or --flow flow.py:NAME. Or plan='stored', or "
        "--stored-plan, for the one in the folder: a pickle, so only where you trust who can write there.",
    )


def _stored(store: Store, number: int) -> dict[str, Node]:
    file = store.stored_plan(number)
    now = number == store.plan_now
    give = "--flow flow.py:NAME" if now else f"--plan-of {number}=flow.py:NAME"
    if not file.exists():
        told = "no plan" if now else f"no plan {number}"
        raise DataError(
            f"'{store.path}' holds {told} that could be written down.",
            remedy=f"Give the pipeline: caesura audit PATH {give}.",
        )
    try:
        made: dict[str, Node] = pickle.loads(file.read_bytes())
    except (pickle.UnpicklingError, AttributeError, ImportError, EOFError) as error:
        raise DataError(
            f"the plan in '{file}' cannot be read: {error}.",
            remedy=f"Give the pipeline: caesura audit PATH {give}.",
        ) from None
    return made
