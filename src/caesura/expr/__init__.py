"""Column expressions: written with Python's operators, typed by the plan, run on whole columns.

>>> import pyarrow as pa
>>> batch = pa.record_batch({"speed": pa.array([80.0, None, 40.0])})
>>> fast = col("speed") > 60
>>> str(fast), type_of(fast, batch.schema), evaluate(fast, batch).to_pylist()
('speed > 60', DataType(bool), [True, None, False])
"""

from caesura.expr import functions
from caesura.expr.calls import udf
from caesura.expr.evaluation import compile_all, compile_expr, evaluate, predicate_mask
from caesura.expr.faults import RowError
from caesura.expr.functions import set_of
from caesura.expr.nodes import (
    Alias,
    Apply,
    Boundary,
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expr,
    Field,
    Member,
    as_column,
    as_expr,
    as_predicate,
    col,
    end,
    left,
    lit,
    right,
    same,
    start,
    when,
)
from caesura.expr.patterns import pattern_of
from caesura.expr.planning import type_of
from caesura.expr.predicates import compile_predicate
from caesura.expr.printing import sql
from caesura.expr.rewrite import (
    attributes,
    children,
    conjuncts,
    has_call,
    is_column,
    name_of,
    reads_end,
    reads_time,
    rename,
    shifted_column,
    substitute,
    with_children,
)
from caesura.expr.types import as_type, describe

__all__ = [
    "Alias",
    "Apply",
    "Boundary",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Constant",
    "Expr",
    "Field",
    "Member",
    "RowError",
    "as_column",
    "as_expr",
    "as_predicate",
    "as_type",
    "attributes",
    "children",
    "col",
    "compile_all",
    "compile_expr",
    "compile_predicate",
    "conjuncts",
    "describe",
    "end",
    "evaluate",
    "functions",
    "has_call",
    "is_column",
    "left",
    "lit",
    "name_of",
    "pattern_of",
    "predicate_mask",
    "reads_end",
    "reads_time",
    "rename",
    "right",
    "same",
    "set_of",
    "shifted_column",
    "sql",
    "start",
    "substitute",
    "type_of",
    "udf",
    "when",
    "with_children",
]
