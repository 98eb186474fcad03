"""Modules of every kind and parameter set, each beside the text that it must give for a window.

Every module writes down what it was given: members in their order, its window, its parameter. So whatever
it is told wrongly, or in another order, shows in its result.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa

from caesura.testing.oracles.rows import Rows, place
from caesura.udm import Event, Module, Use, uda, udo

BOTH = {"v": "bigint", "w": "bigint"}


@dataclass
class Pair:
    """Two columns."""

    v: int
    w: int


class NamedPair(NamedTuple):
    """The same."""

    v: int
    w: int


class TypedPair(TypedDict):
    """The same."""

    v: int
    w: int


class Given(NamedTuple):
    """How a module asks for its members: an annotation, or the columns that it takes."""

    annotation: Any
    takes: dict[str, str] | None
    columns: int
    events: bool = False


VIEWS = {
    "values": Given(list[int], None, 1),
    "any": Given(list, None, 1),
    "taken": Given(inspect.Parameter.empty, {"v": "bigint"}, 1),
    "dicts": Given(inspect.Parameter.empty, BOTH, 2),
    "dict": Given(list[dict[str, int]], BOTH, 2),
    "rows": Given(list[Pair], None, 2),
    "named": Given(list[NamedPair], None, 2),
    "typed": Given(list[TypedPair], None, 2),
    "events": Given(list[Event[int]], None, 1, True),
    "row events": Given(list[Event[Pair]], None, 2, True),
    "dict events": Given(list[Event], BOTH, 2, True),
    "array": Given(np.ndarray, None, 1),
    "arrays": Given(np.ndarray, BOTH, 2),
    "frame": Given(pd.DataFrame, None, 2),
    "batch": Given(pa.RecordBatch, None, 2),
}
ONE_BY_ONE = {name: VIEWS[name] for name in VIEWS if name not in ("array", "arrays", "frame", "batch")}


def cell(value: Any) -> str:
    """A value as it is written down; a null is one however a view shows it."""
    return "-" if value is None or value is pd.NA or value != value else str(int(value))


def member(item: Any) -> str:
    """A member, as any view hands it over."""
    if isinstance(item, Event):
        return f"{member(item.payload)}[{item.start},{item.end})"
    if isinstance(item, dict):
        return "/".join(map(cell, item.values()))
    if isinstance(item, Pair):
        return f"{cell(item.v)}/{cell(item.w)}"
    if isinstance(item, tuple | np.void):
        return "/".join(map(cell, item))
    return cell(item)


def members(given: Any) -> list[str]:
    """The members of a window, in the order in which they are handed over."""
    if isinstance(given, pa.RecordBatch):
        given = given.to_pandas()
    if isinstance(given, pd.DataFrame):
        timed = "LE" in given.columns
        names = [name for name in given.columns if name not in ("LE", "RE")]
        rows = zip(*(given[name] for name in names), strict=True)
        shown = ["/".join(map(cell, row)) for row in rows]
        if not timed:
            return shown
        spans = zip(given["LE"], given["RE"], strict=True)
        return [f"{row}[{a},{b})" for row, (a, b) in zip(shown, spans, strict=True)]
    return [member(item) for item in given]


def note(some: Sequence[str], more: dict[str, Any]) -> str:
    """What a module writes down."""
    window = more.get("window")
    where = "" if window is None else f" in {window.start}..{window.end}"
    return f"{';'.join(some)}{where}{' x' + str(more['scale']) if 'scale' in more else ''}"


def signed(body: Callable[..., Any], names: Sequence[str], annotation: Any, gives: Any) -> Any:
    """A function with these parameters, the last of ``values`` and ``item`` so annotated."""

    def made(*args: Any, **more: Any) -> Any:
        return body(*args, **more)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    notes = {n: annotation for n in names if n in ("values", "item") and annotation is not inspect._empty}
    spots = [
        inspect.Parameter(n, kind, default=1 if n == "scale" else inspect.Parameter.empty,
                          annotation=notes.get(n, inspect.Parameter.empty))
        for n in names
    ]  # fmt: skip
    made.__signature__ = inspect.Signature(spots)  # type: ignore[attr-defined]
    made.__annotations__ = {**notes, **({} if gives is None else {"return": gives})}
    return made


@dataclass(frozen=True, repr=False)
class ModuleCase:
    """A module, and what decides which text it gives."""

    name: str
    use: Use
    given: Given
    window: str
    """'none', or which steps read the window: 'result', 'steps', 'both'."""
    sorts: bool
    """Whether it is told what comes and goes, so that the order is its own."""
    rows: str = ""
    """How an operator gives its rows: 'plain', 'stamped' as they came, or 'inside' of the window."""

    def __repr__(self) -> str:
        return self.name

    @property
    def timed(self) -> bool:
        return self.use.module.timed

    def order(self, row: tuple[int, int, dict[str, Any]]) -> tuple[Any, ...]:
        """Members begin one after the other; an end that is not seen says nothing."""
        le, re, payload = row
        return (le, re if self.timed else 0, *(place(payload[n]) for n in ("v", "w")[: self.given.columns]))

    def plain(self, rows: Rows, start: int, end: int) -> Rows:
        """What it must give for a window."""
        shows_span = self.given.events or (self.timed and self.use.module.view in ("frame", "batch"))
        own = f"@{start}" if self.window in ("steps", "both") else ""
        some = []
        for le, re, payload in rows:
            shown = "/".join(cell(payload[n]) for n in ("v", "w")[: self.given.columns])
            some.append(f"{shown}[{le},{re})" if shows_span else shown)
        texts = [text + own for text in some]
        if self.rows == "inside":
            return [(max(le, start), re, {"value": t}) for (le, re, _), t in zip(rows, texts, strict=True)]
        if self.rows:
            return [(le, re, {"value": t}) for (le, re, _), t in zip(rows, texts, strict=True)]
        where = f" in {start}..{end}" if self.window in ("result", "both") else ""
        scale = f" x{dict(self.use.params)['scale']}" if self.use.params else ""
        return [(start, end, {"x": f"{';'.join(sorted(texts) if self.sorts else texts)}{where}{scale}"})]


def used(made: Module, given: Given, scale: bool) -> Use:
    """The module on its columns."""
    found: Use = made(*("v", "w")[: given.columns], **({"scale": 7} if scale else {}))
    return found


def recomputing() -> list[ModuleCase]:
    """Functions of all members, and those of many windows at once."""
    out = []
    for (view, given), window, scale in product(VIEWS.items(), (False, True), (False, True)):
        more = [*(["window"] if window else []), *(["scale"] if scale else [])]
        name = f"{view}{' window' if window else ''}{' scale' if scale else ''}"
        target = signed(lambda values, **more: note(members(values), more),
                        ["values", *more], given.annotation, str)  # fmt: skip
        options = {"takes": given.takes, "name": name}
        use = used(uda(target, **options), given, scale)  # type: ignore[call-overload]
        out.append(ModuleCase(name, use, given, "result" if window else "none", False))
        if view in ("array", "arrays"):
            target = signed(_many, ["values", "starts", *more], given.annotation, str)
            made = uda(target, vectorised=True, takes=given.takes, name=f"many {name}")  # type: ignore[call-overload]
            case = ModuleCase(
                f"many {name}", used(made, given, scale), given, "result" if window else "none", False
            )
            out.append(case)
    return out


def _many(values: Any, starts: Any, **more: Any) -> Any:
    """One text for each window, from all values and where each window begins."""
    window, rest = more.pop("window", None), more
    spans = [None] * len(starts) if window is None else zip(window.start, window.end, strict=True)
    texts = []
    for part, span in zip(np.split(values, starts[1:]), spans, strict=True):
        where = "" if span is None else f" in {span[0]}..{span[1]}"
        texts.append(note(members(part), {}) + where + note([], rest))
    return np.array(texts, object)


def incremental() -> list[ModuleCase]:
    """Classes that are told what comes and what goes, one by one or in sets."""
    out = []
    for (view, given), window, scale in product(
        ONE_BY_ONE.items(), ("none", "result", "steps", "both"), (False, True)
    ):
        for sets in (False, True):
            name = f"{'sets' if sets else 'class'} {view} {window}{' scale' if scale else ''}"
            target = _class(given, window, scale, sets=sets)
            made = uda(target, takes=given.takes, name=name)  # type: ignore[call-overload]
            out.append(ModuleCase(name, used(made, given, scale), given, window, True))
    merging = _class(VIEWS["dicts"], "none", True, sets=False)
    made = uda(merging, takes=BOTH, name="merging", mergeable=True)  # type: ignore[call-overload]
    return [*out, ModuleCase("merging", used(made, VIEWS["dicts"], True), VIEWS["dicts"], "none", True)]


def _class(given: Given, window: str, scale: bool, *, sets: bool) -> type:
    kept: dict[str, Any] = {}
    steps = ["window"] if window in ("steps", "both") else []
    result = ["window"] if window in ("result", "both") else []

    def change(state: Counter[str], items: list[Any], times: int, more: dict[str, Any]) -> None:
        own = f"@{more['window'].start}" if more else ""
        for item in items:
            state[member(item) + own] += times

    def listed(items: Any) -> list[Any]:
        return items if sets else [items]  # type: ignore[no-any-return]

    def compute(self: Any, state: Counter[str], **more: Any) -> str:
        assert min(state.values(), default=0) >= 0, state
        own = {"scale": self.scale} if hasattr(self, "scale") else {}
        return note(sorted(state.elements()), {**more, **own})

    annotation = given.annotation
    if not sets and annotation is not inspect.Parameter.empty:
        annotation = annotation.__args__[0] if hasattr(annotation, "__args__") else inspect.Parameter.empty
    ending = "_all" if sets else ""
    spot = "values" if sets else "item"
    for step, times in (("add", 1), ("remove", -1)):
        body = lambda self, state, item, _times=times, **more: change(state, listed(item), _times, more)  # noqa: E731
        kept[step + ending] = signed(body, ["self", "state", spot, *steps], annotation, None)
    kept["init"] = lambda self: Counter()
    kept["merge"] = lambda self, state, other: state.update(other)
    kept["compute"] = signed(compute, ["self", "state", *result], None, str)
    if scale:
        kept["__init__"] = signed(
            lambda self, scale=1: setattr(self, "scale", scale), ["self", "scale"], None, None
        )
        kept["scale"] = 1
    return type("Noting", (), kept)


def operators() -> list[ModuleCase]:
    """Operators that give a row for each member, stamped or not."""
    out = []
    for (view, given), stamped in product(VIEWS.items(), ("plain", "stamped", "inside")):
        if stamped != "plain" and not given.events:
            continue

        def target(values: Any, _stamped: str = stamped, **more: Any) -> Any:
            texts = members(values)
            if _stamped == "inside":
                first = more["window"].start
                return [Event(max(v.start, first), v.end, t) for v, t in zip(values, texts, strict=True)]
            if _stamped == "plain":
                return texts
            return [Event(v.start, v.end, t) for v, t in zip(values, texts, strict=True)]

        gives: Any = list[str] if stamped == "plain" else list[Event[str]]
        names = ["values", "window"] if stamped == "inside" else ["values"]
        made = signed(target, names, given.annotation, gives)
        use = used(udo(made, takes=given.takes, name=f"{stamped} {view}"), given, False)  # type: ignore[call-overload]
        out.append(ModuleCase(f"{stamped} {view}", use, given, "none", False, stamped))
    return out


KINDS = [*recomputing(), *incremental(), *operators()]
