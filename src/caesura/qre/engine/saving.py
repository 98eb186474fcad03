"""What of a query at work must survive a restart."""

from __future__ import annotations

from typing import Any

from caesura.qre.engine.nested import NestedStage
from caesura.qre.engine.pattern import Stage
from caesura.qre.engine.sketch import SketchStage

_SAVED = (
    *("ri", "rf", "rings", "keys", "rows", "sparse", "left", "seen"),
    *("active", "meta", "key_store", "synced", "states", "memory", "types", "named", "known"),
)


def state_of(held: Any) -> dict[str, Any]:
    """The state of a stage, or of the twin, by name."""
    if isinstance(held, Stage):
        held.forget_texts(now=True)
    state = {name: getattr(held, name) for name in _SAVED if hasattr(held, name)}
    if isinstance(held, SketchStage):
        return {"memory": held.memory, "pieces": held.pieces.save()}
    if isinstance(held, NestedStage):
        state["nested"] = held.saved()
    if isinstance(held, Stage):
        state["texts"] = held.auto.inputs.texts
    return state


def take_back(held: Any, state: dict[str, Any]) -> None:
    """Gives a stage, or the twin, the state that another one of its query had."""
    if isinstance(held, SketchStage):
        held.memory = state["memory"]
        held.pieces.load(state["pieces"])
        return
    if isinstance(held, NestedStage):
        held.restored(state.pop("nested"))
    texts = state.pop("texts", None)
    if isinstance(held, Stage) and texts is not None:
        held.auto.inputs.texts = texts
    for name, value in state.items():
        setattr(held, name, value)
