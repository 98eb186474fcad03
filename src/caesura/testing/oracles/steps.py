"""Which oracle recomputes a step of a plan: found by the kind of its node, asked with its inputs' rows.

An operator's oracle names its node here, so that the audit finds it; a kind without one is not audited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from caesura.expr import Expr
from caesura.plan import Node
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.tumbling import Horizon


class Evaluates(Protocol):
    """Reads expressions on plain rows, without the engine."""

    @property
    def schema(self) -> pa.Schema: ...
    def of(self, expr: Expr, row: Payload, le: int = 0, re: int = 0) -> Any: ...
    def has_values(self, exprs: Any, row: Payload, le: int, re: int) -> bool:
        """Whether all of some expressions have a value on a row."""


class StepInputs(Protocol):
    """What a step was given."""

    @property
    def rows(self) -> list[Rows]:
        """The rows of each input."""

    @property
    def values(self) -> Evaluates:
        """Reads expressions on rows of the first input."""

    def over(self, schema: pa.Schema) -> Evaluates:
        """Reads expressions on rows with other columns."""

    @property
    def horizon(self) -> Horizon:
        """How far windows of rows that never end go."""


StepOracle: TypeAlias = Callable[[Any, Any], Rows]
STEPS: dict[type[Node], StepOracle] = {}


def recomputes(*kinds: type[Node]) -> Callable[[StepOracle], StepOracle]:
    """Names the steps whose output a function recomputes from (node, `StepInputs`)."""

    def named(function: StepOracle) -> StepOracle:
        for kind in kinds:
            STEPS[kind] = function
        return function

    return named
