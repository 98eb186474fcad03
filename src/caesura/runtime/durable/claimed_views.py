"""A pipeline that writes claimed views into a folder, and goes on there, with the same plan or with another.

Each claim says which plan has made the state that it is about. A rebuild ends in a claim on the same prefix
whose files hold the difference between the two histories, so what a reader folds is again one plan's answer:

    claim 4   plan 1   the answer of plan 1 on 200 rows
    claim 5   plan 2   corrections: the answer of plan 2 on the same 200 rows
    claim 6   plan 2   the answer of plan 2 on 250 rows

Where the plan goes on from here instead, a claim names both: no plan alone has made what it is about.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from caesura.consistency import Claim, Synchronised, Tokens
from caesura.consistency.store import Manifest, Store, columns_text
from caesura.consistency.token import is_token, number_of
from caesura.errors import DataError, StreamError
from caesura.events import Item, Page
from caesura.events.chunks import Chunks, SavedJson, json_chunk
from caesura.io.places.lease import Lease
from caesura.io.sinks.rows import row_schema, rows_table
from caesura.plan import Node, walk
from caesura.plan.prune import prune
from caesura.runtime.durable.change import (
    OnChange,
    PlanChange,
    SavedStep,
    answers_of,
    carried_offsets,
    check_choices,
    steps_of,
)
from caesura.runtime.durable.corrections import FinalRows, forms_of
from caesura.runtime.durable.prepared import Prepared, PreparedFolder, PreparedPlan, compacted
from caesura.runtime.durable.preparing import (
    Preparation,
    gone_over,
    nothing_saved,
    nothing_to_prepare,
    prepared_by,
    runs_on_spark,
)
from caesura.runtime.durable.rebuild import (
    GivenOutput,
    ReadAgain,
    columns_of,
    corrected,
    refuse_columns,
    unrepeatable_parts,
)
from caesura.runtime.graph.source_reader import read_on_later
from caesura.runtime.metrics.waiting_line import reading_line
from caesura.runtime.query.pipelines import StateLog, source_labels
from caesura.runtime.query.query import Query
from caesura.runtime.query.stored_plan import pickled

NEVER = 1 << 62
"""So many rows between two tokens: the only one is put where all was read."""


@dataclass(frozen=True)
class ClaimedFolder:
    """A folder of claimed views, and the plan that a start comes with."""

    store: Store
    nodes: Mapping[str, Node]
    about: Mapping[str, Any]
    """What is written about this plan."""
    change: PlanChange
    kind: Literal["same", "renamed", "continue", "rebuild"]
    """What becomes of the plan that made the last claim."""
    manifests: Sequence[Manifest]
    before: GivenOutput
    final_rows: FinalRows

    @staticmethod
    def of(
        nodes: Mapping[str, Node], path: str | Path, on_change: OnChange, final_rows: FinalRows
    ) -> ClaimedFolder:
        """Looks at the folder; refuses a change that was not asked for, and changes nothing."""
        check_choices(on_change, final_rows)
        store, about = Store(path), _about(nodes)
        manifests = store.chain().manifests if store.described else []
        there = store.about if manifests else about
        if there["host"] != about["host"] or ("plan" not in there and there["steps"] != about["steps"]):
            raise DataError(
                f"'{store.path}' holds the views of another pipeline: {', '.join(there['views'])}.",
                remedy="Give a new folder, or the pipeline that wrote this one.",
            )
        then = there.get("plan", about["plan"])
        change = PlanChange.between(_steps(then), _steps(about["plan"]))
        before = GivenOutput(
            _columns_so_far(store, manifests), there.get("forms", {}), _generation(manifests)
        )
        kind: Literal["same", "renamed", "continue", "rebuild"] = "same"
        if there.get("answers", about["answers"]) != about["answers"]:
            views = ", ".join(there["views"])
            other = f"'{store.path}' holds the views of another pipeline ({views})"
            change.refuse(on_change, other, "write into a new folder")
            assert on_change != "refuse"
            refuse_columns(before.other_columns(nodes) if on_change == "continue" else "")
            kind = on_change
        elif set(then) != set(about["plan"]):
            kind = "renamed"
        return ClaimedFolder(store, nodes, about, change, kind, manifests, before, final_rows)

    @property
    def last(self) -> Manifest | None:
        return self.manifests[-1] if self.manifests else None

    @property
    def prepared(self) -> PreparedFolder:
        """Where a new plan reads beforehand."""
        return PreparedFolder(self.store.path, "_prepared")

    @property
    def plans(self) -> tuple[int, ...]:
        """The plans that will have made the state of the next claim."""
        if self.last is None:
            return (1,)
        then = self.last.claim.plans
        following = {
            "same": then,
            "renamed": (*then[:-1], then[-1] + 1),
            "continue": (*then, then[-1] + 1),
            "rebuild": (then[-1] + 1,),
        }
        return following[self.kind]

    def begin(self) -> None:
        """Makes the folders, says what the plan is, and takes them for this start."""
        self.store.make_folders(self.nodes, self.before.generation)
        if self.last is None or self.kind != "same":
            self.store.describe(self.plans[-1], self.about, pickled(self.nodes))
        self.store.attach("")
        self.store.abort(0)


def views_change(nodes: Mapping[str, Node], store: Store) -> PlanChange:
    """What would become of the steps of a folder's pipeline under another plan."""
    about = _about(nodes)
    return PlanChange.between(_steps(store.about.get("plan", about["plan"])), _steps(about["plan"]))


