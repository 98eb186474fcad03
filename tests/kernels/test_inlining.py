"""Small kernels are written into the kernels that call them, and nothing else changes."""

from __future__ import annotations

import pytest

from caesura.kernels.inlining import inlined

LOOP = "def f(out, n):\n    for at in range(n):\n        g({})\n"


def run(source: str, n: int) -> list[int]:
    scope: dict[str, object] = {}
    exec(source, scope)
    out = [0] * n
    scope["f"](out, n)  # type: ignore[operator]
    return out


def test_names_of_the_small_kernel_do_not_touch_those_of_its_caller():
    small = "def g(out: list, k: int) -> None:\n    '''Squares.'''\n    at = k * k\n    out[k] = at\n"
    assert run(inlined(LOOP.format("out, at"), {"g": small}), 4) == [0, 1, 4, 9]


def test_a_kernel_that_gives_something_back_is_not_written_in():
    with pytest.raises(TypeError, match="returns nothing"):
        inlined(LOOP.format("out, at"), {"g": "def g(out, k):\n    return k\n"})


def test_only_names_and_numbers_are_given_to_it():
    with pytest.raises(TypeError, match="wants names and numbers"):
        inlined(LOOP.format("out, at + 1"), {"g": "def g(out, k):\n    out[k] = 1\n"})
