"""Expressions over lists, maps and structs: whole columns give what plain Python gives row by row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from nested_expressions import EXPRESSIONS, SCHEMA, rows

import caesura as cz
from caesura.audit.functions import NoValueError
from caesura.audit.values import RowValues
from caesura.errors import ExprError
from caesura.expr import Expr, RowError, col, evaluate, lit, same, type_of
from caesura.expr import functions as f
from caesura.testing.oracles.rows import canonical

OWN = [col("t").contains("a"), col("t").contains(col("s"))]
"""What Spark has under other names."""


@pytest.mark.parametrize("expr", [*EXPRESSIONS, *OWN], ids=str)
def test_a_column_is_what_plain_python_gives_row_by_row(expr: Expr) -> None:
    batch = rows(60, 7)
    reader = RowValues(SCHEMA, pa.int64())
    wanted, refused = [], set()
    for number, row in enumerate(batch.to_pylist()):
        try:
            wanted.append(reader.of(expr, row))
        except NoValueError:
            refused.add(number)
    try:
        assert not refused, evaluate(expr, batch)
    except RowError as error:
        assert set(error.rows.tolist()) == refused
        good = pa.array([n for n in range(batch.num_rows) if n not in refused])
        batch = batch.take(good)
    made = evaluate(expr, batch)
    made.validate(full=True)
    assert made.type == type_of(expr, SCHEMA)
    assert canonical(made.to_pylist()) == canonical(wanted)
    halves = [evaluate(expr, batch.slice(0, 9)), evaluate(expr, batch.slice(9))]
    assert canonical(pa.concat_arrays(halves).to_pylist()) == canonical(wanted)


def test_a_dotted_name_reaches_into_a_struct_unless_a_column_has_it() -> None:
    inner = pa.struct([("b", pa.int64())])
    schema = pa.schema([("ts", pa.int64()), ("st", pa.struct([("a", inner)])), ("st.c", pa.int64())])
    given = [{"ts": 1, "st": {"a": {"b": 5}}, "st.c": 7}]
    stream = cz.from_rows(given, schema, time="ts").where(col("st.a.b") == 5)
    assert stream.select("st.a.b", "st.c", twice=col("st.a.b") * 2).run().history.rows() == [
        (1, 2, (5, 7, 10))
    ]
    totals = stream.tumbling(10).agg(n=cz.sum("st.a.b")).run()
    assert totals.history.rows() == [(0, 10, (5,))]


def test_functions_over_elements_are_known_by_what_they_say() -> None:
    assert same(f.transform("a", lambda x: x + 1), f.transform("a", lambda x: x + 1))
    assert not same(f.transform("a", lambda x: x + 1), f.transform("a", lambda x: x + 2))
    made = f.transform("n", lambda x: f.filter(x, lambda y: (y > f.size(x)) & (y > col("i"))))
    assert cz.functions.size(made).key == f.size(made).key
    assert str(made) == "transform(n, x -> filter(x, y -> y > size(x) AND y > i))"


def test_a_list_is_no_list_of_pythons() -> None:
    with pytest.raises(ExprError, match="is a column, not a list"):
        list(col("a"))
    assert lit([1, 2]).type == pa.list_(pa.int32())
    assert evaluate(lit([1, None]), rows(2, 1)).to_pylist() == [[1, None]] * 2
