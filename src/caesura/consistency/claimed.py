"""Reading claimed views: all of them at one prefix, from the files that manifests name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from caesura.consistency.claim import Claim
from caesura.consistency.store import Manifest, Store
from caesura.errors import CaesuraError, DataError, closest
from caesura.events import History, Page
from caesura.events.page import NO_NEW_END
from caesura.kernels.hashing import I64
from caesura.plan import here
from caesura.punctuation import INFINITY

OWN = ("kind", "LE", "RE", "RE_new")


@dataclass(frozen=True)
class Claimed:
    """The views of a pipeline at one claim."""

    store: Store
    manifests: tuple[Manifest, ...]
    flaws: tuple[str, ...] = ()
    """What was found wrong behind this claim, such as a manifest torn by a kill."""

    @property
    def claim(self) -> Claim:
        """What all views answer for."""
        return self.manifests[-1].claim

    @property
    def views(self) -> list[str]:
        return list(self.store.about_plan(self.claim.plan)["views"])

    def paths(self, view: str) -> list[str]:
        """The files of a view, for any engine: ``spark.read.parquet(*claimed.paths("total"))``."""
        self._known(view)
        return [str(file) for file in self.store.files(view, self.manifests)]

    def changes(self, view: str) -> pa.Table:
        """The rows of a view as they came: kind, LE, RE, RE_new, payload."""
        self._known(view)
        return self.store.rows(view, self.manifests)

    def history(self, view: str) -> History:
        """A view's state: its rows folded."""
        came = page_of(self.changes(view))
        return History.of([came], _payload(self.store.schema(view, self.claim.plan)))

    def table(self, view: str) -> pa.Table:
        """A view's state as a table with LE and RE in front; a null RE never ends."""
        state = self.history(view).page
        schema = self.store.schema(view, self.claim.plan)
        ends = pa.array(state.re, mask=state.re == INFINITY)
        times = [pa.array(state.le).cast(schema.field("LE").type), ends.cast(schema.field("RE").type)]
        columns = [*times, *state.payload.columns]
        return pa.table(columns, names=["LE", "RE", *state.payload.schema.names])

    def _known(self, view: str) -> None:
        if view not in self.views:
            error = DataError(f"there is no view '{view}'.", remedy=closest(view, self.views))
            raise error.at("read_claimed", here())


def read_claimed(path: str | Path, *, at: int | None = None) -> Claimed:
    """The views of a pipeline at its last claim, or at the claim with a number.

    Files that a claim names must be as they were written; what lies beside them does not count.

    Parameters
    ----------
    path
        The folder that the pipeline writes to.
    at
        The number of a claim; by default the last.

    Returns
    -------
    Claimed
        ``claim``, ``table(view)``, ``history(view)``, ``changes(view)``, ``paths(view)``: all views at one
        prefix.

    See Also
    --------
    from_claimed : a view that a pipeline wrote.
    Pipeline.write : into a folder, with claims.

    Examples
    --------
    >>> import tempfile
    >>> import caesura as cz
    >>> folder = tempfile.mkdtemp()
    >>> _ = cz.pipeline(moves=cz.from_rows([{"t": 1, "n": 2}], time="t")).write(folder)
    >>> claimed = cz.read_claimed(folder)
    >>> claimed.views, claimed.table("moves").to_pylist()
    (['moves'], [{'LE': 1, 'RE': 2, 'n': 2}])
    """
    try:
        return _read(Store(path), at)
    except CaesuraError as error:
        raise error.at("read_claimed", here()) from None


def _read(store: Store, at: int | None) -> Claimed:
    path = store.path
    _ = store.about
    chain = store.chain()
    manifests = [m for m in chain.manifests if at is None or m.claim.number <= at]
    if not manifests or (at is not None and manifests[-1].claim.number != at):
        flaw = f"; {chain.flaws[0]}" if chain.flaws else ""
        known = ", ".join(str(m.claim.number) for m in chain.manifests[-10:]) or "none"
        raise DataError(
            f"'{path}' has no claim{'' if at is None else f' {at}'} that holds{flaw}.",
            remedy=f"The last claims are: {known}. Let the pipeline run on; it goes on from its last claim.",
        )
    store.about_plan(manifests[-1].claim.plan)
    beside = [flaw for flaw in store.flaws(chain) if "written by hand" not in flaw]
    broken = [flaw for flaw in beside if flaw not in chain.flaws]
    if broken:
        raise DataError(
            f"'{path}' is not what was claimed: {broken[0]}.",
            remedy="Write the pipeline anew into an empty folder; `caesura audit` lists all that is wrong.",
        )
    return Claimed(store, tuple(manifests), tuple(chain.flaws))


def page_of(table: pa.Table) -> Page:
    """Stored rows as a page; reminders that a row is final are left out."""
    whole = table.combine_chunks()
    kinds = whole.column("kind").to_numpy()
    whole = whole.filter(pa.array(kinds != "="))
    kinds = kinds[kinds != "="]
    le, re, new = (_ticks(whole.column(name)) for name in OWN[1:])
    payload = whole.select([n for n in whole.schema.names if n not in OWN])
    batches = payload.to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], payload.schema)
    return Page.of(batch, le=le, re=re, re_new=np.where(kinds == "-", new, NO_NEW_END))


def _ticks(column: pa.ChunkedArray) -> I64:
    ticks: I64 = column.cast(pa.int64()).fill_null(INFINITY).to_numpy()
    return ticks


def _payload(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in OWN])
