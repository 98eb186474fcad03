"""Tries a module on random windows: does it do what it declares, and do its two modes agree?

>>> from caesura.udm import uda
>>> @uda
... class Count:
...     def init(self): return [0]
...     def add(self, state, value: float): state[0] += 1
...     def remove(self, state, value: float): pass
...     def compute(self, state) -> int: return state[0]
>>> print(check_module(Count))
Count: adding and removing disagrees with recomputing, for example on the window [0, 100)
  rows:      []
  meanwhile: [0.0]
  wanted:    0
  got:       1
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from caesura.udm.adapters import adapter
from caesura.udm.calls import Caller
from caesura.udm.module import Module, Use
from caesura.udm.trial import ModuleTrial, given, result_of

ROUNDS = 200
EPOCH = datetime(2000, 1, 1)


@dataclass(frozen=True)
class ModuleFinding:
    """A window on which a module does not do what it says."""

    module: str
    problem: str
    trial: ModuleTrial
    wanted: Any
    got: Any

    def __str__(self) -> str:
        lines = [f"{self.module}: {self.problem}, for example on the window [0, {self.trial.end})"]
        lines.append(f"  rows:      {self.trial.rows}")
        if self.trial.passing:
            lines.append(f"  meanwhile: {self.trial.passing}")
        return "\n".join([*lines, f"  wanted:    {self.wanted!r}", f"  got:       {self.got!r}"])


@dataclass
class ModuleReport:
    """What was found; true when nothing was."""

    module: str
    findings: list[ModuleFinding] = field(default_factory=list)

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or f"{self.module}: nothing found"


Check = Callable[[Caller, ModuleTrial], tuple[Any, Any] | None]


def check_module(
    module: Module, *, against: Module | None = None, rounds: int = ROUNDS, seed: int = 0, **params: Any
) -> ModuleReport:
    """Tries whether a module holds what it promises, on random windows.

    Parameters
    ----------
    module
        What `uda` or `udo` made.
    against
        Another form of it, such as a plain one, that must agree.
    rounds
        How many windows are tried.
    seed
        Which windows.
    **params
        Parameters of the module.

    Returns
    -------
    ModuleReport
        True where nothing was found; printed, it shows for each broken promise the shortest window that
        breaks it.

    See Also
    --------
    caesura.uda : what is tried.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura.udm import check_module
    >>> @cz.uda(monotone=True)
    ... def least(values: list[int]) -> int:
    ...     return min(values, default=0)
    >>> bool(check_module(least, rounds=20))
    False
    """
    names = [name for name, _ in module.takes or (("value", None),)]
    caller = Caller(Use(module, (), tuple(params.items())), adapter(module, names))
    other = None
    if against is not None:
        other = Caller(Use(against, (), tuple(params.items())), adapter(against, names))
    report = ModuleReport(module.name)
    for problem, check in _checks(module, other):
        found = _search(caller, check, random.Random(seed), rounds)
        if found is not None:
            trial, (wanted, got) = found
            report.findings.append(ModuleFinding(module.name, problem, trial, wanted, got))
    return report


def _checks(module: Module, other: Caller | None) -> Iterable[tuple[str, Check]]:
    if module.traits.deterministic:
        yield "the same window gives different results", _twice
    if module.incremental:
        yield "adding and removing disagrees with recomputing", _detour
    if other is not None:
        yield (
            "it disagrees with its other form",
            lambda caller, trial: _apart(result_of(other, trial), result_of(caller, trial)),
        )
    if module.traits.monotone:
        yield "it is declared monotone, but more rows lower it", _lowered
    if module.traits.mergeable:
        yield "it is declared mergeable, but merging two halves differs from the whole", _merged
    if module.traits.time_bound and module.kind == "udo" and module.stamps:
        yield "it is declared time-bound, but later events change what it gave before", _hindsight
    if module.traits.empty_preserving and module.kind == "udo":
        yield "it is declared empty-preserving, but makes rows out of none", _from_nothing
    if module.traits.filter_commutes:
        yield "a filter is declared to commute with it, but does not", _filtered


def _apart(wanted: Any, got: Any) -> tuple[Any, Any] | None:
    return None if _same(wanted, got) else (wanted, got)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and sorted(map(repr, a)) == sorted(map(repr, b))
    return bool(a == b)


def _twice(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    return _apart(result_of(caller, trial), result_of(caller, trial))


def _detour(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    return _apart(result_of(caller, trial), result_of(caller, trial, detour=True))


def _lowered(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    if len(trial.rows) < 2:
        return None
    fewer, more = result_of(caller, trial.but(rows=trial.rows[:-1])), result_of(caller, trial)
    return None if fewer is None or more is None or fewer <= more else (f">= {fewer!r}", more)


def _merged(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    half = len(trial.rows) // 2
    parts = [given(caller, trial.but(rows=some)) for some in (trial.rows[:half], trial.rows[half:])]
    states = [caller.target.init() for _ in parts]
    for place, items in enumerate(parts):
        for item in items:
            new = caller.target.add(states[place], item)
            states[place] = states[place] if new is None else new
    both = caller.target.merge(*states)
    return _apart(result_of(caller, trial), caller.compute(states[0] if both is None else both))


def _hindsight(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    moments = sorted({s for s, _ in trial.spans} | {e for _, e in trial.spans if e < trial.end})
    for moment in moments:
        known = trial.until(moment)
        before = [e for e in result_of(caller, known) if e.start <= moment < e.end]
        after = [e for e in result_of(caller, trial) if e.start <= moment < e.end]
        if not _same([e.payload for e in before], [e.payload for e in after]):
            return before, after
    return None


def _filtered(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    shared = [n for n, _ in caller.module.takes or () if n in caller.module.gives.names]
    for name in shared:
        place = [n for n, _ in caller.module.takes or ()].index(name)
        cells = [row[place] if isinstance(row, tuple) else row for row in trial.rows]
        for cell in cells:
            kept = [i for i, c in enumerate(cells) if c == cell]
            first = result_of(caller, trial.pick(kept)) if kept else []
            after = [r for r in result_of(caller, trial) if _cell(r, name) == cell]
            if not _same(first, after):
                return after, first
    return None


def _from_nothing(caller: Caller, trial: ModuleTrial) -> tuple[Any, Any] | None:
    return _apart([], result_of(caller, trial.pick([])))


def _cell(row: Any, name: str) -> Any:
    inner = getattr(row, "payload", row)
    return inner.get(name) if isinstance(inner, dict) else getattr(inner, name, inner)


def _search(
    caller: Caller, check: Check, chance: random.Random, rounds: int
) -> tuple[ModuleTrial, tuple[Any, Any]] | None:
    for round_ in range(rounds):
        trial = _drawn(caller.module, chance, 1 + round_ % 8)
        found = check(caller, trial)
        if found is not None:
            return _smallest(caller, check, trial, found)
    return None


def _smallest(
    caller: Caller, check: Check, trial: ModuleTrial, found: tuple[Any, Any]
) -> tuple[ModuleTrial, tuple[Any, Any]]:
    """Leaves out and simplifies rows as long as the trouble stays."""
    moved = True
    while moved:
        moved = False
        for smaller in trial.smaller():
            again = check(caller, smaller)
            if again is not None:
                trial, found, moved = smaller, again, True
                break
    return trial, found


def _drawn(module: Module, chance: random.Random, size: int) -> ModuleTrial:
    types = [t or pa.float64() for _, t in module.takes or (("value", None),)]
    rows, passing = ([_row(types, chance) for _ in range(n)] for n in (size, chance.randint(1, 3)))
    spans = []
    for _ in rows:
        start = chance.randint(0, 90)
        spans.append((start, chance.randint(start + 1, 100)))
    return ModuleTrial(rows, spans, passing, 100)


def _row(types: list[pa.DataType], chance: random.Random) -> Any:
    cells = tuple(_value(t, chance) for t in types)
    return cells if len(cells) > 1 else cells[0]


def _value(t: pa.DataType, chance: random.Random) -> Any:
    whole = chance.choice((0, 1, 2, 3, 5, -1, -4, 10, 100))
    if pa.types.is_boolean(t):
        return whole % 2 == 0
    if pa.types.is_integer(t):
        return whole
    if pa.types.is_floating(t):
        return float(whole) if chance.random() < 0.7 else chance.uniform(-10, 10)
    if pa.types.is_decimal(t):
        return Decimal(whole)
    if pa.types.is_date(t):
        return date(2000, 1, 1) + timedelta(days=whole)
    if pa.types.is_timestamp(t):
        return EPOCH + timedelta(seconds=whole)
    text = chance.choice(("", "a", "b", "ab"))
    return text.encode() if pa.types.is_binary(t) else text
