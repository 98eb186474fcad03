"""The plan of a running query as plain values: its steps in words, and how they are joined.

>>> import caesura as cz
>>> clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts").where(cz.col("id") > 6)
>>> shape = PlanShape.of({"out": clicks.node})
>>> [(step.label, step.does, step.inputs, step.outputs) for step in shape.steps][1:]
[('where', 'id > 6', (0,), ('out',))]
>>> PlanShape.from_json(shape.to_json()) == shape
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from caesura.contracts.check import check
from caesura.contracts.verdict import held, shown
from caesura.errors import CaesuraError
from caesura.plan import Node, SourceNode, walk
from caesura.plan.outline import outline

if TYPE_CHECKING:
    from caesura.plan.cut import Stages
    from caesura.runtime.query.query import Query


@dataclass(frozen=True)
class StepShape:
    """One step of a plan, and the steps that it reads from."""

    number: int
    label: str
    """What the status of the query calls it."""
    kind: str
    does: str
    place: str
    inputs: tuple[int, ...]
    around: tuple[int, ...] = ()
    """The steps whose rows come back to this one around a loop."""
    stage: int = 0
    columns: tuple[tuple[str, str], ...] = ()
    known: str = ""
    """What holds for every event."""
    contract: tuple[str, ...] = ()
    """What it keeps and promises, and what never goes, in words."""
    source: bool = False
    outputs: tuple[str, ...] = ()
    """The outputs of the query that leave here."""


@dataclass(frozen=True)
class PlanShape:
    """The steps of a plan, inputs before their consumers."""

    steps: tuple[StepShape, ...]

    @staticmethod
    def of(
        outputs: Mapping[str, Node],
        labels: Mapping[str, str] | None = None,
        stages: Mapping[str, int] | None = None,
    ) -> PlanShape:
        """The steps behind some outputs; by fingerprint, what they are called and the stages they run in."""
        nodes = list(walk(*outputs.values()))
        number = {node.fingerprint: at for at, node in enumerate(nodes)}
        contracts = _contracts(outputs)
        ends = {node.closes: number[node.fingerprint] for node in nodes if node.closes}
        steps = []
        for at, (node, said) in enumerate(zip(nodes, outline(*outputs.values()), strict=True)):
            mark = node.fingerprint
            steps.append(
                StepShape(
                    at,
                    (labels or {}).get(mark, node.step),
                    node.kind,
                    shown(said.does),
                    node.place,
                    tuple(number[child.fingerprint] for child in node.inputs),
                    (ends[node.opens],) if node.opens in ends else (),
                    (stages or {}).get(mark, 0),
                    tuple(column for column in said.columns if not column[0].startswith("\x00")),
                    said.known,
                    contracts.get(mark, ()),
                    isinstance(node, SourceNode) or bool(node.fed),
                    tuple(name for name, last in outputs.items() if last.fingerprint == mark),
                )
            )
        return PlanShape(tuple(steps))

    def to_json(self) -> list[dict[str, Any]]:
        """The steps as plain values."""
        return [asdict(step) for step in self.steps]

    @staticmethod
    def from_json(data: list[dict[str, Any]]) -> PlanShape:
        """The steps from plain values; those of another version may say more than is known here."""
        known = [field.name for field in fields(StepShape)]
        return PlanShape(tuple(StepShape(**{n: _frozen(one[n]) for n in known if n in one}) for one in data))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, (list, tuple)) else value


def _contracts(outputs: Mapping[str, Node]) -> dict[str, tuple[str, ...]]:
    """What each step keeps and promises, by fingerprint; with what the check finds wrong there."""
    found: dict[str, tuple[str, ...]] = {}
    for node in outputs.values():
        try:
            verdict = check(node, advise=False)
        except CaesuraError as error:
            found.setdefault(node.fingerprint, (f"not checked: {error}",))
            continue
        for step in verdict.steps:
            wrong = [str(finding) for finding in verdict.findings if finding.step is step]
            words = (held(step), f"promises {step.scheme.in_words}", *wrong)
            found.setdefault(step.node.fingerprint, words)
    return found


def shape_of_query(query: Query) -> PlanShape:
    """The plan of a query in this process."""
    return PlanShape.of(query.outputs, {mark: c.node.fed or c.label for mark, c in query.parts.cells.items()})


def shape_of_stages(stages: Stages, labels: Mapping[tuple[int, str], str]) -> PlanShape:
    """The plan of a query that is cut into stages; ``labels`` has what a stage calls a step.

    As in its status, a step whose name an earlier stage has too is called ``name@stage``.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    places = {node.fingerprint: stage.number for stage in stages.stages for node in stage.nodes}
    for (number, mark), label in sorted(labels.items(), key=lambda one: one[0][0]):
        names[mark] = f"{label}@{number}" if label in taken else label
        taken.add(names[mark])
    return PlanShape.of(stages.outputs, names, places)


def edges(shape: PlanShape) -> Iterator[tuple[int, int, bool]]:
    """Every edge from step to step, and whether it leads back around a loop."""
    for step in shape.steps:
        yield from ((source, step.number, False) for source in dict.fromkeys(step.inputs))
        yield from ((source, step.number, True) for source in step.around)