def write_views(folder: ClaimedFolder, mode: Tokens | Synchronised) -> Generator[Claim, None, None]:
    """Runs all views into a folder, a claim at a time; goes on behind the last claim that is there.

    What is to be rebuilt is read again at once, and refused where that cannot be; it is written with the
    first claim.
    """
    made = _Rebuild.of(folder) if folder.kind == "rebuild" else None
    return _writing(folder, mode, made)


def _writing(
    folder: ClaimedFolder, mode: Tokens | Synchronised, made: _Rebuild | None
) -> Generator[Claim, None, None]:
    folder.begin()
    store, nodes, last = folder.store, folder.nodes, folder.last
    query = Query(prune(nodes), claims=replace(mode, saves=True, release="consistent"))
    read_on_later(query.parts.readers.values())
    log = StateLog(store.path / "_state", {cell.node.fingerprint: cell.label for cell in query.graph.cells})
    if made is not None:
        last = made.commit()
    elif last is not None and folder.kind != "same":
        last = _carry_on(folder, last)
    if last is not None:
        query.restore(log.load(last.state))
        log.sweep()
        if folder.kind != "same":
            yield last.claim
    generation = 1 if last is None else last.claim.generation
    while True:
        going = query.step()
        for found, chunks in query.saved():
            claim = replace(found, plans=folder.plans, generation=generation)
            tables = {
                name: rows_table(_up_to(query, name, claim), node.schema, node.time)
                for name, node in nodes.items()
            }
            last = _commit(store, claim, tables, log.save(claim.number, chunks), last)
            yield claim
        if not going:
            return


def _carry_on(folder: ClaimedFolder, last: Manifest) -> Manifest:
    """Has the state that was saved belong to the steps of this plan: a claim on the same prefix says so."""
    names, change, then = folder.change.renamed, folder.change, last.claim
    log = StateLog(folder.store.path / "_state", {})
    chunks = log.load(last.state)
    change.refuse_waiting(chunks)
    log.carry(names, [step.before for step in change.steps if step.fate == "dropped"])
    moved = carried_offsets(log.whole, names)
    saved = SavedJson("claims").read(moved)
    for part in ("prefix", "passed"):
        saved[part] = {names[n]: value for n, value in saved[part].items() if n in names}
    prefix = {names[n]: value for n, value in then.prefix.items() if n in names}
    output = {view: then.output.get(view, 0) for view in folder.nodes}
    claim = replace(then, number=then.number + 1, prefix=prefix, output=output, plans=folder.plans)
    saved |= {"number": claim.number, "given": output}
    state = log.save(claim.number, {"offsets": moved["offsets"], "claims": json_chunk(saved)})
    return _commit(folder.store, claim, {}, state, last)


def _commit(
    store: Store, claim: Claim, tables: Mapping[str, Any], state: tuple[str, ...], last: Manifest | None
) -> Manifest:
    """Writes what views gave, and the claim that makes it count."""
    file = f"claim-{claim.number:08d}.parquet"
    files = {
        name: (store.write_view(name, file, table, claim.generation),) if table.num_rows else ()
        for name, table in tables.items()
    }
    made = Manifest(claim, files, state, "" if last is None else last.check)
    store.commit(made)
    return made


