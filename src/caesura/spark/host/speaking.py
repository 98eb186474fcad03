"""Feedback in words to a query on Spark, from whoever knows its checkpoint."""

from __future__ import annotations

from caesura.punctuation import Intent
from caesura.spark.host.feedback import CheckpointFeedback


class CheckpointSpeaker:
    """Takes feedback as texts of SQL; the next epoch hears it."""

    def __init__(self, feedback: CheckpointFeedback) -> None:
        self._feedback = feedback

    def outputs(self) -> list[str]:
        """The outputs that feedback can be given on."""
        return self._feedback.names

    def speak(self, intent: str, rows: str, output: str) -> str:
        """Gives feedback on some rows of an output."""
        if intent == "demand":
            self._feedback.demand(rows, output or None)
        else:
            meant = Intent.ASSUMED if intent == "assume" else Intent.DESIRED
            self._feedback.give(meant, rows, output or None)
        return "Said; the next epoch hears it."

    def withdraw(self, number: int) -> str:
        """Takes feedback back."""
        self._feedback.withdraw(number)
        return f"#{number} is withdrawn from the next epoch on."

    def standing(self) -> list[str]:
        """The feedback that stands, and what is still suppressed."""
        return self._feedback.standing()
