"""How a stream's columns become what a module wants: by the expressions given, or by name."""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Expr, col, name_of, type_of
from caesura.expr.annotated import widens
from caesura.udm.module import Use


def mapping(use: Use, schema: pa.Schema) -> list[tuple[str, Expr]]:
    """The module's columns, each with the expression that fills it."""
    wanted = use.module.takes
    if wanted is None:
        given = use.mapping or tuple(col(name) for name in schema.names)
        return [(name_of(e) or f"column{i}", e) for i, e in enumerate(given)]
    names = [name for name, _ in wanted]
    if use.mapping:
        if len(use.mapping) != len(names):
            raise PlanError(
                f"'{use.module.name}' takes {len(names)} columns ({', '.join(names)}), "
                f"but {len(use.mapping)} are given.",
                remedy=f"Map them in order: {use.module.name}({', '.join(repr(n) for n in names)}).",
            )
        return list(zip(names, use.mapping, strict=True))
    for name in names:
        if name not in schema.names:
            raise PlanError(
                f"'{use.module.name}' wants a column '{name}', which the stream does not have.",
                remedy=f"Say which it is: {use.module.name}('...'). {closest(name, schema.names)}",
            )
    return [(name, col(name)) for name in names]


def check_types(use: Use, schema: pa.Schema, time: pa.DataType) -> None:
    """Refuses columns whose types the module does not take; numbers widen, nothing else changes."""
    wanted = dict(use.module.takes or ())
    for name, expr in mapping(use, schema):
        want, got = wanted.get(name), type_of(expr, schema, time=time)
        if want is None or want == got or widens(got, want):
            continue
        raise PlanError(
            f"'{use.module.name}' takes '{name}' as {want}, but {expr} is {got}.",
            remedy=f"Cast it: {expr}.cast('{want}'), or annotate the module with the type that comes.",
        )
