"""What is known about every event of a stream before it runs.

Each operator derives its output's properties from its inputs'; explain shows them, and operators
choose cheaper forms by them.

>>> Properties(insert_only=True, points=True).fixed_ends
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Properties:
    """Facts about a stream that hold for every legal delivery."""

    insert_only: bool = False
    """No retract ever comes."""
    points: bool = False
    """Every event lives one tick."""
    aligned: bool = False
    """An event's end follows from its start (windows, set durations): it may vanish, never change length."""
    max_duration: int | None = None
    """No lifetime is longer than this; None when it may be, or never end."""
    endless: bool = False
    """No event ever ends; it may be taken back as a whole."""

    @property
    def key(self) -> str:
        """What a plan is known by; a fact that was not known before does not show where it does not hold."""
        facts = f"insert_only={self.insert_only}, points={self.points}, aligned={self.aligned}"
        more = ", endless=True" if self.endless else ""
        return f"Properties({facts}, max_duration={self.max_duration}{more})"

    @property
    def fixed_ends(self) -> bool:
        """Whether a row is final as soon as its start is before the CTI."""
        return self.insert_only or self.points or self.aligned

    def but(self, **changes: object) -> Properties:
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.in_words(str)

    def in_words(self, span: Callable[[int], str]) -> str:
        """The facts in words; ``span`` writes a number of ticks."""
        words = []
        if self.insert_only:
            words.append("insert-only")
        if self.points:
            words.append("points")
        elif self.aligned:
            words.append("fixed ends")
        if self.max_duration is not None and not self.points:
            words.append(f"lives <= {span(self.max_duration)}")
        return ", ".join(words) or "any"


def both(a: Properties, b: Properties) -> Properties:
    """What holds for the union of two streams."""
    longest = None
    if a.max_duration is not None and b.max_duration is not None:
        longest = max(a.max_duration, b.max_duration)
    return Properties(
        insert_only=a.insert_only and b.insert_only,
        points=a.points and b.points,
        aligned=a.aligned and b.aligned,
        max_duration=longest,
        endless=a.endless and b.endless,
    )