@dataclass(frozen=True)
class _ViewsAgain:
    """What a new plan gives on what an old one has claimed: from where it was prepared, or from the start."""

    claim: Claim
    chunks: Chunks
    """What of the state is not in what was prepared."""
    items: Mapping[str, list[Item]]
    """What views have given since."""
    found: Prepared
    rows: int
    """How many rows were read."""

    @staticmethod
    def of(folder: ClaimedFolder, query: Query, *, tag: str = "") -> _ViewsAgain:
        """Reads the sources again, up to where the last claim has read them."""
        assert folder.last is not None
        names = {now: was for was, now in folder.change.renamed.items()}
        then = {label: folder.last.claim.prefix.get(names.get(label, label)) for label in query.parts.readers}
        positions = {
            label: {str(lane): at for lane, at in prefix.offsets.items()}
            for label, prefix in then.items()
            if prefix is not None
        }
        begun = PreparedPlan("", 0, {name: folder.about[name] for name in ("plan", "answers")})
        found = folder.prepared.found(begun, positions, _labels(query), tag=tag)
        found.restore(query)
        again = [
            ReadAgain(reader, positions.get(label, {}), over=(was := then[label]) is not None and was.closed)
            for label, reader in query.parts.readers.items()
        ]
        rows = sum(some.rows for some in again)
        with reading_line(query, "reading again", rows):
            query.runner.replay()
        if query.claiming is not None and query.claiming.ahead:
            query.token()
            query.runner.take_queued()
        for some in again:
            some.check()
        saved = query.saved()
        claim = saved[-1][0] if saved else Claim.from_json(found.plan.claim or {})
        chunks: Chunks = {name: data for _, made in saved for name, data in made.items()}
        items = {name: [i for i in query.take(name) if not is_token(i)] for name in query.outputs}
        return _ViewsAgain(claim, chunks, items, found, rows)


def prepare_views(nodes: Mapping[str, Node], path: str | Path, *, take_over: bool = False) -> Preparation:
    """Reads beside the pipeline that runs what it has claimed; a rebuild then has little to read."""
    store = Store(path)
    if not store.described:
        raise nothing_saved(store.path)
    if store.about["host"] != "embedded":
        raise runs_on_spark(store.path)
    folder = ClaimedFolder.of(nodes, path, "rebuild", "refuse")
    if folder.kind != "rebuild":
        raise nothing_to_prepare(folder.store.path)
    query = _views_query(folder)
    with query, Lease.take(folder.prepared.place, take_over=take_over) as lease:
        made = _ViewsAgain.of(folder, query, tag=f"-{lease.number}")
        last = folder.store.chain().last
        assert last is not None and folder.last is not None
        lease.check()
        if last.claim.plans != folder.last.claim.plans:
            folder.prepared.clear()
            raise gone_over(folder.store.path)
        number, nodes = made.found.plan.number + 1, query.outputs
        state = made.found.state.save(number, made.chunks)
        plan = replace(made.found.plan, number=number, state=state, claim=made.claim.to_json())
        items = {name: compacted(some, nodes[name].schema) for name, some in made.items.items()}
        folder.prepared.sweep(folder.prepared.save(plan, items))
    return prepared_by(query, made.rows)


def _views_query(folder: ClaimedFolder) -> Query:
    """A query of all views, with one token where all was read."""
    query = Query(prune(folder.nodes), claims=Tokens(every=NEVER, saves=True, release="consistent"))
    read_on_later(query.parts.readers.values())
    if why := unrepeatable_parts(query.parts):
        raise StreamError(
            f"what the pipeline has claimed cannot be rebuilt: {why}.", remedy="Write into a new folder."
        )
    return query


def _labels(query: Query) -> dict[str, str]:
    return {cell.node.fingerprint: cell.label for cell in query.graph.cells}


