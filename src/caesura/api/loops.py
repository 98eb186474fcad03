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
from typing import Any, Literal, get_args, overload

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
    """The seed, what a step makes of it, what the step makes of that, and so on, at every instant.

    A loop for which no reason is found why it ends is refused, with what is missing.

    Parameters
    ----------
    seed
        Where it begins: a stream; or a dict of streams that need each other.
    step
        A function from the recursive stream to a stream with the same columns. With a dict of seeds it gets
        one stream per seed and gives a dict.
    progress
        How the loop's progress is guessed: ``"hybrid"``, ``"probing"``, ``"high_water"`` or ``"staged"``.
        Results are the same; what differs is how soon they are final.
    keep
        What counts: ``"all"`` derivations, ``"distinct"`` rows (also said by ``.distinct()`` at the end of
        the step), or `cz.least` and `cz.greatest` per key.
    max_rounds
        After how many rounds it is cut; then a column ``cut`` marks the rows that came after the last.
    buckets
        ``"inside"``: on Spark a loop stays inside its buckets, by a column that goes around unchanged, or
        in one. ``"all"``: its rows lie in all of them where its joins allow that, and every round takes an
        epoch.
    name
        What the loop is called in drawings, messages and metrics.

    Returns
    -------
    Stream
        The rows that follow, with their lifetimes; or a dict of streams, under the names of the seeds.

    Notes
    -----
    Promises: on time, what its inputs promise, once a guess of it has come around the loop. State: that of
    the steps inside, the seeds, and of a loop that keeps distinct or best rows the derivations of each.
    Feedback: on columns that go around unchanged it is stopped at the seed and on the way around, and both
    are told; on others it is stopped on the way out. Spark: as ``buckets`` says; streams from outside come
    as copies to the buckets of the loop where needed.

    See Also
    --------
    least : keeps the least value per key.
    greatest : keeps the greatest value per key.
    Stream.distinct : each payload once.
    Stream.join : pairs of rows with equal keys.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col
    >>> rows = [{"ts": 1, "a": 1, "b": 2}, {"ts": 2, "a": 2, "b": 3}]
    >>> links = cz.from_rows(rows, time="ts").set_duration(9)
    >>> def hop(reached):
    ...     return reached.join(links, on={"node": "a"}).select("start", node=col("b")).distinct()
    >>> print(cz.fixpoint(links.rename(start="a", node="b"), hop).run())
     LE  RE | start node |
      1  10 | 1     2    | +
      2  10 | 1     3    | +
      2  11 | 2     3    | +
    """
    _check_buckets(buckets, progress, name)
    options: dict[str, Any] = {"progress": progress, "max_rounds": max_rounds, "name": name}
    options["across"] = buckets == "all"
    options["keep"] = _keep(keep, name)
    if isinstance(seed, Stream):
        return Stream(close_loop(seed.node, lambda rec: _result(step(Stream(rec)), name).node, **options))
    return _several(dict(seed), step, options)


def _check_buckets(buckets: str, progress: str, name: str) -> None:
    """Refuses what is no word, and a way to guess where nothing is guessed."""
    if buckets not in get_args(Buckets):
        raise PlanError(
            f"there is no buckets={buckets!r}.", remedy=f"Choose one of: {', '.join(get_args(Buckets))}."
        ).at(name or "fixpoint", here())
    if buckets == "all" and progress != "hybrid":
        raise PlanError(
            f"progress={progress!r} says how a loop guesses, and one in all buckets guesses nothing: every "
            "round is an epoch.",
            remedy="Leave progress= out, or buckets=.",
        ).at(name or "fixpoint", here())


def least(value: str, *, per: str | Sequence[str]) -> Keep:
    """Of a loop's rows with one key, the one with the least value.

    Rows may have further columns, such as the next hop: then the value grows in every round, and of equal
    rows the one whose further columns are least is kept.

    Parameters
    ----------
    value
        The column that is compared.
    per
        The key, a column or several.

    Returns
    -------
    Keep
        What ``keep=`` of `fixpoint` takes.

    Notes
    -----
    State: the best row of every key, and the others that may still be the best. The value must get no
    better on the way around, such as a distance to which weights of zero or more are added.

    See Also
    --------
    fixpoint : what follows by any number of steps.
    greatest : keeps the greatest value per key.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col
    >>> edges = ((1, 2, 5), (2, 3, 1), (1, 3, 9))
    >>> rows = [{"ts": 1, "a": a, "b": b, "w": w} for a, b, w in edges]
    >>> roads = cz.from_rows(rows, time="ts").where("w >= 0")
    >>> def further(paths):
    ...     on = paths.join(roads, on={"node": "a"})
    ...     return on.select(node=col("b"), dist=col("dist") + col("w"))
    >>> seed = cz.from_rows([{"ts": 1, "node": 1, "dist": 0}], time="ts")
    >>> print(cz.fixpoint(seed, further, keep=cz.least("dist", per="node")).run())
     LE  RE | node dist |
      1  2  | 1    0    | +
      1  2  | 2    5    | +
      1  2  | 3    6    | +
    """
    return Keep((per,) if isinstance(per, str) else tuple(per), value, "least")


def greatest(value: str, *, per: str | Sequence[str]) -> Keep:
    """Of a loop's rows with one key, the one with the greatest value.

    Parameters
    ----------
    value
        The column that is compared.
    per
        The key, a column or several.

    Returns
    -------
    Keep
        What ``keep=`` of `fixpoint` takes.

    Notes
    -----
    As `least`, the other way around: the value must get no greater on the way.

    See Also
    --------
    fixpoint : what follows by any number of steps.
    least : keeps the least value per key.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col
    >>> rows = [{"ts": 1, "a": 1, "b": 2, "w": 5}, {"ts": 1, "a": 2, "b": 3, "w": 1}]
    >>> roads = cz.from_rows(rows, time="ts").where("w >= 0")
    >>> def further(paths):
    ...     on = paths.join(roads, on={"node": "a"})
    ...     return on.select(node=col("b"), left=col("left") - col("w"))
    >>> seed = cz.from_rows([{"ts": 1, "node": 1, "left": 10}], time="ts")
    >>> print(cz.fixpoint(seed, further, keep=cz.greatest("left", per="node")).run())
     LE  RE | node left |
      1  2  | 1    10   | +
      1  2  | 2    5    | +
      1  2  | 3    4    | +
    """
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
