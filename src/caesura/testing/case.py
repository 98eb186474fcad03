"""A law case: a plan to build, the oracle it must agree with, and what its inputs look like.

>>> from caesura.testing import oracles
>>> from caesura.testing.spec import InputSpec
>>> numbers = InputSpec({"id": "key", "v": "int"}, key="id")
>>> case = LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(numbers,))
>>> case.plan().schema.names
['id', 'v']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from caesura.events import Item, Page, parse
from caesura.ops.input import Input
from caesura.plan import Node
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern
from caesura.testing.host import Pace
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec, PunctuationKind

LABELS = "abcdefgh"
EACH_KIND: tuple[tuple[PunctuationKind, ...], ...] = (("time",), ("key",), ("time", "key", "both"))

Drawn: TypeAlias = Sequence[tuple[str, str]]
"""A kept input: (label, drawn stream) in the order in which they are fed."""
ENDS_OF_TIME = (INFINITY - 22, MIN_TIME + 5)
"""Origins of rows that lie at the ends of time: up to the last start, and from the first on."""
Fed: TypeAlias = list[tuple[int, Item]]
"""Items with the number of the input that they are fed to."""


@dataclass(frozen=True)
class LawCase:
    """One operator, or one plan, and how to know that it is right."""

    name: str
    build: Callable[..., Node]
    """From one `Input` per spec to the node under test."""
    oracle: Callable[..., Rows]
    """From one history per input to the output's; `patterns=` gives each input's definite patterns."""
    inputs: tuple[InputSpec, ...]
    liveness: Callable[[tuple[int, ...]], int] | None = None
    """From the inputs' CTIs to the least CTI that the output must have given."""
    state_bound: Callable[[tuple[int, ...]], int] | None = None
    """From the inputs' live rows to the most rows that the plan may hold."""
    linger: int = 0
    """How many ticks past its end a row may still be needed, for example until its window closes."""
    paces: tuple[Pace, ...] = ("arrival", "passed", "watermark")
    regressions: tuple[Drawn, ...] = field(default=())
    """Inputs that once broke a law."""

    def __str__(self) -> str:
        return self.name

    def plan(self) -> Node:
        """The step under test, on fresh inputs.

        Returns
        -------
        Node
            A plan's step.

        Examples
        --------
        >>> from caesura.testing.case import LawCase
        >>> from caesura.testing.spec import InputSpec
        >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
        >>> case = LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(spec,))
        >>> case.plan().schema.names
        ['id', 'v']
        """
        nodes = [
            Input(label=label, payload=spec.schema, known=spec.known)
            for label, spec in zip(LABELS, self.inputs, strict=False)
        ]
        return self.build(*nodes)

    def about(self, origin: int) -> LawCase:
        """The same case with rows that start about another time.

        Parameters
        ----------
        origin
            The time, in ticks.

        Returns
        -------
        LawCase
            The case.

        Examples
        --------
        >>> from caesura.testing.case import LawCase
        >>> from caesura.testing.spec import InputSpec
        >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
        >>> case = LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(spec,))
        >>> case.about(1000).inputs[0].origin
        1000
        """
        return replace(self, inputs=tuple(replace(spec, origin=origin) for spec in self.inputs))

    def kinds(self) -> tuple[tuple[PunctuationKind, ...], ...]:
        """Which punctuation to try, one run for each: on time, on the key, on all.

        Returns
        -------
        tuple
            For each run what punctuation speaks of; without a key, time alone.

        Examples
        --------
        >>> from caesura.testing.case import LawCase
        >>> from caesura.testing.spec import InputSpec
        >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
        >>> LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(spec,)).kinds()
        (('time',), ('key',), ('time', 'key', 'both'))
        """
        keyed = any(spec.key for spec in self.inputs)
        return EACH_KIND if keyed else EACH_KIND[:1]

    def expected(self, histories: Sequence[Rows], fed: Fed) -> Rows:
        """What the oracle says of histories.

        Parameters
        ----------
        histories
            The rows of each input.
        fed
            The items that the inputs were fed, each with the number of its input.

        Returns
        -------
        list
            The rows that must come out.

        Examples
        --------
        >>> from caesura.testing.case import LawCase
        >>> from caesura.testing.spec import InputSpec
        >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
        >>> case = LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(spec,))
        >>> case.expected([[(1, 5, {"id": 1, "v": 2})]], [])
        [(1, 5, {'id': 1, 'v': 2})]
        """
        patterns: list[list[Pattern]] = [[] for _ in self.inputs]
        for number, item in fed:
            if not isinstance(item, Page) and item.intent is Intent.DEFINITE:
                patterns[number].append(item.pattern)
        return self.oracle(*histories, patterns=patterns)

    def undraw(self, drawn: Drawn) -> Fed:
        """Kept inputs as items.

        Parameters
        ----------
        drawn
            Labels and drawn streams, in the order in which they are fed.

        Returns
        -------
        list
            Items with the number of the input that each is fed to.

        Examples
        --------
        >>> from caesura.testing.case import LawCase
        >>> from caesura.testing.spec import InputSpec
        >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
        >>> case = LawCase("identity", build=lambda a: a, oracle=lambda a, **_: a, inputs=(spec,))
        >>> fed = case.undraw([("a", '''
        ...  LE RE | id v |
        ...   1 5  | 1  2 | +
        ... ''')])
        >>> fed[0][0], len(fed[0][1])
        (0, 1)
        """
        return [
            (LABELS.index(label), item)
            for label, text in drawn
            for item in parse(text, self.inputs[LABELS.index(label)].schema)
        ]


_registry: dict[str, LawCase] = {}


def register(case: LawCase) -> LawCase:
    """Enters a case into the suite; a name can be taken once."""
    if _registry.setdefault(case.name, case) is not case:
        raise ValueError(f"a law case is called '{case.name}' already")
    return case


def cases() -> tuple[LawCase, ...]:
    """All registered cases."""
    return tuple(_registry.values())
