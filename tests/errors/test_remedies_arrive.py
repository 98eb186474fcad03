"""Who does what a diagnostic says arrives."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from depth import DEPTH, seed_of
from followed_advice import followed, problem_of, template_of
from golden_scripts import ALL, Golden, said

import caesura as cz
from caesura import Expr, Stream, col, lit, matched
from caesura.errors import CaesuraError


def rows() -> Stream:
    return cz.from_rows([{"ts": n, "till": n + 2, "v": n * 7 % 5} for n in range(9)], time="ts", end="till")


READ = {
    "the start": (col("V.ts"), col("V.ts")),
    "the end": (col("V.till"), col("V.till")),
    "the first start": (matched.first("V.ts"), matched.first("V.ts")),
    "the latest end": (lit(1) * cz.max("V.till"), lit(1) * cz.max("V.till")),
    "start()": (cz.start(), col("at")),
    "end()": (cz.end(), col("at")),
    "what lies between": (col("V.v") + (cz.end() - cz.start()), col("V.v") + col("at")),
}
"""What is written at first, and what the remedy says to read instead."""


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("place", ["measures", "define"])
def test_a_time_that_a_match_reads_can_be_read_as_the_remedy_says(name: str, place: str) -> None:
    wrong, right = READ[name]

    def matches(stream: Stream, value: object) -> Stream:
        if place == "measures":
            return stream.match_rows("A V+", measures={"t": value})
        assert isinstance(value, Expr)
        return stream.match_rows("A V+", define={"V": value >= 0}, measures={"n": cz.count()})

    with pytest.raises(CaesuraError) as caught:
        matches(rows(), wrong)
    written = re.search(r"\.with_columns\((\w+)=cz\.(start|end)\(\)\)", caught.value.remedy)
    assert written, caught.value.remedy
    kept = rows().with_columns(**{written[1]: getattr(cz, written[2])()})
    assert matches(kept, right).run().table().num_rows > 0


AWAY = ("cli", "kafka", "postgres", "spark")
"""Rooms whose remedies are followed outside of a script: on a command line, a server, a cluster."""
UNKNOWN = """
    api pipeline_without_a_view
    api pipeline_without_views
    api pipeline_of_no_stream
    api a_policy_of_no_duration
    console console_for_other_machines_without_a_password
    contracts scheme_that_the_policy_does_not_give
    contracts scheme_that_says_nothing_of_the_time_that_the_policy_gives
    contracts scheme_that_promises_a_time_that_the_policy_does_not_give
    contracts against_the_policy
    expr expression_of_lifetimes_without_lifetimes
    expr a_registered_name_that_is_not_there
    io file_with_a_header_and_no_row
    io tuples_without_names
    io type_that_changes_between_files
    io type_that_changes_between_parquet_files
    io wrong_type_in_rows
    io wrong_type_of_time
    io rows_that_together_fit_no_schema
    io debezium_nowhere
    io debezium_topic_without_columns
    io a_checkpoint_that_another_process_has
    io lenient_lines_without_a_schema
    ops join_within_an_interval_of_both_sides
    punctuation pattern_without_a_column
    qre qre_type_of_a_query_without_items
    runtime state_of_another_source
    runtime a_sink_without_a_checkpoint
    runtime recorded_without_a_checkpoint
    sql sql_that_is_no_text
"""
"""Remedies with a place for what no program can know: a schema, a stream, a password, another folder."""
UNKNOWN_NAMES = {"-".join(line.split()) for line in UNKNOWN.strip().splitlines()}
SHOWN_AT_ONCE = 40


def advised() -> list[tuple[Golden, list[str]]]:
    """The scripts whose remedies a program can follow; of each template a few, and in a soak all."""
    found: dict[str, list[tuple[Golden, list[str]]]] = {}
    for golden in ALL:
        if golden.room in AWAY or str(golden) in UNKNOWN_NAMES or "Error: " not in golden.wanted:
            continue
        if scripts := followed(golden):
            found.setdefault(template_of(golden), []).append((golden, scripts))
    each = [some for same in found.values() for some in (same if DEPTH > 1 else same[:1])]
    return each if DEPTH > 1 else Random(seed_of("advice")).sample(each, SHOWN_AT_ONCE)


def test_advice_that_is_followed_leads_on() -> None:
    circles = []
    for golden, scripts in advised():
        before = problem_of(golden.wanted)
        after = (said(replace(golden, script=script)) for script in scripts)
        if all(problem_of(text) == before or text.startswith("broken by") for text in after):
            circles.append(f"{golden}:\n{golden.wanted}")
    assert not circles, "\n".join(["who follows these arrives where he was:", *circles])


def test_remedies_that_no_program_can_follow_are_still_there() -> None:
    assert {str(golden) for golden in ALL} >= UNKNOWN_NAMES
