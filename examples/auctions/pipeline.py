"""Auctions after NEXMark: an auction is an event that lives from its opening to its close."""

from __future__ import annotations

import random
from typing import Any

import caesura as cz
from caesura import col

CATEGORIES = ("art", "books", "coins")


def generated(auctions: int = 12, bids: int = 60, seed: int = 3) -> tuple[list[dict[str, Any]], ...]:
    """People, auctions and bids of two hours, in seconds; always the same ones."""
    chance = random.Random(seed)
    people = [{"ts": 10 * n, "person": n, "city": chance.choice(("Bern", "Oslo", "Rome"))} for n in range(6)]
    opened = [
        {
            "opens": 60 + 240 * n,
            "closes": 60 + 240 * n + chance.choice((900, 1200, 1800)),
            "auction": n,
            "seller": chance.randrange(6),
            "category": chance.choice(CATEGORIES),
            "reserve": chance.randrange(20, 60),
        }
        for n in range(auctions)
    ]
    made = []
    for number in range(bids):
        ts = 100 + 60 * number + chance.randrange(40)
        running = [a for a in opened if a["opens"] <= ts < a["closes"]] or opened[:1]
        auction = chance.choice(running)["auction"]
        made.append(
            {"ts": ts, "auction": auction, "bidder": chance.randrange(6), "price": chance.randrange(10, 99)}
        )
    made.sort(key=lambda bid: bid["ts"] + chance.choice((0, 0, 90)))
    return people, opened, made


_people, _opened, _made = generated()
_persons = cz.from_rows(_people, time="ts", name="persons")
_auctions = cz.from_rows(_opened, time="opens", end="closes", punctuate=cz.delay(0), name="auctions")
_bids = cz.from_rows(_made, time="ts", punctuate=cz.delay(120), batch_size=5, name="bids")

# NEXMark 1: the price in another currency.
converted = _bids.select("auction", "bidder", euros=(col("price") * 0.908).round(2))

# NEXMark 3: who sells coins from Oslo or Bern. People stay; an auction counts while it is open.
local = (
    _auctions.where(col("category") == "coins")
    .join(_persons.set_duration(100_000), on={"seller": "person"})
    .where(col("city").isin(["Oslo", "Bern"]))
    .select("auction", "city")
)

# NEXMark 5: how many bids each auction had, over ten minutes, every five; and the most that any had.
_counted = _bids.group_by("auction").hopping(600, every=300).agg(bids=cz.count())
hot = _counted.tumbling(300).agg(most=cz.max("bids"))

# Bids that meet their auction while it is open; after it has closed they meet nothing.
_valid = _bids.join(_auctions, on="auction", where=col("price") >= col("reserve"))

# NEXMark 4: the average price that reaches the reserve, by category and half hour.
average = _valid.group_by("category").tumbling(1800).agg(price=cz.avg("price"), bids=cz.count())
