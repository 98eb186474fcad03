"""What a check says of steps that may well give nothing: state stays bounded, and yet no row comes out."""

from __future__ import annotations

from collections.abc import Iterable

from caesura.contracts.analysis import Step


def cautions(steps: Iterable[Step]) -> Iterable[str]:
    """A line for each such step."""
    for step in steps:
        if step.node.caution:
            yield f"Step {step.title} {step.node.caution}."
