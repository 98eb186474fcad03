"""A toll plaza: cars come in at a booth, and leave. Windows, and joins of lifetimes."""

from __future__ import annotations

from pathlib import Path

import caesura as cz
from caesura import col

DATA = Path(__file__).parent / "data"
LONGEST = "15m"
"""Nobody stays longer."""

_minute = cz.delay("1m")
_entries = cz.read.csv(DATA / "entries.csv", time="ts", punctuate=_minute, name="entries")
_exits = cz.read.csv(DATA / "exits.csv", time="ts", punctuate=_minute, name="exits")
_registrations = cz.read.csv(DATA / "registrations.csv", time="from", end="to", name="registrations")

# What each booth took, every three minutes. The entry that comes out of order counts where it belongs.
per_booth = _entries.group_by("booth").tumbling("3m").agg(cars=cz.count(), took=cz.sum("toll"))

# An entry lives from when the car came until it leaves: its lifetime is its stay.
stays = _entries.select("plate", "kind").set_duration(LONGEST).clip(_exits, on="plate")

# How many cars are inside, for every stretch of time in which nobody came or left.
inside = stays.snapshot().agg(cars=cz.count())

# Each exit with the booth where the car came in: the exit is a point inside the stay.
left = _exits.join(
    _entries.select("plate", "booth", entered=cz.start()).set_duration(LONGEST), on="plate"
).select("plate", "booth", seconds=(cz.start().unix_micros() - col("entered").unix_micros()) / 1_000_000)

# Cars inside without a registration that is valid at that time, and for how long.
expired = stays.join(_registrations, on="plate", how="anti")