@dataclass(frozen=True)
class _Rebuild:
    """The state and the history of a new plan on what an old one has read; nothing is written of it yet."""

    folder: ClaimedFolder
    claim: Claim
    prepared: Mapping[str, bytes]
    """The state that was prepared, by the labels of steps."""
    chunks: Chunks
    labels: Mapping[str, str]
    tables: Mapping[str, Any]

    @staticmethod
    def of(folder: ClaimedFolder) -> _Rebuild:
        """Reads what was not prepared."""
        query = _views_query(folder)
        new = folder.final_rows == "new_generation"
        refuse_columns("" if new else folder.before.other_columns(query.outputs))
        with query, folder.prepared.taken(take_over=False):
            made = _ViewsAgain.of(folder, query)
            before = folder.prepared.history(made.found.plan)
        items = {name: [*before.get(name, ()), *some] for name, some in made.items.items()}
        return _Rebuild._correcting(folder, made, _labels(query), items)

    @staticmethod
    def _correcting(
        folder: ClaimedFolder,
        made: _ViewsAgain,
        labels: Mapping[str, str],
        items: Mapping[str, Sequence[Item]],
    ) -> _Rebuild:
        """Makes corrections of a history, or lets it begin anew in another generation."""
        assert folder.last is not None
        nodes, then = prune(folder.nodes), folder.last.claim
        own = [m for m in folder.manifests if m.claim.generation == then.generation]
        held = {view: row_schema(node.schema, node.time).empty_table() for view, node in nodes.items()}
        for view in held:
            with_it = [m for m in own if view in m.claim.output]
            if with_it:
                held[view] = folder.store.rows(view, with_it)
        pages = corrected(held.__getitem__, nodes, items, folder.before, folder.final_rows)
        given: Mapping[str, Sequence[Item]] = items if pages is None else pages
        tables = {
            name: rows_table([i for i in given.get(name, ()) if isinstance(i, Page)], node.schema, node.time)
            for name, node in nodes.items()
        }
        before = (
            {view: count for m in own for view, count in m.claim.output.items()} if pages is not None else {}
        )
        output = {name: before.get(name, 0) + _changes(given.get(name, ())) for name in nodes}
        claim = replace(
            made.claim,
            number=then.number + 1,
            output=output,
            plans=folder.plans,
            generation=then.generation + (pages is None),
        )
        whole = made.found.state.whole
        changed = {name: data for name, data in made.chunks.items() if data is not None}
        saved = SavedJson("claims").read({**whole, **changed})
        times = [] if then.time is None else [then.time]
        told = json_chunk({**saved, "number": claim.number, "given": output, "times": times})
        return _Rebuild(folder, claim, whole, {**made.chunks, "claims": told}, labels, tables)

    def commit(self) -> Manifest:
        """Makes the new plan count, with all that it corrects."""
        store = self.folder.store
        store.make_folders(self.folder.nodes, self.claim.generation)
        log = StateLog(store.path / "_state", self.labels)
        log.begin_anew(self.prepared)
        state = log.save(self.claim.number, self.chunks)
        made = _commit(store, self.claim, self.tables, state, self.folder.last)
        self.folder.prepared.clear()
        return made


def _changes(items: Sequence[Item]) -> int:
    return sum(len(item) for item in items if isinstance(item, Page) and not item.settled)


def _about(nodes: Mapping[str, Node]) -> dict[str, Any]:
    """What a folder says of a plan."""
    pruned = prune(nodes)
    cells = Query(pruned).graph.cells
    return {
        "views": {n: columns_text(row_schema(node.schema, node.time)) for n, node in nodes.items()},
        "host": "embedded",
        "sources": list(source_labels(nodes)),
        "steps": [f"{node.kind} ({', '.join(node.schema.names)})" for node in walk(*nodes.values())],
        "plan": {label: asdict(step) for label, step in steps_of(cells).items()},
        "answers": answers_of(nodes),
        "columns": columns_of(nodes),
        "forms": forms_of(nodes),
    }


def _steps(saved: Mapping[str, Any]) -> dict[str, SavedStep]:
    return {label: SavedStep(**step) for label, step in saved.items()}


def _columns_so_far(store: Store, manifests: Sequence[Manifest]) -> dict[str, str]:
    """The columns of all views of which the last generation holds rows, whichever plan gave them."""
    plans = dict.fromkeys(m.claim.plan for m in manifests if m.claim.generation == _generation(manifests))
    found: dict[str, str] = {}
    for plan in plans:
        found |= store.about_plan(plan).get("columns", {})
    return found


def _generation(manifests: Sequence[Manifest]) -> int:
    return manifests[-1].claim.generation if manifests else 1


def _up_to(query: Query, view: str, claim: Claim) -> list[Item]:
    """A view's items since the claim before; those behind this claim stay where they are."""
    assert query.claiming is not None
    found: list[Item] = []
    ready = query.claiming.views[view].ready
    while ready:
        item = ready.popleft()
        if is_token(item) and number_of(item) == claim.number:
            break
        found.append(item)
    return found
