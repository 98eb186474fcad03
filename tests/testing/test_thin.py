"""Of a search a share of its cases runs in the short form: the same everywhere, and some of each kind."""

from __future__ import annotations

import pytest
from thin import LEAST, kept

CASES = {
    f"{k}-{p}-{n}": {"kind": k, "pace": p, "n": str(n)} for k in "abcd" for p in "xyz" for n in range(20)
}


@pytest.mark.parametrize("share", [2, 5, 12, 24])
def test_one_in_so_many_is_kept(share: int) -> None:
    assert len(kept(CASES, share)) == len(CASES) // share


def test_every_value_is_among_them_where_there_is_room() -> None:
    some = [CASES[name] for name in kept(CASES, 24)]
    assert {case["kind"] for case in some} == set("abcd") and {case["pace"] for case in some} == set("xyz")


def test_the_same_are_kept_whatever_the_order() -> None:
    assert kept(CASES, 10) == kept(dict(reversed(CASES.items())), 10)


def test_a_few_are_kept_of_the_smallest_search() -> None:
    assert len(kept({"a": {"n": "1"}, "b": {"n": "2"}}, 9)) == 2
    assert len(kept({str(n): {"n": str(n)} for n in range(9)}, 9)) == LEAST
