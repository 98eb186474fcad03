"""Loops: everything that follows from a seed by any number of steps.

>>> import caesura as cz
>>> from caesura import col
>>> links = cz.from_rows([{"ts": 1, "a": 1, "b": 2}, {"ts": 2, "a": 2, "b": 3}], time="ts").set_duration(9)
>>> seed = links.rename(start="a", node="b")
>>> def hop(reached):
...     return reached.join(links, on={"node": "a"}).select("start", node=col("b")).distinct()
>>> print(cz.fixpoint(seed, hop).run())
 LE  RE | start node |
  1  10 | 1     2    | +
  2  10 | 1     3    | +
  2  11 | 2     3    | +
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import pyarrow as pa

from caesura.api.stream import Stream
from caesura.errors import PlanError, closest
from caesura.expr import col, lit
from caesura.fixpoint import Keep, Progress
from caesura.fixpoint import fixpoint as close_loop
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.plan import Node, here

KeepOption = Keep | Literal["all", "distinct"]
Buckets = Literal["inside", "all"]
WHICH = "\x00stream"


@overload
def fixpoint(
    seed: Stream,
    step: Callable[[Stream], Stream],
    *,
    progress: Progress = ...,
    keep: KeepOption = ...,
    max_rounds: int | None = ...,
    buckets: Buckets = ...,
    name: str = ...,
) -> Stream: ...


@overload
def fixpoint(
    seed: Mapping[str, Stream],
    step: Callable[..., Mapping[str, Stream]],
    *,
    progress: Progress = ...,
    keep: KeepOption = ...,
    max_rounds: int | None = ...,
    buckets: Buckets = ...,
    name: str = ...,
) -> dict[str, Stream]: ...


def fixpoint(
    seed: Stream | Mapping[str, Stream],
    step: Callable[..., Any],
    *,
    progress: Progress = "hybrid",
    keep: KeepOption = "all",
    max_rounds: int | None = None,
    buckets: Buckets = "inside",
    name: str = "",
) -> Stream | dict[str, Stream]:
    """The seed, what ``step`` makes of it, what ``step`` makes of that, and so on, at every instant.

    ``step`` is a function from the recursive stream to a stream with the same columns. With a dict of
    seeds it gets one stream per seed and gives a dict: streams that need each other.

    ``keep`` says what counts: 'all' derivations, 'distinct' rows (also said by ``.distinct()`` at the
    end of the step), or ``cz.least(value, per=key)`` and ``cz.greatest``. A loop for which no reason is
    found why it ends is refused; ``max_rounds`` cuts it, and then a column 'cut' marks the rows that
    came after the last round. ``progress`` is 'hybrid', 'probing', 'high_water' or 'staged'. On Spark a
    loop stays inside its buckets, by a column that goes around unchanged, or in one; with
    ``buckets='all'`` its rows lie in all of them where its joins allow that, and every round takes an
    epoch.
    """
    options: dict[str, Any] = {"progress": progress, "max_rounds": max_rounds, "name": name}
    options["across"] = buckets == "all"
    options["keep"] = _keep(keep, name)
    if isinstance(seed, Stream):
        return Stream(close_loop(seed.node, lambda rec: _result(step(Stream(rec)), name).node, **options))
    return _several(dict(seed), step, options)


def least(value: str, *, per: str | Sequence[str]) -> Keep:
    """Of a loop's rows with one key, the one with the least value: ``keep=cz.least('dist', per='node')``.

    Rows may have further columns (the next hop): then the value grows in every round, and of equal rows
    the one whose further columns are least is kept.
    """
    return Keep((per,) if isinstance(per, str) else tuple(per), value, "least")


def greatest(value: str, *, per: str | Sequence[str]) -> Keep:
    """Of a loop's rows with one key, the one with the greatest value."""
    return Keep((per,) if isinstance(per, str) else tuple(per), value, "greatest")


