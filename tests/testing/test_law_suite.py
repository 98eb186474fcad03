"""The law suite finds what it is there to find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from caesura.events import Item, Page, violations
from caesura.events.rows import RowState
from caesura.plan import Node, Operator, Properties, definite
from caesura.punctuation import INFINITY, Pattern, cti
from caesura.testing import assert_history, parse, run
from caesura.testing.case import LawCase, register
from caesura.testing.laws import LawError, Trial, check_all, check_laws, check_regressions, check_truth, play
from caesura.testing.spec import InputSpec

FLAWS = ["none", "drops retracts", "hurries", "never ends", "hoards", "forgets", "lags", "page matters"]
BREAKS = {
    "drops retracts": ("meaning", "truth"),
    "hurries": ("truth", "the frozen prefix"),
    "never ends": ("liveness",),
    "hoards": ("thrift",),
    "forgets": ("recovery",),
    "lags": ("liveness",),
    "page matters": ("meaning", "recovery"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Flawed(Node):
    """Passes everything on, but for one flaw."""

    flaw: str

    def output_schema(self) -> pa.Schema:
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def operator(self) -> Operator:
        return FlawedPass(self.flaw)


class FlawedPass(Operator):
    """Holds pages until the next punctuation, so that it has state."""

    def __init__(self, flaw: str) -> None:
        super().__init__()
        self.flaw = flaw
        self.seen = RowState({"le": np.int64})
        self.held: list[Page] = []

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self.flaw in ("hoards", "forgets"):
            self.seen.append({"le": page.le})
        if self.flaw == "drops retracts" and page.retracts is not None:
            page = page.filter(~page.retracts)
        if self.flaw == "page matters" and len(page) > 2:
            page = page.slice(0, 2)
        if self.flaw == "forgets":
            self.held.append(page)
            return []
        return [page]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        if self.flaw == "forgets" and pattern == Pattern():
            self.seen.kill(np.flatnonzero(self.seen.alive))
            return [*self.held, *definite(pattern)]
        if self.flaw == "forgets" or (self.flaw == "never ends" and pattern == Pattern()):
            return []
        t = pattern.time_bound
        if t is not None and t < INFINITY and pattern.attributes == ("time",):
            moved = {"hurries": t + 1, "lags": t - 1}.get(self.flaw, t)
            return [cti(moved)]
        return definite(pattern)

    def states(self) -> dict[str, RowState]:
        return {"seen": self.seen}


def flawed(flaw: str) -> LawCase:
    live = None if flaw == "forgets" else (lambda ctis: min(ctis))
    spec = InputSpec({"id": "key", "v": "int"}, key="id")
    return LawCase(
        flaw, lambda a: Flawed(inputs=(a,), flaw=flaw), lambda a, **_: a, (spec,), live, paces=("arrival",)
    )


def check(case: LawCase, examples: int = 400) -> None:
    @settings(max_examples=examples, deadline=None, database=None, phases=(Phase.generate,))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_laws(case, data)

    holds()


@pytest.mark.slow
def test_an_operator_without_a_flaw_passes() -> None:
    check(flawed("none"), examples=50)


@pytest.mark.thin(2)
@pytest.mark.parametrize("flaw", FLAWS[1:])
def test_a_flaw_breaks_its_law(flaw: str) -> None:
    with pytest.raises(LawError) as caught:
        check(flawed(flaw))
    head = str(caught.value).splitlines()[0]
    assert any(f"the law of {law} does not hold" in head for law in BREAKS[flaw]), head


KEPT_INPUT = [("a", " LE RE | id v |\n 1 2 | 0 0 | +\n 1 2 | 0 0 | +\n 1 2 | 0 0 | +\n-- definite: * --")]


def test_a_failure_shows_what_was_fed_wanted_and_got() -> None:
    with pytest.raises(LawError) as caught:
        check_all(Trial(flawed("page matters"), flawed("none").undraw(KEPT_INPUT)))
    text = str(caught.value)
    assert all(word in text for word in ("fed:", "[a]", "wanted:", "got:", "only wanted: (", "came out:"))


def test_a_kept_input_is_checked_again() -> None:
    spec = InputSpec({"id": "key", "v": "int"}, key="id")
    for flaw in ("none", "page matters"):
        case = LawCase(
            flaw,
            lambda a, flaw=flaw: Flawed(inputs=(a,), flaw=flaw),
            lambda a, **_: a,
            (spec,),
            regressions=(KEPT_INPUT,),
        )
        if flaw == "none":
            check_regressions(case)
            continue
        with pytest.raises(LawError, match="law of meaning"):
            check_regressions(case)


def test_a_name_is_registered_once() -> None:
    case = flawed("taken twice")
    assert register(case) is register(case)
    with pytest.raises(ValueError, match="taken twice"):
        register(flawed("taken twice"))


def test_histories_that_differ_are_shown_with_both_differences() -> None:
    trial = Trial(flawed("none"), flawed("none").undraw(KEPT_INPUT))
    assert violations(play(trial).items) == []
    check_truth(trial, play(trial).items)
    out: Any = run(trial.plan, {"a": " LE RE | id v |\n 1 5 | 0 0 | +\n 1 5->3 | 0 0 | -"})
    assert_history(out, " LE RE | id v |\n 1 3 | 0 0 | +")
    with pytest.raises(AssertionError, match="only wanted") as caught:
        assert_history(out, " LE RE | id v |\n 1 4 | 0 0 | +")
    assert " 1  3  | 0  0 | only got\n  1  4  | 0  0 | only wanted" in str(caught.value)


def test_rows_that_both_histories_have_are_left_out_far_from_what_differs() -> None:
    drawn = "".join(f" {t} {t + 1} | {t} |\n" for t in range(10, 30))
    with pytest.raises(AssertionError) as caught:
        assert_history(parse(" LE RE | id |\n" + drawn), " LE RE | id |\n 9 10 | 9 |\n" + drawn)
    assert str(caught.value).splitlines()[1:] == [
        "  LE  RE | id |",
        "   9  10 | 9  | only wanted",
        "  10  11 | 10 |",
        "  11  12 | 11 |",
        "  ... 18 rows alike",
    ]


def test_a_drawing_of_other_columns_is_no_match() -> None:
    with pytest.raises(AssertionError, match="wanted: name\ngot: id"):
        assert_history(parse(" LE RE | id |\n 1 2 | 7 | +"), " LE RE | name |\n 1 2 | 7 | +")


def test_no_output_is_an_empty_history() -> None:
    assert_history([], " LE RE | id |")
