"""A query that goes on with another plan: what becomes of the state of each step, and the difference.

A step is known by what it does, not by its name. Its state fits a step with the same parameters and columns;
it is that of the same step only where the steps above are the same too.

    kept          the same step on the same steps, under the same name
    carried over  the same state under another name, or behind steps that have changed
    rebuilt       state that does not fit: it has to be made from the sources
    changed       holds nothing, and does something else
    dropped       is not in the plan any more
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from caesura.errors import StreamError, looked_up
from caesura.events.chunks import SavedJson, json_chunk
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.node import canonical
from caesura.plan.prune import prune
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.queued import QUEUES
from caesura.runtime.query.stored_plan import described

OnChange = Literal["refuse", "continue", "rebuild"]
"""What to do where the plan is another: stop, go on with the state that fits, or begin with it anew."""
ANEW = "start with a new checkpoint"
OTHERS = "on other steps than before"
Fate = Literal["kept", "carried over", "rebuilt", "changed", "dropped"]


@dataclass(frozen=True)
class SavedStep:
    """A step of a plan, as a manifest has it."""

    text: str
    state: str
    """Equal for steps whose state fits."""
    whole: str
    """Equal for steps that do the same to the same."""
    holds: bool
    """Whether it keeps state."""

    @staticmethod
    def of(node: Node) -> SavedStep:
        return SavedStep(described(node), _state(node), _whole(node), not node.row_wise)


def check_choices(on_change: str, final_rows: str) -> None:
    """Refuses what is none of the ways to go on, also where the plan is the same and none is asked for."""
    looked_up(dict.fromkeys(get_args(OnChange)), on_change, "on_change")
    looked_up(dict.fromkeys(get_args(FinalRows)), final_rows, "final_rows")


def steps_of(cells: Iterable[Cell]) -> dict[str, SavedStep]:
    """The steps of a graph."""
    return {cell.label: SavedStep.of(cell.node) for cell in cells}


def answers_of(outputs: Mapping[str, Node]) -> dict[str, str]:
    """What the outputs of a plan answer, whatever its steps are called: equal for equal answers."""
    return {name: _whole(node) for name, node in prune(outputs).items()}


@dataclass(frozen=True)
class StepChange:
    """What becomes of a step."""

    step: str
    fate: Fate
    then: str = ""
    now: str = ""
    before: str = ""
    """The name that its state is saved under."""
    holds: bool = True
    """Whether it keeps state."""

    def __str__(self) -> str:
        if self.then == self.now or self.fate == "kept":
            return f"{self.step}: {self.fate}" + (f" from {self.before}" if self.before != self.step else "")
        if not self.now:
            return f"{self.step}: {self.fate}, {self.then}"
        return f"{self.step}: {self.fate}, {_difference(self.then, self.now)}"


@dataclass(frozen=True)
class PlanChange:
    """What becomes of each step."""

    steps: tuple[StepChange, ...]

    @staticmethod
    def between(then: Mapping[str, SavedStep], now: Mapping[str, SavedStep]) -> PlanChange:
        left, found = dict(then), []
        matched: dict[str, str] = {}
        for alike in (_same, _same_text, _fits):
            for label, step in now.items():
                if label in matched:
                    continue
                names = [label, *(n for n in left if n not in now)]
                before = next((n for n in names if n in left and alike(left[n], step)), None)
                if before is not None:
                    matched[label] = before
                    del left[before]
        for label, step in now.items():
            found.append(_change(label, step, matched.get(label), then, left))
        gone = [(name, step) for name, step in left.items() if name not in now]
        return PlanChange((*found, *(StepChange(n, "dropped", s.text, "", n, s.holds) for n, s in gone)))

    @staticmethod
    def of_texts(then: Mapping[str, str], now: Mapping[str, str]) -> PlanChange:
        """What becomes of steps that are known by a key, which says what they do to what."""
        gone = {key: text for key, text in then.items() if key not in now}
        found = [StepChange(text, "kept", before=text) for key, text in now.items() if key in then]
        for text in (text for key, text in now.items() if key not in then):
            likely = get_close_matches(text, gone.values(), n=1, cutoff=0.0)
            was = likely[0] if likely else "nothing"
            alike = was == text
            found.append(StepChange(text, "rebuilt", OTHERS if alike else was, "" if alike else text))
        return PlanChange((*found, *(StepChange(text, "dropped", text) for text in gone.values())))

    @property
    def differs(self) -> bool:
        """Whether state would not be what it was: of a step that is not the same on the same steps."""
        lost = any(s.fate == "rebuilt" or (s.fate == "dropped" and s.holds) for s in self.steps)
        return lost or any(s.fate == "carried over" and s.then for s in self.steps)

    @property
    def alters(self) -> bool:
        """Whether the plan does anything else than before, whatever its steps are called."""
        return any(s.then or s.fate in ("rebuilt", "changed", "dropped") for s in self.steps)

    @property
    def renamed(self) -> dict[str, str]:
        """By the name that state is saved under, the name it has now."""
        return {s.before: s.step for s in self.steps if s.before and s.fate != "dropped"}

    @property
    def lost(self) -> list[StepChange]:
        """The steps whose state has to be made."""
        return [s for s in self.steps if s.fate == "rebuilt"]

    def refuse_waiting(self, chunks: Mapping[str, bytes]) -> None:
        """Refuses to change steps between which items wait."""
        if QUEUES in chunks and any(not s.before or s.fate == "dropped" for s in self.steps):
            raise StreamError(
                "rows wait between the steps of the plan that was saved, and this plan has other steps.",
                remedy="Let the old plan run to the end of its input once (run()), then change it; or take "
                "on_change='rebuild'.",
            )

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def refuse(
        self, how: OnChange, what: str = "the checkpoint belongs to another plan", anew: str = ANEW
    ) -> None:
        """Refuses the change, unless it is to be made in a way in which it can be."""
        lines = "\n".join(f"  {step}" for step in self.steps if step.fate != "kept")
        if how == "refuse":
            raise StreamError(
                f"{what}:",
                remedy=f"{lines}\nPut the steps back; or go on with on_change='continue', which keeps the "
                "state that fits, or on_change='rebuild', which reads the sources again and corrects the "
                f"output; or {anew}.",
            )
        if how == "continue" and self.lost:
            raise StreamError(
                "the plan cannot go on from here, since these steps would begin in the middle of the stream:",
                remedy=f"{lines}\nTake on_change='rebuild', put the steps back, or {anew}.",
            )


def _change(
    label: str,
    step: SavedStep,
    before: str | None,
    then: Mapping[str, SavedStep],
    left: Mapping[str, SavedStep],
) -> StepChange:
    if before is not None:
        was = then[before]
        if _same(was, step) or (_same_text(was, step) and not was.whole):
            return StepChange(label, "kept" if before == label else "carried over", before=before)
        fate: Fate = "carried over" if step.holds else "changed"
        above = was.text if was.text != step.text else OTHERS
        return StepChange(label, fate, above, step.text if was.text != step.text else "", before=before)
    was_text = left[label].text if label in left else "nothing"
    return StepChange(label, "rebuilt" if step.holds else "changed", was_text, step.text)


def _same(then: SavedStep, now: SavedStep) -> bool:
    return bool(then.whole) and then.whole == now.whole


def _same_text(then: SavedStep, now: SavedStep) -> bool:
    """For manifests that have nothing but texts."""
    return not then.whole and then.text == now.text


def _fits(then: SavedStep, now: SavedStep) -> bool:
    return bool(then.state) and then.state == now.state and then.holds == now.holds


def _own(node: Node) -> list[str]:
    """What a step does, whatever it does it to; of rows in memory not which ones.

    A source that never takes back holds no row, so which columns of it are read does not count.
    """
    if isinstance(node, Source):
        read = "" if node.reader.in_memory else node.reader.describe()
        held = "" if node.shape.insert_only else str(node.schema)
        return [read, held, canonical(dataclasses.replace(node.shape, renamed=()))]
    fields = [f.name for f in dataclasses.fields(node) if node.counts(f.name)]
    return [*(f"{name}={canonical(getattr(node, name))}" for name in fields), str(node.schema)]


def _state(node: Node) -> str:
    columns = [str(child.schema) for child in node.inputs]
    return _hash([type(node).__name__, *_own(node), *columns])


def _whole(node: Node) -> str:
    more = [str(node.policy), node.late] if isinstance(node, Source) else []
    return _hash([_state(node), *more, *(_whole(child) for child in node.inputs)])


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _difference(then: str, now: str) -> str:
    """Two texts, without what they begin and end with alike."""
    a, b = then.split(), now.split()
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    was, made = (" ".join(words[start : len(words) - end]).rstrip(";,") or "nothing" for words in (a, b))
    return f"'{was}' became '{made}'"


def carried_offsets(chunks: dict[str, bytes], names: Mapping[str, str]) -> dict[str, bytes]:
    """The chunks, with where sources are under the names they have now; a source that is gone is left out."""
    saved = SavedJson("offsets")
    positions = saved.read(chunks)
    if positions is None:
        return chunks
    return {**chunks, "offsets": json_chunk({names[n]: at for n, at in positions.items() if n in names})}