def _keep(keep: KeepOption, name: str) -> Keep | None:
    if isinstance(keep, Keep):
        return keep
    if keep not in ("all", "distinct"):
        error = PlanError(
            f"there is no keep={keep!r}.",
            remedy="Write 'all', 'distinct', cz.least(...) or cz.greatest(...).",
        )
        raise error.at(name or "fixpoint", here())
    return Keep() if keep == "distinct" else None


def _result(made: object, name: str) -> Stream:
    if isinstance(made, Stream):
        return made
    error = PlanError(
        f"the step gave {type(made).__name__}; wanted a stream.", remedy="Return the stream from the step."
    )
    raise error.at(name or "fixpoint", here())


# Several streams go around as one, each row saying which it belongs to.


def _several(
    seeds: dict[str, Stream], step: Callable[..., Any], options: dict[str, Any]
) -> dict[str, Stream]:
    name = options["name"] or "fixpoint"
    options["keep"] = _keep_of_each(options["keep"], seeds, name)
    shape = _shape(seeds, name)

    def around(rec: Node) -> Node:
        parts = [_part(rec, number, seeds[key]) for number, key in enumerate(seeds)]
        made = step(*parts)
        if not isinstance(made, Mapping) or list(made) != list(seeds):
            got = list(made) if isinstance(made, Mapping) else type(made).__name__
            raise PlanError(
                f"the step gave {got}; wanted a dict with {list(seeds)}.",
                remedy="Return one stream per seed, under the same names in the same order.",
            )
        return _tagged([_result(made[key], name) for key in seeds], list(seeds), seeds, shape)

    start = _tagged(list(seeds.values()), list(seeds), seeds, shape)
    loop = close_loop(start, around, **options)
    cut = ["cut"] if options["max_rounds"] is not None else []
    return {key: _part(loop, number, seeds[key], cut) for number, key in enumerate(seeds)}


def _keep_of_each(keep: Keep | None, seeds: dict[str, Stream], name: str) -> Keep | None:
    """What is kept of a key is kept of it in each stream."""
    if keep is None or not keep.value:
        return keep
    for key, seed in seeds.items():
        lacking = [column for column in (*keep.per, keep.value) if column not in seed.columns]
        if lacking:
            error = PlanError(
                f"'{key}' has no column '{lacking[0]}', and of all streams of the loop the {keep.best} "
                f"'{keep.value}' per {', '.join(keep.per)} is kept.",
                remedy=f"Give it one, or give '{key}' a loop of its own. {closest(lacking[0], seed.columns)}",
            )
            raise error.at(name, here())
    return replace(keep, per=(WHICH, *keep.per))


def _shape(seeds: dict[str, Stream], name: str) -> pa.Schema:
    columns: dict[str, pa.DataType] = {}
    for key, seed in seeds.items():
        for field in seed.schema:
            if columns.setdefault(field.name, field.type) != field.type:
                error = PlanError(
                    f"'{field.name}' is {columns[field.name]} in one stream and {field.type} in '{key}'.",
                    remedy="Rename or cast one of them.",
                )
                raise error.at(name, here())
    return pa.schema(list(columns.items()))


def _tagged(streams: list[Stream], keys: list[str], seeds: dict[str, Stream], shape: pa.Schema) -> Node:
    parts: list[Node] = []
    for number, (key, stream) in enumerate(zip(keys, streams, strict=True)):
        wanted = seeds[key].schema
        for field in wanted:
            if field.name not in stream.columns:
                raise PlanError(
                    f"'{key}' comes back without its column '{field.name}'.",
                    remedy=f"Let the step give it. {closest(field.name, stream.columns)}",
                )
        pairs = [(f.name, col(f.name) if f.name in wanted.names else lit(None, f.type)) for f in shape]
        tag = (WHICH, lit(number, pa.int32()))
        parts.append(Select(inputs=(stream.node,), columns=(*pairs, tag)))
    return Union(inputs=tuple(parts)) if len(parts) > 1 else parts[0]


def _part(node: Node, number: int, seed: Stream, more: Sequence[str] = ()) -> Stream:
    mine = Where(inputs=(node,), predicate=col(WHICH) == number)
    return Stream(Select(inputs=(mine,), columns=tuple((n, col(n)) for n in [*seed.columns, *more])))
