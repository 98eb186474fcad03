"""PACE by a column, deadlines over all sources, prefixes in feedback, inboxes with an end, utility."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.errors import CaesuraError
from caesura.events import Page, parse
from caesura.expr import pattern_of
from caesura.punctuation.prefixes import matching, prefix
from caesura.runtime.feedback.mailbox import MAX_UNREAD

ROWS = pa.schema([("seq", pa.int64()), ("name", pa.string())])


def some(label: str = "a", schema: pa.Schema = ROWS) -> Stream:
    return cz.input_stream(label, schema, insert_only=True)


def numbered(seq: int | None, start: int = 1) -> Page:
    return Page.of(
        pa.record_batch({"seq": pa.array([seq], pa.int64()), "name": ["x"]}), le=[start], re=[start + 1]
    )


def test_pace_may_keep_to_a_bound_of_any_column_that_rows_come_in_the_order_of() -> None:
    rng, within = random.Random(1), 4
    comes = [max(0, n + rng.randint(-9, 3)) if n % 11 else None for n in range(1, 60)]
    query = some().pace(within=within, by="seq").query()
    kept, furthest = [], -99
    for n in comes:
        query.feed("a", numbered(n))
        if n is None or n >= furthest - within:
            kept.append(n)
        furthest = max(furthest, n if n is not None else furthest)
    query.run()
    items = query.take("out")
    assert [r["seq"] for i in items if isinstance(i, Page) for r in i.payload.to_pylist()] == kept
    assert len(kept) < len(comes)
    promised = [i.pattern for i in items if not isinstance(i, Page)]
    assert str(promised[-1]) == f"seq < {furthest - within}"
    assert query.late()["pace"]["reason"].to_pylist()[0] == "more than 4 behind the furthest 'seq'"


def test_feedback_and_punctuation_of_such_a_pace_speak_of_the_column() -> None:
    query = some().pace(some("b"), within=4, by="seq").query()
    query.feed("a", numbered(20))
    query.run()
    assert [str(m.pattern) for m in query.upstream_feedback("b")] == ["seq < 16"]
    for item in parse(" LE RE | seq name |\n-- definite: seq < 40 --", ROWS):
        query.feed("b", item)
    query.run()
    query.feed("a", numbered(30))
    query.run()
    came = [r["seq"] for i in query.take("out") if isinstance(i, Page) for r in i.payload.to_pylist()]
    assert came == [20]  # what b has promised moves the mark, and the other input leaves the row out


def test_a_pace_by_timestamps_takes_a_duration_and_one_by_texts_is_refused() -> None:
    stamps = pa.schema([("at", pa.timestamp("us"))])
    assert "within 5s by at" in some(schema=stamps).pace(within="5s", by="at").explain()
    with pytest.raises(CaesuraError, match="'name' is string, whose values have no distance"):
        some().pace(within=5, by="name")


def test_a_deadline_over_all_sources_goes_by_the_one_that_has_come_furthest() -> None:
    shown = {}
    for over in ("first", "all"):
        left, right = some(), some("b")
        both = left.union(right).tumbling(100).agg(n=cz.count()).deadline(10, over=over)  # type: ignore[arg-type]
        query = both.query(speculate="watermark")
        query.feed("a", numbered(1))
        for t in (5, 20, 40):  # the first source says no more
            query.feed("b", cz.cti(t))
            query.run()
        shown[over] = sum(len(i) for i in query.take("out") if isinstance(i, Page))
    assert shown == {"first": 0, "all": 1}


TEXTS = st.text(st.sampled_from("abcd\ud7ff\U0010ffffé"), max_size=4)


@given(TEXTS, TEXTS)
def test_texts_that_begin_alike_are_a_stretch_of_their_order(start: str, text: str) -> None:
    got = Pattern(s=prefix(start)).matches({"s": pa.array([text])})
    assert got.tolist() == [text.startswith(start)]


REGEXES = ["^ab", "^(ab|b)", "^a[b-d]", "^ab.*", "^abc$", "^(a|bc)d$", "^"]
NO_SETS = ["ab", "^a+", "^a.b", r"^a\d", "(?i)^ab", "^ab|cd", "^(a", "(?m)^a"]


@pytest.mark.parametrize("regex", REGEXES)
def test_a_regular_expression_that_lists_beginnings_is_a_pattern(regex: str) -> None:
    found = matching(regex)
    assert found is not None
    texts = ["", "a", "ab", "abc", "abcd", "ad", "ae", "b", "bc", "bcd", "c", "xab"]
    wanted = pc.match_substring_regex(pa.array(texts), regex).to_pylist()
    assert Pattern(s=found).matches({"s": pa.array(texts)}).tolist() == wanted
    assert [bool(re.search(regex, text)) for text in texts] == wanted


@pytest.mark.parametrize("regex", NO_SETS)
def test_other_regular_expressions_are_no_patterns(regex: str) -> None:
    assert matching(regex) is None


def test_feedback_may_speak_of_beginnings() -> None:
    rows = [{"t": t, "name": name} for t, name in enumerate(("eu-1", "us-1", "eu-2", "asia-1"))]
    query = cz.from_rows(rows, time="t", batch_size=1).where(col("name") != "x").query()
    query.assume(col("name").startswith("eu-"))
    query.assume(col("name").rlike("^(asia|africa)-"))
    query.run()
    assert query.table()["name"].to_pylist() == ["us-1"]
    with pytest.raises(CaesuraError, match="cannot be feedback"):
        query.assume(col("name").rlike("1"))
    assert pattern_of(col("name").like("a_c"), ROWS) is None


@pytest.mark.slow
def test_an_inbox_that_nobody_reads_has_an_end_and_keeps_withdrawals_of_what_was_read() -> None:
    query = some().where(col("seq") >= 0).query()
    standing = query.assume(col("seq") == -1)
    assert len(query.upstream_feedback("a")) == 1
    for n in range(MAX_UNREAD + 50):
        query.assume(col("seq") == 2 * n)
    query.withdraw(standing)
    unread = query.upstream_feedback("a")
    assert len(unread) <= MAX_UNREAD
    assert any(m.noted("withdrawn") for m in unread)


def test_utility_is_the_share_of_rows_that_are_not_too_far_behind() -> None:
    starts = [3, 10, 4, 9, 20, 14, 15, 30]
    rows = [{"t": t} for t in starts]
    stream = cz.from_rows(rows, time="t", batch_size=3)
    wanted = sum(t >= max(starts[: n + 1]) - 5 for n, t in enumerate(starts))
    done = stream.run()
    assert (done.utility(5).useful, done.utility(5).rows) == (wanted, len(starts))
    query = stream.query()
    live = query.utility(5)
    query.run()
    assert live.useful == wanted and 0.0 < live.share < 1.0
    paced = stream.pace(within=5).run()
    assert paced.utility(5).share == 1.0
