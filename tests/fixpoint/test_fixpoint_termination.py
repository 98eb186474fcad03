"""Why a loop ends is found before it runs; a loop without a reason is refused, with what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura import col, lit
from caesura.api import Stream
from caesura.errors import PlanError
from caesura.fixpoint import Fixpoint, Keep

SEED = cz.input_stream("seed", pa.schema([("n", pa.int64()), ("v", pa.int64())]))
LINKS = cz.input_stream("links", pa.schema([("a", pa.int64()), ("b", pa.int64()), ("w", pa.int64())]))
PATHS = cz.input_stream("paths", pa.schema([("n", pa.string()), ("path", pa.string())]))
NAMED = cz.input_stream("named", pa.schema([("a", pa.string()), ("b", pa.string())]))

Step = Callable[[Stream], Stream]


def hop(r: Stream, links: Stream = LINKS, how: Any = "inner") -> Stream:
    return r.join(links, on={"n": "a"}, how=how)


def counted(r: Stream) -> Stream:
    return r.where(col("v") < 9).select("n", v=col("v") + 1)


def later(r: Stream) -> Stream:
    return r.select(m=col("n"), u=col("v") + 1)


def longer(r: Stream) -> Stream:
    return hop(r, LINKS.where(col("w") > 0)).select(n=col("b"), v=col("v") + col("w"))


def because(step: Step, seed: Stream = SEED, keep: Keep | None = None) -> str:
    node = cz.fixpoint(seed, step, keep=keep or "all").node
    assert isinstance(node, Fixpoint)
    return node.because


ENDS: dict[str, tuple[Step, str]] = {
    "a counter below a bound": (
        lambda r: hop(r).where(col("v") < 9).select(n=col("b"), v=col("v") + 1),
        "'v' grows towards a bound",
    ),
    "a counter tested after it moved": (
        lambda r: hop(r).select(n=col("b"), v=col("v") + 2).where(col("v") <= 9),
        "'v' grows towards a bound",
    ),
    "a way with a length, tested behind the step": (
        lambda r: longer(r).where(col("v") < 9),
        "'v' grows towards a bound",
    ),
    "a way with a length, tested in front": (
        lambda r: longer(r.where(col("v") < 9)),
        "'v' grows towards a bound",
    ),
    "a way with a length and a step, tested behind": (
        lambda r: (
            hop(r, LINKS.where(col("w") >= 0))
            .select(n=col("b"), v=col("v") + col("w") + 1)
            .where(col("v") < 9)
        ),
        "'v' grows towards a bound",
    ),
    "what is taken away, tested behind the step": (
        lambda r: (
            hop(r, LINKS.where(col("w") > 0)).select(n=col("b"), v=col("v") - col("w")).where(col("v") >= 0)
        ),
        "'v' falls towards a bound",
    ),
    "rows that come ever later, tested in front": (
        lambda r: r.where(cz.start() < 6).shift(1),
        "'start()' grows towards a bound",
    ),
    "rows that come ever later, tested behind": (
        lambda r: r.shift(1).where(cz.start() < 6),
        "'start()' grows towards a bound",
    ),
    "rows that come ever later over what they meet": (
        lambda r: hop(r).select(n=col("b"), v=col("v")).shift(2).set_duration(3).where(cz.start() <= 6),
        "'start()' grows towards a bound",
    ),
    "a counter that falls": (
        lambda r: r.where(lit(0) < col("v")).select("n", v=col("v") - 1),
        "'v' falls towards a bound",
    ),
    "a number that must grow": (
        lambda r: r.join(LINKS, on={"n": "a"}, where=col("w") > col("v")).select(n=col("b"), v=col("w")),
        "'v' strictly grows through a stream from outside",
    ),
    "the next number": (
        lambda r: (
            r.select("n", ahead=col("v") + 1)
            .join(LINKS, on={"n": "a", "ahead": "w"})
            .select(n=col("b"), v=col("ahead"))
        ),
        "'v' strictly grows through a stream from outside",
    ),
    "a visited set": (
        lambda r: (
            hop(r)
            .where(col("v").bit_and(lit(1).shift_left(col("b"))) == 0)
            .select(n=col("b"), v=lit(1).shift_left(col("b")).bit_or(col("v")))
        ),
        "'v' grows by what it is tested not to have",
    ),
    "two ways, both counted": (
        lambda r: (
            hop(r.where(col("v") < 5))
            .select(n=col("b"), v=col("v") + 1)
            .union(r.where(col("v") < 7).select("n", v=col("v") + 3))
        ),
        "'v' grows towards a bound",
    ),
    "what is not there a round before": (
        lambda r: SEED.join(later(r), on={"n": "m", "v": "u"}, how="anti"),
        "'v' strictly grows through a stream from outside",
    ),
    "what the round before had not": (
        lambda r: counted(r).difference(counted(r.where(col("n") > 1))),
        "'v' grows towards a bound",
    ),
    "rows that meet nothing, counted": (
        lambda r: hop(r.where(col("v") < 5), LINKS, "left").select(n=col("b"), v=col("v") + 1),
        "'v' grows towards a bound",
    ),
    "two rows of one round": (
        lambda r: counted(r.join(r.rename(m="n", u="v"), on={"v": "u"})),
        "'v' grows towards a bound",
    ),
    "a counter, and rows from outside": (
        lambda r: counted(r).union(SEED),
        "'v' grows towards a bound",
    ),
    "finitely many rows": (
        lambda r: hop(r).select(n=col("b"), v=col("v")).distinct(),
        "each row counts once, and its columns are carried or come from outside",
    ),
}


@pytest.mark.parametrize(("step", "reason"), ENDS.values(), ids=ENDS.keys())
def test_a_reason_why_a_loop_ends_is_found(step: Step, reason: str) -> None:
    assert because(step) == reason


def test_a_path_that_is_tested_ends() -> None:
    def walk(r: Stream) -> Stream:
        met = r.join(NAMED, on={"n": "a"}).where(~col("path").contains(col("b")))
        return met.select(n=col("b"), path=col("path").concat(lit("/"), col("b")))

    assert because(walk, PATHS) == "'path' grows by what it is tested not to have"


def test_a_set_that_is_tested_ends_and_another_test_does_not_do() -> None:
    def walk(r: Stream, asked: str = "b") -> Stream:
        met = r.join(NAMED, on={"n": "a"}).where(~col("seen").set_has(col(asked)))
        return met.select(n=col("b"), seen=col("seen").set_add(lit("x")).set_add(col("b")))

    seed = PATHS.select("n", seen=cz.set_of("n"))
    assert because(walk, seed) == "'seen' grows by what it is tested not to have"
    with pytest.raises(PlanError, match="nothing shows that the loop ends"):
        because(lambda r: walk(r, "n"), seed)


def test_a_value_that_cannot_get_better_ends() -> None:
    def drive(r: Stream) -> Stream:
        return hop(r, LINKS.where(col("w") > 0)).select(n=col("b"), v=col("v") + col("w"))

    assert because(drive, keep=cz.least("v", per="n")) == "only the least 'v' counts, and it never gets less"

    def narrow(r: Stream) -> Stream:
        return hop(r).select(n=col("b"), v=col("v").least(col("w")))

    assert "never gets greater" in because(narrow, keep=cz.greatest("v", per="n"))


ENDLESS: dict[str, tuple[Step, str]] = {
    "every way counts": (lambda r: hop(r).select(n=col("b"), v=col("v")), "no column is seen to move"),
    "a counter without a bound": (
        lambda r: hop(r).select(n=col("b"), v=col("v") + 1),
        "'v' changes by 1 in every round, but no test bounds it",
    ),
    "a length without a bound": (longer, "'v' changes by w in every round, but no test bounds it"),
    "a length that may be 0, tested behind the step": (
        lambda r: hop(r).select(n=col("b"), v=col("v") + col("w")).where(col("v") < 9),
        "'v' changes by w in every round, which no test shows to be above 0",
    ),
    "a length tested on the wrong side": (lambda r: longer(r).where(col("v") > 9), "no test bounds it"),
    "a length of which every number is below": (
        lambda r: longer(r).where(col("v") < lit(float("inf"))),
        "no test bounds it",
    ),
    "a start without a bound": (
        lambda r: r.shift(1),
        r"'start\(\)' changes by 1 in every round, but no test bounds it",
    ),
    "a start bounded on the wrong side": (
        lambda r: r.shift(1).where(cz.start() > 6),
        r"'start\(\)' changes by 1 in every round, but no test bounds it",
    ),
    "a start that stays": (lambda r: r.extend(1).where(cz.start() < 6), "no column is seen to move"),
    "a start that is rounded, and then tested": (
        lambda r: r.start_at(3).where(cz.start() < 6),
        "no column is seen to move",
    ),
    "a counter bounded on the wrong side": (
        lambda r: hop(r).where(col("v") > 9).select(n=col("b"), v=col("v") + 1),
        "no test bounds it",
    ),
    "a number that may stay": (
        lambda r: r.join(LINKS, on={"n": "a"}, where=col("w") >= col("v")).select(n=col("b"), v=col("w")),
        "'v' may stay the same",
    ),
    "one way counted, the other not": (
        lambda r: (
            hop(r.where(col("v") < 5))
            .select(n=col("b"), v=col("v") + 1)
            .union(hop(r).select(n=col("b"), v=col("v")))
        ),
        "nothing shows that the loop ends",
    ),
    "another bit than the one tested": (
        lambda r: (
            hop(r)
            .where(col("v").bit_and(lit(1).shift_left(col("b"))) == 0)
            .select(n=col("b"), v=col("v").bit_or(lit(1).shift_left(col("w"))))
        ),
        "no column is seen to move",
    ),
    "what is not there: the right side of a difference": (
        lambda r: counted(r).difference(r),
        "nothing shows that the loop ends",
    ),
    "the right side of a difference alone": (lambda r: SEED.difference(r), "no column is seen to move"),
    "the right side of an anti join": (
        lambda r: counted(r).join(r.rename(m="n", u="v"), on={"n": "m"}, how="anti"),
        "nothing shows that the loop ends",
    ),
    "the right side of a semi join": (
        lambda r: counted(r).join(r.rename(m="n", u="v"), on={"n": "m"}, how="semi"),
        "nothing shows that the loop ends",
    ),
    "a counter of one row, tested on another": (
        lambda r: counted(r).join(r.rename(m="n", u="v"), on={"n": "m"}).select("n", v=col("u") + 1),
        "nothing shows that the loop ends",
    ),
    "rows that come ever later": (
        lambda r: hop(r).select(n=col("b"), v=col("v")).shift(1).distinct(),
        "moves a lifetime on in every round",
    ),
    "rows that live ever longer": (lambda r: r.extend(1).distinct(), "moves a lifetime on in every round"),
    "distinct rows, but ever new ones": (
        lambda r: hop(r).select(n=col("b"), v=col("v") + col("w")).distinct(),
        "'v' is computed anew in every round",
    ),
}


def extreme(r: Stream, by: int, **results: cz.Aggregate) -> Stream:
    """The value moves towards a tested bound, and results are computed of each group."""
    test = col("v") < 9 if by > 0 else col("v") > 0
    return r.where(test).select("n", v=col("v") + by).group_by("n").snapshot().agg(**results).select("n", "v")


def test_the_least_of_a_group_may_grow_and_the_greatest_fall() -> None:
    assert because(lambda r: extreme(r, 1, v=cz.min("v"))) == "'v' grows towards a bound"
    assert because(lambda r: extreme(r, -1, v=cz.max("v"))) == "'v' falls towards a bound"

    def later(r: Stream) -> Stream:
        met = hop(r).where(col("w") > col("v")).select(n=col("b"), v=col("w"))
        return met.group_by("n").snapshot().agg(v=cz.min("v"))

    assert because(later) == "'v' strictly grows through a stream from outside"


@pytest.mark.parametrize(
    ("by", "results"),
    [
        (1, {"v": cz.max("v")}),
        (-1, {"v": cz.min("v")}),
        (1, {"v": cz.min("v"), "most": cz.max("v")}),
        (1, {"v": cz.sum("v")}),
    ],
    ids=str,
)
def test_a_result_that_rests_on_rows_past_it_is_refused(by: int, results: dict[str, cz.Aggregate]) -> None:
    with pytest.raises(PlanError, match="nothing shows that the loop ends"):
        cz.fixpoint(SEED, lambda r: extreme(r, by, **results))


@pytest.mark.parametrize(("step", "missing"), ENDLESS.values(), ids=ENDLESS.keys())
def test_a_loop_without_a_reason_to_end_is_refused(step: Step, missing: str) -> None:
    with pytest.raises(PlanError, match=missing):
        cz.fixpoint(SEED, step)


def test_a_value_that_may_get_better_is_refused() -> None:
    def drive(r: Stream) -> Stream:
        return hop(r).select(n=col("b"), v=col("v") + col("w"))

    with pytest.raises(PlanError, match="'v' becomes v \\+ w, which may be better") as error:
        cz.fixpoint(SEED, drive, keep=cz.least("v", per="n"))
    assert error.value.remedy == "Test that w >= 0 where it comes in, for example with where(...)."


def test_a_test_that_a_worse_value_passes_is_refused() -> None:
    def drive(r: Stream) -> Stream:
        return hop(r, LINKS.where(col("w") > 0)).where(col("v") > 3).select(n=col("b"), v=col("v") + col("w"))

    with pytest.raises(PlanError, match="reads 'v', of which the loop keeps only the least"):
        cz.fixpoint(SEED, drive, keep=cz.least("v", per="n"))


def test_a_float_is_no_counter() -> None:
    """A large one plus 1 is the same number."""
    seed = SEED.select("n", v=col("v").cast("double"))
    with pytest.raises(PlanError, match="'v' is a float, which adding 1 may leave as it is"):
        cz.fixpoint(seed, lambda r: r.where(col("v") < 9).select("n", v=col("v") + 1))


REFUSED: dict[str, tuple[Step, str]] = {
    "a lifetime of rows that count once": (
        lambda r: hop(r).select(n=col("b"), v=col("v")).set_duration(3).union(r).distinct(),
        "'set_duration'.*looks at whole lifetimes",
    ),
    "the start of rows that count once": (
        lambda r: r.where(cz.start() > 3).distinct(),
        "'where'.*looks at whole lifetimes",
    ),
    "a window": (lambda r: r.group_by("n").tumbling(5).agg(v=cz.sum("v")), "'tumbling'.*earlier time"),
    "a shift back": (lambda r: r.shift(-2), "'shift'.*earlier time"),
    "totals": (lambda r: r.group_by("n").totals(v=cz.sum("v")), "'totals'.*waits for punctuation"),
    "the step's own input": (lambda r: r, "gives its own input back"),
    "a step without its input": (lambda r: SEED.where(col("n") > 1), "does not use the stream"),
    "other columns": (lambda r: r.select("n", v=col("v").cast("double")), "the seed has the columns"),
}


@pytest.mark.parametrize(("step", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_step_that_may_not_stand_on_a_loop_is_refused(step: Step, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        cz.fixpoint(SEED, step)


@pytest.mark.parametrize("how", ["left", "anti", "full"])
def test_a_loop_of_distinct_rows_refuses_to_take_rows_away(how: str) -> None:
    def lose(r: Stream) -> Stream:
        return SEED.join(r.rename(m="n", k="v"), on={"n": "m"}, how=how).select("n", "v").distinct()  # type: ignore[arg-type]

    with pytest.raises(PlanError, match="may take rows away"):
        cz.fixpoint(SEED, lose)


def test_a_recursive_stream_may_not_leave_its_loop() -> None:
    kept: list[Stream] = []

    def leak(r: Stream) -> Stream:
        kept.append(r)
        return hop(r).select(n=col("b"), v=col("v")).distinct()

    cz.fixpoint(SEED, leak)
    with pytest.raises(PlanError, match="outside of its loop"):
        kept[0].query()
    with pytest.raises(PlanError, match="recursive stream of another loop"):
        cz.fixpoint(SEED, lambda r: r.union(kept[0]).distinct())


def test_equal_loops_are_one_and_other_loops_are_not() -> None:
    def step(r: Stream) -> Stream:
        return hop(r).select(n=col("b"), v=col("v")).distinct()

    def other(r: Stream) -> Stream:
        return hop(r.where(col("v") > 1)).select(n=col("b"), v=col("v")).distinct()

    one, two, three = cz.fixpoint(SEED, step), cz.fixpoint(SEED, step), cz.fixpoint(SEED, other)
    assert one.node.fingerprint == two.node.fingerprint != three.node.fingerprint


def points(*rows: dict[str, int]) -> Stream:
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(1))


def test_ways_up_to_a_length_are_those_that_a_search_finds() -> None:
    links = [(a, (a * 5 + w) % 7, w) for a in range(7) for w in (1, 2, 4)]
    seed = points({"ts": 0, "n": 0, "v": 0})
    read = points(*({"ts": 0, "a": a, "b": b, "w": w} for a, b, w in links))

    def step(r: Stream) -> Stream:
        met = hop(r, read.where(col("w") > 0))
        return met.select(n=col("b"), v=col("v") + col("w")).where(col("v") < 8)

    wanted, front = [(0, 0)], [(0, 0)]
    while front:
        front = [(b, v + w) for n, v in front for a, b, w in links if a == n and v + w < 8]
        wanted += front
    found = cz.fixpoint(seed, step, keep="all").run().table().to_pylist()
    assert sorted((row["n"], row["v"]) for row in found) == sorted(wanted) and len(wanted) > 70


@pytest.mark.parametrize("first", ["shift", "where"])
def test_rows_that_come_ever_later_end_where_their_start_is_tested(first: str) -> None:
    def step(r: Stream) -> Stream:
        if first == "shift":
            return r.shift(2).where(cz.start() < 6)
        return r.where(cz.start() < 6).shift(2)

    loop = cz.fixpoint(points({"ts": 0, "n": 1}, {"ts": 3, "n": 2}), step, keep="all")
    starts = sorted((row["n"], row["LE"]) for row in loop.run().table().to_pylist())
    last = {"shift": [(1, 0), (1, 2), (1, 4), (2, 3), (2, 5)], "where": []}
    assert starts == (last[first] or [(1, 0), (1, 2), (1, 4), (1, 6), (2, 3), (2, 5), (2, 7)])
