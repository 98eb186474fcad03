"""Which machine runs a query: a compiled one where it will do, plain Python elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from caesura.qre.checking.inference import value_type
from caesura.qre.compiler.columns import reader_of
from caesura.qre.compiler.deferral import has_maps
from caesura.qre.compiler.lowering import NotCompiled
from caesura.qre.engine.applied import AppliedToMaps, without_operations
from caesura.qre.engine.compiled import CollectMachine, NestedMachine, PatternMachine
from caesura.qre.engine.keyed_sketch import KeyedSketchMachine
from caesura.qre.engine.machine import Machine
from caesura.qre.engine.map import MapStage
from caesura.qre.engine.map_rates import core
from caesura.qre.engine.nested import NestedStage
from caesura.qre.engine.pattern import PatternStage
from caesura.qre.engine.pipe import PipeMachine
from caesura.qre.engine.plain import PlainMachine
from caesura.qre.engine.sketch import SketchMachine, ends_once, sketched
from caesura.qre.language.derived import iter_last
from caesura.qre.language.query import Partition, Pipe, Query
from caesura.qre.language.types import MapOf, to_arrow

Kernel = Literal["auto", "table", "generated", "twin"]


def machine_for(query: Query, kernel: Kernel = "auto") -> Machine:
    """A machine for a query whose items are known, before its first item."""
    if isinstance(query, Pipe):
        return PipeMachine(query, machine_for(query.first, kernel), machine_for(query.second, kernel))
    if kernel == "twin":
        return PlainMachine(query, "the twin was asked for")
    try:
        return _sketch(query, kernel) or _compiled(query, kernel)
    except NotCompiled as verdict:
        return PlainMachine(query, f"{verdict} runs in Python only")


def _sketch(query: Query, kernel: Kernel) -> Machine | None:
    """A sketch over pieces; refuses one whose pieces may go on, which no automaton can run."""
    found = sketched(query.per_key)
    if found is None or (isinstance(query, Partition) and found[1].structure is None):
        return None
    body, fold, _ = found
    if ends_once(query.per_key, body):
        whole = iter_last(body)
        pieces = machine_for(replace(query, body=whole) if isinstance(query, Partition) else whole, kernel)
        if pieces.reason:
            raise NotCompiled(pieces.reason)
        if isinstance(query, Partition):
            return KeyedSketchMachine(query, found, pieces) if isinstance(pieces, PatternMachine) else None
        return SketchMachine(query, found, pieces)
    if fold.structure is not None:
        raise NotCompiled(f"'{fold}' over pieces that may go on after their end")
    return None


def _compiled(query: Query, kernel: Kernel) -> Machine:
    made = _automaton(query, kernel)
    made.stage.reader = reader_of(query)
    return made


def _automaton(query: Query, kernel: Kernel) -> PatternMachine | CollectMachine | NestedMachine:
    inner = without_operations(query)
    found = core(inner)
    if found is not None and not has_maps(found[0].body):
        return CollectMachine(query, MapStage(inner, kernel=kernel), AppliedToMaps(query))
    if not has_maps(query):
        return PatternMachine(query, PatternStage(query, kernel=kernel))
    t = value_type(inner)
    in_columns = found is not None and isinstance(t, MapOf) and to_arrow(t.value) is not None
    return NestedMachine(query, NestedStage(query), AppliedToMaps(query) if in_columns else None)
