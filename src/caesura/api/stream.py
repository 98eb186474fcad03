"""`Stream`: what users type. Every method gives a new stream; nothing runs until it is asked to.

>>> import caesura as cz
>>> from caesura import col
>>> speeds = cz.from_rows([{"ts": 3, "seg": 1, "mph": 62}, {"ts": 8, "seg": 1, "mph": 48}], time="ts")
>>> print(speeds.where(col("mph") > 50).select("seg", kmh=col("mph") * 1.6).run())
 LE  RE | seg kmh  |
  3  4  | 1   99.2 | +
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caesura.api.idioms import no_such_name
from caesura.api.steps.feedback import FeedbackSteps
from caesura.api.steps.lifetimes import LifetimeSteps
from caesura.api.steps.meeting import MeetingSteps
from caesura.api.steps.on_spark import OnSpark
from caesura.api.steps.rows import RowSteps
from caesura.api.steps.running import RunSteps
from caesura.api.steps.windows import WindowSteps
from caesura.plan.outline import html, outline


class Stream(RowSteps, MeetingSteps, LifetimeSteps, WindowSteps, FeedbackSteps, RunSteps, OnSpark):
    """A stream of events with lifetimes and corrections."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name == "node":
                raise AttributeError(f"'Stream' object has no attribute '{name}'")
            known = [one for one in dir(type(self)) if not one.startswith("_")]
            raise no_such_name("stream", name, known, self.columns)

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{f.name} {f.type}' for f in self.schema)})"

    def _repr_html_(self) -> str:
        """The plan as a table, with what the contract check says of it."""
        verdict = self.check()
        badge, colour = ("safe", "#1a7f37") if verdict.safe else ("unsafe: see .check()", "#b3261e")
        style = f"border-radius:8px;padding:0 6px;color:white;background:{colour}"
        return f'<p><span style="{style}">{badge}</span></p>{html(outline(self.node))}'
