"""Episodes of patients, read as a regular expression reads a word: quantitative regular expressions."""

from __future__ import annotations

from pathlib import Path

import caesura as cz
from caesura import col, qre

DATA = Path(__file__).parent / "data"

# A measurement outside of an episode makes no sense; it is left out before the pattern reads on.
_events = cz.read.csv(DATA / "events.csv", time="hour", punctuate=cz.delay(2), name="events").where(
    col("value").is_null() | (col("value") < 500)
)

_items = qre.items(_events.schema)


def _one(kind: str) -> qre.Query:
    return qre.match(col("kind") == kind, items=_items)


_measured = qre.atom(col("kind") == "measure", col("value"), items=_items)

# An episode: begin, measurements, end. Its value is their average.
_episode = qre.split(_one("begin"), qre.iter(_measured, qre.avg()), _one("end"), op=col("_1"))

# A day: episodes, then the day's end. Its value is the worst episode.
_day = qre.split(qre.iter1(_episode, qre.max()), _one("day"), op={"worst": col("_0")})

# Per patient, at the end of every day.
daily = _events.match(qre.partition(qre.iter_last(_day), "patient"))

# Per patient, whenever an episode ends: days are left out, so that episodes follow each other.
episodes = _events.where(col("kind") != "day").match(
    qre.partition(qre.iter_last(qre.apply(_episode, {"average": col("_0")})), "patient")
)
