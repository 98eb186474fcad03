"""Small streams for trying things out: the same for the same seed, in order of time.

>>> clicks(users=1, seed=3)[0]
{'minute': 7, 'user': 'ann', 'page': 'view'}
"""

from __future__ import annotations

import random
from typing import Any

USERS = ("ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal", "ida", "jon")


def taxi_trips(trips: int = 8, *, seed: int = 7) -> str:
    """Trips as a drawn stream: each begins without an end, and is corrected when it is over.

    Parameters
    ----------
    trips
        How many there are.
    seed
        Another number gives other trips.

    Returns
    -------
    str
        What ``cz.from_items`` reads, with the columns trip, zone and riders.

    Examples
    --------
    >>> print(taxi_trips(1))
     LE RE | trip zone riders |
     20 inf | 0 B 3 | +
     20 inf->29 | 0 B 3 | -
    """
    draw = random.Random(seed)
    told = []
    for trip in range(trips):
        begin, length = draw.randrange(0, 40), draw.randrange(5, 25)
        row = f"{trip} {draw.choice('AB')} {draw.randrange(1, 4)}"
        told.append((begin, f" {begin} inf | {row} | +"))
        told.append((begin + length, f" {begin} inf->{begin + length} | {row} | -"))
    return "\n".join([" LE RE | trip zone riders |", *(line for _, line in sorted(told))])


def sensor_fleet(seconds: int = 240, *, sensors: int = 3, seed: int = 5) -> list[dict[str, Any]]:
    """Readings of sensors that fall silent now and then.

    Parameters
    ----------
    seconds
        How long they are read.
    sensors
        How many there are, numbered from 1.
    seed
        Another number gives other readings.

    Returns
    -------
    list of dict
        Rows with t (seconds), sensor and celsius.

    Examples
    --------
    >>> sensor_fleet(20, sensors=1)
    [{'t': 9, 'sensor': 1, 'celsius': 24}]
    """
    draw = random.Random(seed)
    rows = []
    for sensor in range(1, sensors + 1):
        at = draw.randrange(10)
        while at < seconds:
            rows.append({"t": at, "sensor": sensor, "celsius": 20 + draw.randrange(12)})
            at += draw.choice((8, 12, 20, 45, 70))
    return sorted(rows, key=lambda row: row["t"])


def clicks(users: int = 3, *, seed: int = 11) -> list[dict[str, Any]]:
    """Clicks of people in a shop, with pauses that end a visit.

    Parameters
    ----------
    users
        How many people, at most 10.
    seed
        Another number gives other clicks.

    Returns
    -------
    list of dict
        Rows with minute, user and page: view, cart or buy.

    Examples
    --------
    >>> clicks(1)[0]
    {'minute': 14, 'user': 'ann', 'page': 'buy'}
    """
    draw = random.Random(seed)
    rows = []
    for user in USERS[:users]:
        minute = draw.randrange(20)
        for _ in range(draw.randrange(4, 9)):
            rows.append(
                {"minute": minute, "user": user, "page": draw.choice(("view", "view", "cart", "buy"))}
            )
            minute += draw.choice((1, 2, 5, 9, 40))
    return sorted(rows, key=lambda row: row["minute"])
