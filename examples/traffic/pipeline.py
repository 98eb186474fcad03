"""The traffic speed map: sensors and probe cars, joined by place and time, as 2-minute estimates.

Fixed sensors and probe cars report a speed every 20 seconds. Per station the reports of a 20-second
slot are averaged, the two kinds are outer-joined by place and time, and every estimate then counts
for two minutes: the map shows, every 20 seconds, the mean of the estimates alive.
"""

from __future__ import annotations

from pathlib import Path

import caesura as cz
from caesura import col, functions, when

PLACE = ("freeway", "station")


def speed_map(folder: Path) -> cz.Stream:
    """Speed and colour per station, every 20 seconds."""
    sensors = cz.read.parquet(folder / "sensors", time="ts", punctuate=cz.delay("40s"), name="sensors")
    probes = cz.read.parquet(folder / "probes", time="ts", punctuate=cz.delay("40s"), name="probes")
    fixed = sensors.where(col("mph").is_not_null()).group_by(*PLACE).tumbling("20s").agg(sensor=cz.avg("mph"))
    moving = probes.group_by(*PLACE).tumbling("20s").agg(probe=cz.avg("mph"))
    both = fixed.join(moving, on=PLACE, how="full", name="sensors and probes")
    mixed = (col("sensor") + col("probe")) / 2
    estimates = both.select(*PLACE, mph=functions.coalesce(mixed, col("sensor"), col("probe")))
    return _lasting(estimates)


def live_map(folder: Path) -> cz.Stream:
    """The same estimates without the join, so that a freeway that nobody looks at is not even read.

    An outer join keeps unmatched rows until they are final, so while rows flow it never can do without a key.
    The mean of what there is, of two means or one, is an average too, and that gives a key up at once.
    """
    sensors = cz.read.parquet(folder / "sensors", time="ts", punctuate=cz.delay("40s"), name="sensors")
    probes = cz.read.parquet(folder / "probes", time="ts", punctuate=cz.delay("40s"), name="probes")
    fixed = sensors.where(col("mph").is_not_null()).group_by(*PLACE).tumbling("20s").agg(mph=cz.avg("mph"))
    moving = probes.group_by(*PLACE).tumbling("20s").agg(mph=cz.avg("mph"))
    return _lasting(fixed.union(moving).group_by(*PLACE).tumbling("20s").agg(mph=cz.avg("mph")))


def _lasting(estimates: cz.Stream) -> cz.Stream:
    """Every estimate counts for two minutes; with a colour."""
    alive = (
        estimates.set_duration("2m")
        .group_by(*PLACE)
        .tumbling("20s")
        .agg(mph=cz.avg("mph"), reports=cz.count())
    )
    colour = when(col("mph") > 50, "green").when(col("mph") < 20, "red").otherwise("yellow")
    return alive.with_columns(colour=colour)
