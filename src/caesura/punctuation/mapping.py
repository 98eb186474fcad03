"""How an operator's output attributes come from its input attributes, to translate patterns by.

A translation is exact or there is none: a row matches p if and only if its image matches `down(p)`.
An output that the operator computes has no image here.

>>> from caesura.punctuation.values import lt
>>> m = SchemaMapping({"sensor": Image("id")}, time=Image("time", 5))
>>> print(m.down(Pattern(id=4, time=lt(20))))
time < 25, sensor = 4
>>> print(m.up(Pattern(sensor=4))), m.down(Pattern(speed=3)) is None
id = 4
(None, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from caesura.punctuation.pattern import Pattern
from caesura.punctuation.time import TIME
from caesura.punctuation.values import Values


@dataclass(frozen=True)
class Image:
    """One output attribute: an input attribute, moved by `shift` (integers and time only)."""

    attribute: str
    shift: Any = 0

    def down(self, values: Values) -> Values | None:
        """The output's values that come from these; None where no set says so exactly."""
        return values.shift(self.shift)

    def up(self, values: Values) -> Values | None:
        """The attribute's values that become these; None where no set says so exactly."""
        return values.shift(-self.shift)


SAME_TIME = Image(TIME)


class SchemaMapping:
    """Output attribute to its image in the input; `time=None` when output times are computed."""

    __slots__ = ("images",)
    images: tuple[tuple[str, Image], ...]

    def __init__(self, images: Mapping[str, Image], *, time: Image | None = SAME_TIME) -> None:
        first = {} if time is None or TIME in images else {TIME: time}
        object.__setattr__(self, "images", tuple({**first, **images}.items()))

    @staticmethod
    def identity(names: Iterable[str]) -> SchemaMapping:
        """Every attribute, and time, comes through unchanged."""
        return SchemaMapping({name: Image(name) for name in names})

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"a schema mapping is frozen; {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaMapping) and self.images == other.images

    def __hash__(self) -> int:
        return hash(self.images)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (dict(self.images),)

    def __repr__(self) -> str:
        shown = (f"{name} = {i.attribute}{f' {i.shift:+}' if i.shift else ''}" for name, i in self.images)
        return f"SchemaMapping({', '.join(shown)})"

    @property
    def time(self) -> Image | None:
        """Where the output's time comes from, if from an input attribute."""
        return self.image(TIME)

    def image(self, output: str) -> Image | None:
        """Where an output attribute comes from; None when it is computed."""
        return dict(self.images).get(output)

    def outputs(self, attribute: str) -> tuple[str, ...]:
        """The output attributes that carry an input attribute."""
        return tuple(name for name, image in self.images if image.attribute == attribute)

    def down(self, pattern: Pattern) -> Pattern | None:
        """The pattern over the output that means the same; of several images the first is constrained."""
        constraints: dict[str, Values] = {}
        same = True
        for attribute, values in pattern.items():
            found = next(((out, i) for out, i in self.images if i.attribute == attribute), None)
            if found is None:
                return None
            output, image = found
            below = image.down(values)
            if below is None:
                return None
            constraints[output] = below
            same = same and output == attribute and below is values
        return pattern if same else Pattern(**constraints)

    def up(self, pattern: Pattern) -> Pattern | None:
        """The pattern over the input that means the same; two outputs of one input both constrain it."""
        images = dict(self.images)
        constraints: dict[str, Values] = {}
        for output, values in pattern.items():
            image = images.get(output)
            if image is None:
                return None
            moved = image.up(values)
            if moved is None:
                return None
            known = constraints.get(image.attribute)
            constraints[image.attribute] = moved if known is None else known.intersect(moved)
        return Pattern(**constraints)


def _rebuilt(images: dict[str, Image]) -> SchemaMapping:
    return SchemaMapping(images, time=None)
