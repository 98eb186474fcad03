"""Plans of which no state can be claimed: what leaves depends on more than the rows that were read."""

from __future__ import annotations

from collections.abc import Iterable

from caesura.errors import StreamError
from caesura.ops.impute import Impute
from caesura.plan import Node


def refuse_arrival(nodes: Iterable[Node]) -> None:
    """Refuses steps that let rows go by when they arrive: a claim behind them would be false."""
    for node in nodes:
        if node.arrival_dependent:
            raise StreamError(
                f"what '{node.kind}' lets go depends on when rows arrive, so no state behind it is that of a "
                "prefix.",
                remedy="Claim the views in front of it, or bound lateness where rows are read: "
                "punctuate=cz.delay(...).",
            ).at(node.step, node.place)


def refuse_demands(nodes: Iterable[Node]) -> None:
    """Refuses steps that ask for results before they are final, where output is held until it is."""
    for node in nodes:
        if node.demands:
            raise StreamError(
                f"what '{node.kind}' demands is shown before it is final, and by when rows arrive.",
                remedy="Take output='changes', which has shown it already, or claim without the step.",
            ).at(node.step, node.place)


def refuse_speakers(nodes: Iterable[Node]) -> None:
    """Refuses steps that give feedback, where labels would have to tell what it lets go."""
    for node in nodes:
        if node.sends_feedback:
            raise StreamError(
                f"'{node.kind}' gives feedback, and cz.heeding() cannot tell which rows it leaves out.",
                remedy="Take claims=cz.tokens(); they name the feedback that they are under.",
            ).at(node.step, node.place)


def refuse_budgets(nodes: Iterable[Node]) -> None:
    """Refuses steps that keep rows for a later epoch, where the epoch is the claim."""
    for node in nodes:
        if isinstance(node, Impute) and node.budget is not None:
            raise StreamError(
                f"with a budget '{node.kind}' leaves rows to a later epoch, so an epoch is no claim.",
                remedy="Run the pipeline in this process: a token waits for them. Or leave the budget out: "
                "all rows are filled then, however long it takes.",
            ).at(node.step, node.place)
