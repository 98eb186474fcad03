"""Names that people bring from Spark and pandas: what they mean here, or what to do instead."""

from __future__ import annotations

import difflib

from caesura.errors import NoSuchNameError

INSTEAD = {
    "agg": "Say over which rows: .tumbling('1h').agg(...), .snapshot().agg(...), or .totals(...).",
    "alias": "Name a step with .named('speeds'); tell the sides of a join apart with cz.left and cz.right.",
    "cache": "Leave it out: equal parts of a plan run once.",
    "collect": "Write .run().table().to_pylist().",
    "count": "Write .totals(n=cz.count()), or count in windows.",
    "crossJoin": "Write .join(other, on=[]): every pair that is alive at the same time, in one bucket.",
    "dropna": "Write .where(col('v').is_not_null()).",
    "exceptAll": "Write .difference(other).",
    "fillna": "Write .with_columns(v=col('v').if_null(0)).",
    "first": "Write .limit(1).",
    "foreachBatch": "Write .run() and read its pages, or start it with a sink of your own.",
    "head": "Write .limit(5).",
    "intersect": "Write .distinct().join(other.distinct(), on=[...], how='semi').",
    "persist": "Leave it out: equal parts of a plan run once.",
    "printSchema": "Write print(stream.schema).",
    "repartition": "Leave it out: steps say themselves by which keys rows must lie together.",
    "show": "Write print(stream.run()).",
    "subtract": "Write .difference(other, mode='set').",
    "take": "Write .limit(5).",
    "toDF": "Write .rename({'old': 'new'}).",
    "toPandas": "Write .run().to_pandas().",
    "to_pandas": "Write .run().to_pandas().",
    "withWatermark": "Say it where rows are read: punctuate=cz.delay('5m').",
    "write": "Write .run(), or .start(spark, checkpoint=...) with a sink.",
    "writeStream": "Write .start(spark, checkpoint=...) with a sink.",
}
ORDERS = ("orderBy", "order_by", "sort", "sort_values", "sortWithinPartitions")
NO_ORDER = (
    "Take the first rows with .top(10, by='v') or .limit(10); sort what a run gave: "
    ".run().table().sort_by('v'). Patterns read rows in the order of time, and .match(..., order_by=[...]) "
    "breaks ties."
)


def no_such_name(owner: str, name: str, known: list[str], columns: list[str]) -> NoSuchNameError:
    """The error for a method that a stream does not have."""
    if name in ORDERS:
        return NoSuchNameError(
            f"a {owner} has no '{name}': rows still come and are corrected, so that none is last.",
            remedy=NO_ORDER,
        )
    if name in INSTEAD:
        return NoSuchNameError(f"a {owner} has no '{name}'.", remedy=INSTEAD[name])
    if name in columns:
        return NoSuchNameError(
            f"a {owner} has no '{name}'; it is a column.", remedy=f"Write col('{name}'), or stream['{name}']."
        )
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"Did you mean '{near[0]}'? " if near else ""
    return NoSuchNameError(f"a {owner} has no '{name}'.", remedy=f"{guess}dir(stream) lists what there is.")
