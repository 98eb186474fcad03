"""Small domains, and sets over them drawn together with the plain Python set of what is in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

from hypothesis import strategies as st

from caesura.punctuation import ANY, NOT_NULL, NULL, Pattern, Values, between, ge, gt, le, lt, one_of, value

Drawn = tuple[Values, frozenset[int]]  # a set of values, and the places of its members among the probes

INTS: tuple[Any, ...] = (None, *range(-5, 6))
FLOATS: tuple[Any, ...] = (None, -math.inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, math.inf, math.nan)
STRINGS: tuple[Any, ...] = (None, "", "Z", "a", "aa", "b", "c")
LITERALS: dict[str, list[Any]] = {
    "int": list(range(-3, 4)),
    "float": [-math.inf, -1.0, 0.0, 1.0, math.inf, math.nan],
    "str": ["", "a", "b"],
}
PROBES = {"int": INTS, "float": FLOATS, "str": STRINGS}


def rank(item: Any) -> tuple[bool, Any]:
    """The order of a domain, NaN last."""
    missing = isinstance(item, float) and math.isnan(item)
    return missing, 0.0 if missing else item


def members(kind: str, test: Callable[[Any], bool]) -> frozenset[int]:
    return frozenset(at for at, item in enumerate(PROBES[kind]) if item is not None and test(rank(item)))


@st.composite
def literals(draw: st.DrawFn, kind: str) -> Drawn:
    a, b = draw(st.sampled_from(LITERALS[kind])), draw(st.sampled_from(LITERALS[kind]))
    some = draw(st.lists(st.sampled_from(LITERALS[kind]), max_size=4))
    x, y = rank(a), rank(b)
    everything = members(kind, lambda _: True)
    return draw(
        st.sampled_from(
            [
                (value(a), members(kind, lambda i: i == x)),
                (one_of(some), members(kind, lambda i: i in [rank(s) for s in some])),
                (lt(a), members(kind, lambda i: i < x)),
                (le(a), members(kind, lambda i: i <= x)),
                (gt(a), members(kind, lambda i: i > x)),
                (ge(a), members(kind, lambda i: i >= x)),
                (between(a, b), members(kind, lambda i: x <= i <= y)),
                (between(a, b, closed="left"), members(kind, lambda i: x <= i < y)),
                (between(a, b, closed="right"), members(kind, lambda i: x < i <= y)),
                (between(a, b, closed="neither"), members(kind, lambda i: x < i < y)),
                (NULL, frozenset({0})),
                (NOT_NULL, everything),
                (ANY, everything | {0}),
            ]
        )
    )


@st.composite
def sets(draw: st.DrawFn, kind: str) -> Drawn:
    """A set built from a few literals by a few operations."""
    result, inside = draw(literals(kind))
    whole = frozenset(range(len(PROBES[kind])))
    for operation in draw(
        st.lists(st.sampled_from(["union", "intersect", "minus", "complement"]), max_size=3)
    ):
        other, others = draw(literals(kind))
        match operation:
            case "union":
                result, inside = result.union(other), inside | others
            case "intersect":
                result, inside = result.intersect(other), inside & others
            case "minus":
                result, inside = result.minus(other), inside - others
            case "complement":
                result, inside = result.complement(), whole - inside
    return result, inside


TIMES = range(0, 6)
IDS: tuple[Any, ...] = (None, 0, 1, 2, 3)
NAMES: tuple[Any, ...] = (None, "a", "b")
POINTS = [dict(zip(("time", "id", "name"), point, strict=True)) for point in product(TIMES, IDS, NAMES)]

times = st.one_of(
    st.integers(0, 6).map(lt),
    st.just(NOT_NULL),
    st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda ends: between(*ends)),
    st.lists(st.sampled_from(list(TIMES)), max_size=3).map(one_of),
)
prefixes = st.one_of(st.integers(0, 6).map(lt), st.just(NOT_NULL))
ids = st.one_of(
    st.just(ANY),
    st.sampled_from(IDS).map(value),
    st.integers(0, 3).map(lt),
    st.integers(0, 3).map(ge),
    st.lists(st.sampled_from(IDS), min_size=1, max_size=3).map(one_of),
)
names = st.one_of(st.just(ANY), st.sampled_from(NAMES).map(value), st.just(ge("b")))


def pattern_of(time: Values, id_: Values, name: Values) -> Pattern:
    return Pattern(time=time, id=id_, name=name)


patterns = st.builds(pattern_of, times, ids, names)
prefix_patterns = st.builds(pattern_of, prefixes, ids, names)


def inside(pattern: Pattern) -> frozenset[int]:
    """Which points match, one by one."""
    return frozenset(at for at, point in enumerate(POINTS) if pattern.matches_row(point))
