"""A plan with a cycle that crosses stages and buckets, put together by hand.

Numbers enter stage 1, are halved in stage 2 and go back to the bucket of the half until they are 1.
Stage 2 assumes away what it has seen, so messages go backwards too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caesura.events import Item, Page
from caesura.io.sources.source import Source
from caesura.ops.input import Input
from caesura.ops.union import Union
from caesura.plan import Node, Operator, Properties, Up, definite
from caesura.plan.cut import Exchange, Stage, Stages
from caesura.punctuation import Intent, Pattern, Punctuation, gt

IDS = pa.schema([("id", pa.int64())])


class Halve(Operator):
    """Each number above 1 goes on, halved; numbers above 1000 are asked for no more."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        ids = page.payload.column("id").to_numpy()
        if (ids > 1000).any():
            self.outbox.send(0, Punctuation(Pattern(id=gt(1000)), Intent.ASSUMED))
        rows = page.filter(ids > 1)
        halves = pa.array(rows.payload.column("id").to_numpy() // 2)
        return [rows.with_payload(pa.RecordBatch.from_arrays([halves], schema=IDS))] if len(rows) else []

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return []


class Hearing(Operator):
    """Passes rows on, and those numbers that all readers assume away no more."""

    def __init__(self) -> None:
        super().__init__()
        self.assumed: list[Pattern] = []

    def page(self, port: int, page: Page) -> Iterable[Item]:
        keep = np.ones(len(page), np.bool_)
        for pattern in self.assumed:
            keep &= ~pattern.matches(page.payload, page.sync)
        return [page.filter(keep)]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(pattern)

    def control(self, message: Punctuation) -> Iterable[Up]:
        self.assumed.append(message.pattern)
        return [(0, message)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Made(Node):
    """A step with an operator of the test's own."""

    made: type[Operator]

    kind = "test step"

    def output_schema(self) -> pa.Schema:
        return IDS

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def operator(self) -> Operator:
        return self.made()


def loop(source: Source) -> tuple[Node, Stages]:
    """source and what comes back -> heard -> halved -> back."""
    again = Input(label="again", payload=IDS, time_type=source.time)
    merged = Union(inputs=(source, again))
    heard = Made(inputs=(merged,), made=Hearing)
    halved = Made(inputs=(heard,), made=Halve)
    enters = Exchange("enters", source, 0, 1, ("id",), "numbers lie by id")
    onward = Exchange("onward", heard, 1, 2, ("id",), "halving is another stage")
    back = Exchange("back", halved, 2, 1, ("id",), "halves go around", again)
    stages = (
        Stage(0, [source], [], [enters]),
        Stage(1, [merged, heard], [enters, back], [onward], {"out": heard}),
        Stage(2, [halved], [onward], [back]),
    )
    comes = {(1, merged, 0): "enters", (1, merged, 1): "back", (2, halved, 0): "onward"}
    ways = {(stage, node.fingerprint, port): label for (stage, node, port), label in comes.items()}
    return heard, Stages(stages, {"out": heard}, (source,), ways)


def halvings(numbers: Iterable[int]) -> list[int]:
    """What circulates, in plain Python."""
    seen = []
    for number in numbers:
        while number >= 1:
            seen.append(number)
            number //= 2
    return sorted(seen)
