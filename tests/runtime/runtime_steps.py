"""Small steps for tests of the runtime: they say what they see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caesura.events import Item, Page, parse
from caesura.ops.input import Input
from caesura.plan import Node, Operator, Properties, Up, definite
from caesura.punctuation import Intent, Pattern, Punctuation

IDS = pa.schema([("id", pa.int64())])


def numbers(label: str = "numbers") -> Input:
    return Input(label=label, payload=IDS)


def page(*ids: int) -> Page:
    """Points at 0, one for each id."""
    return Page.of(pa.record_batch({"id": pa.array(ids, pa.int64())}), le=[0] * len(ids), re=[1] * len(ids))


def drawn(text: str) -> list[Item]:
    return parse(text, IDS)


class Listener(Operator):
    """Passes everything on, both ways, and writes down the order in which it comes."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log

    def page(self, port: int, page: Page) -> Iterable[Item]:
        self.log.append(f"page {[row[3][0] for row in page.rows()]}")
        return [page]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(pattern)

    def control(self, message: Punctuation) -> Iterable[Up]:
        self.log.append(str(message))
        return [(0, message)]


class Speaker(Listener):
    """Sends a message up with every page that it takes."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        for number in [row[3][0] for row in page.rows()]:
            self.log.append(f"says {number}")
            self.outbox.send(0, assumed(Pattern(id=number)))
        return [page]


@dataclass(frozen=True, eq=False, kw_only=True)
class Step(Node):
    """A step with an operator of the test's own."""

    made: Any

    kind = "test step"

    def output_schema(self) -> pa.Schema:
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def operator(self) -> Operator:
        operator: Operator = self.made()
        return operator


def assumed(pattern: Pattern) -> Punctuation:
    return Punctuation(pattern, Intent.ASSUMED)
