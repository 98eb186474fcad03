"""Every function of SQL with none to five arguments of each kind: a plan, or an error with its place."""

from __future__ import annotations

from importlib import import_module
from random import Random

import pytest
from depth import DEPTH, examples, seed_of
from query_corpus import streams
from sqlglot.parsers.spark import SparkParser
from test_mutated_queries import wrong_with

import caesura as cz
from caesura.expr.sql_text import function_names
from caesura.sql.text import QueryDialect

AGGREGATES = sorted(import_module("caesura.sql.grouping").AGGREGATES)
TABLES = [*import_module("caesura.sql.windows").TABLE_FUNCTIONS, "window", "session_window", "descriptor"]
RANKS = ["rank", "dense_rank", "row_number", "lag", "lead", "first_value", "last_value", "nth_value", "ntile"]
OWN = sorted(
    {*function_names(), *AGGREGATES, *TABLES, *RANKS, "grouping", "grouping_id", "explode", "proctime"}
)
PARSED = sorted({name.lower() for name in {*SparkParser.FUNCTIONS, *QueryDialect.Parser.FUNCTION_PARSERS}})
"""What sqlglot knows by itself, or reads in a way of its own."""
KINDS = """k|v|s|d|ts|'x'|1|-1|NULL|1.5|TRUE|INTERVAL '1' DAY|ARRAY(1)|*|k > 1|(SELECT 1)|x -> x|DISTINCT k
TABLE t|DATE '2024-01-01'|DESCRIPTOR(ts)|9223372036854775808|k AS a|a => 1|CAST(NULL AS INT)|t.*
k ORDER BY v"""
ARGUMENTS = [kind for line in KINDS.split("\n") for kind in line.split("|")]
FORMS = """SELECT {} AS x FROM t|SELECT {} AS x FROM t|SELECT k FROM t WHERE {} IS NULL|SELECT * FROM {}
SELECT * FROM TABLE({})|SELECT k, {} AS x FROM t GROUP BY k|SELECT {} FILTER (WHERE k > 1) AS x FROM t
SELECT {} OVER (PARTITION BY k ORDER BY ts) AS x FROM t|SELECT count(*) AS n FROM t GROUP BY {}
SELECT {} OVER () AS x FROM t|SELECT k FROM t ORDER BY {} LIMIT 1"""
QUERIES = [form for line in FORMS.split("\n") for form in line.split("|")]


def drawn(random: Random) -> str:
    """A query of one call, in one of the places where calls stand."""
    name = random.choice(OWN if random.random() < 0.8 else PARSED)
    arguments = ", ".join(random.choice(ARGUMENTS) for _ in range(random.randrange(6)))
    return random.choice(QUERIES).format(f"{name}({arguments})")


@pytest.mark.parametrize("dialect", ["spark", "flink"])
def test_a_call_of_any_arguments_is_a_plan_or_an_error_with_its_place(dialect: str) -> None:
    random = Random(seed_of("calls", dialect))
    texts = [drawn(random) for _ in range(examples(1500, short=60))]
    found = {text: wrong_with(text, dialect, streams()) for text in texts}
    assert not {text: told for text, told in found.items() if told}


@pytest.mark.parametrize("count", range(6))
def test_every_function_of_a_row_takes_so_many_columns_or_says_how_many_it_takes(count: int) -> None:
    rows = streams()["t"]
    wrong = {}
    for name in function_names():
        for column in ("k", "s") if DEPTH > 1 else ("k",):
            text = f"{name}({', '.join([column] * count)})"
            try:
                rows.select(x=cz.expr(text))
            except cz.CaesuraError as error:
                if error.__cause__ is not None or "fault of ours" in str(error):
                    wrong[text] = error.problem
    assert not wrong
