"""What the functions of `caesura.qre` are given: each wrong kind of value is refused with what to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Expr
from caesura.plan import here

if TYPE_CHECKING:
    from caesura.qre.language.query import Query

KERNELS = ("auto", "table", "generated", "twin")
T = TypeVar("T")
MAX_COUNT = 2**31


def wrong(what: str, given: object, wanted: str, remedy: str) -> PlanError:
    """The refusal of an argument."""
    text = repr(given)
    short = text if len(text) < 60 else f"{text[:57]}..."
    return PlanError(f"{what} wants {wanted}, got {short}.", remedy=remedy, step=what, place=here())


def condition(what: str, given: Any) -> Expr:
    """A predicate on items."""
    if isinstance(given, Expr):
        return given
    remedy = "Write a condition on columns: col('v') > 1."
    raise wrong(what, given, "a condition on items", remedy)


def queried(what: str, given: Any) -> Query:
    """A query."""
    from caesura.qre.language.query import Query

    if isinstance(given, Query):
        return given
    raise wrong(what, given, "a query", "Make one: atom(...), iter(...), match(...).")


def whole(what: str, given: Any, of: str) -> int:
    """A whole number."""
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < MAX_COUNT:
        return given
    raise wrong(what, given, f"a whole number of {of} below {MAX_COUNT}", "Give a count like 3.")


def number(what: str, given: Any, example: str) -> float:
    """A number."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return given
    raise wrong(what, given, "a number", f"Give one like {example}.")


def text(what: str, given: Any, of: str) -> str:
    """A name."""
    if isinstance(given, str):
        return given
    raise wrong(what, given, f"the name of {of}", "Give it as text.")


def an_instance(what: str, given: Any, kind: type[T], wanted: str, remedy: str) -> T:
    """A value of one class."""
    if isinstance(given, kind):
        return given
    raise wrong(what, given, wanted, remedy)


def schema(what: str, given: Any) -> pa.Schema:
    """An Arrow schema."""
    return an_instance(what, given, pa.Schema, "an Arrow schema", "Give stream.schema, or pa.schema([...]).")


def one_of(what: str, given: Any, known: Sequence[str], option: str) -> None:
    """A mode that there is."""
    if not isinstance(given, str) or given not in known:
        remedy = closest(given, known) if isinstance(given, str) else f"There are: {', '.join(known)}."
        raise PlanError(f"there is no {option} {given!r}.", remedy=remedy).at(what, here())


def batch_of(what: str, given: Any, wanted: pa.Schema) -> pa.RecordBatch:
    """Items in a record batch, or in a table; with the query's columns."""
    if isinstance(given, pa.Table):
        parts = given.combine_chunks().to_batches()
        given = parts[0] if parts else pa.RecordBatch.from_pylist([], given.schema)
    remedy = "Give pa.record_batch({...}) or a pa.Table with the query's columns."
    given = an_instance(what, given, pa.RecordBatch, "a record batch of items", remedy)
    columns = [_column(what, given, field) for field in wanted]
    bare = pa.schema([pa.field(f.name, f.type) for f in wanted])
    return pa.RecordBatch.from_arrays(columns, schema=bare) if columns else given


def _column(what: str, given: pa.RecordBatch, field: pa.Field) -> pa.Array:
    got = given.schema.field(field.name).type if field.name in given.schema.names else "no such column"
    try:
        return given.column(field.name).cast(field.type)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise PlanError(
            f"the query's items have '{field.name}' of type {field.type}; the items given have {got}.",
            remedy="Give items of the schema that the query was built with, or cast them.",
        ).at(what, here()) from None
