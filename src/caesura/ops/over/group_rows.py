"""What nodes have in common that look at the rows of a group in order of time: frames and row patterns."""

from __future__ import annotations

from dataclasses import dataclass

from caesura.ops.where import on_keys
from caesura.plan import FeedbackRule, Node, Properties, Translation
from caesura.plan.lifetimes import Whole


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupRows(Node):
    """A node whose rows come out of whole groups, and live as long as rows that went in."""

    group: tuple[str, ...] = ()

    partitioning = "key"

    def derive(self, *inputs: Properties) -> Properties:
        known = inputs[0]
        return Properties(
            points=known.points,
            aligned=known.fixed_ends,
            max_duration=known.max_duration,
            endless=known.endless,
        )

    @property
    def ends_with_first(self) -> bool:
        return True

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        """All columns: rows that start together are told apart by them."""
        return set(self.inputs[0].schema.names)

    def push_filter(self, where: Node) -> Node | None:
        return on_keys(where, self, self.group)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Groups are given up whole."""
        translation = Translation.of(self.group, self.inputs[0].properties, Whole())
        return (FeedbackRule((translation,), "groups", purges=True, group=self.group),)
