"""NEXMark's queries, as a reader of the library would write them.

``person``, ``auction`` and ``bid`` are streams whose rows are points in time. What SQL calls a table without
end is ``forever()``: a view over it is right at every instant, and its last row is what SQL answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

import caesura as cz
from caesura import Stream, col
from caesura.expr import functions as F  # noqa: N812  (as users of PySpark write it)


class Streams(NamedTuple):
    """The auction house, and the side table of q13."""

    person: Stream
    auction: Stream
    bid: Stream
    open_auction: Stream
    """Auctions that live until they expire."""
    side: pa.Table
    arriving: Stream
    """Bids that are timed by the clock as they come."""


DAY = F.date_format(col("dateTime"), "yyyy-MM-dd")
LOW, HIGH = col("price") < 10_000, col("price") >= 1_000_000
MIDDLE = (col("price") >= 10_000) & (col("price") < 1_000_000)


def q0(s: Streams) -> Stream:
    return s.bid.select("auction", "bidder", "price", "dateTime", "extra")


def q1(s: Streams) -> Stream:
    return s.bid.select("auction", "bidder", "dateTime", "extra", price=0.908 * col("price"))


def q2(s: Streams) -> Stream:
    return s.bid.where(col("auction") % 123 == 0).select("auction", "price")


def q3(s: Streams) -> Stream:
    sellers = s.person.where(col("state").isin("OR", "ID", "CA")).select("id", "name", "city", "state")
    offers = s.auction.where(col("category") == 10).select("id", "seller")
    return offers.forever().join(sellers.forever(), on={"seller": "id"}).drop("seller")


def bids_in_time(s: Streams) -> Stream:
    """Bids while their auction is open, with the auction's columns."""
    return s.bid.rename(bid_extra="extra", bid_dateTime="dateTime").join(s.open_auction, on={"auction": "id"})


def q4(s: Streams) -> Stream:
    best = bids_in_time(s).forever().group_by("auction", "category").alive().agg(final=cz.max("price"))
    return best.group_by("category").alive().agg(final=cz.avg("final"))


def q5(s: Streams) -> Stream:
    counts = s.bid.group_by("auction").hopping("10s", every="2s").agg(num=cz.count())
    ranked = counts.with_columns(window=cz.start()).group_by("window").rank(by="num", rank="place")
    return ranked.where(col("place") == 1).select("auction", "num")


def q6(s: Streams) -> Stream:
    best = bids_in_time(s).forever().group_by("auction").alive().agg(final=cz.max("price"))
    closed = s.open_auction.points_at_end().join(best, on={"id": "auction"}).select("id", "seller", "final")
    return closed.group_by("seller").over(rows=10).agg(avg=cz.avg("final")).select("seller", "avg")


def q7(s: Streams) -> Stream:
    best = s.bid.tumbling("10s").agg(maxprice=cz.max("price"))
    return s.bid.join(best, on={"price": "maxprice"}).select(
        "auction", "price", "bidder", "dateTime", "extra"
    )


def q8(s: Streams) -> Stream:
    persons = s.person.group_by("id", "name").tumbling("10s").agg(n=cz.count())
    sellers = s.auction.group_by("seller").tumbling("10s").agg(m=cz.count())
    return persons.join(sellers, on={"id": "seller"}).select("id", "name", starttime=cz.start())


def q9(s: Streams) -> Stream:
    bids = bids_in_time(s).forever().group_by("auction")
    return bids.top(1, by=["price", "bid_dateTime"], descending=[True, False])


def q10(s: Streams) -> Stream:
    minute = F.date_format(col("dateTime"), "HH:mm")
    return s.bid.select("auction", "bidder", "price", "dateTime", "extra", day=DAY, minute=minute)


def q11(s: Streams) -> Stream:
    return s.bid.group_by("bidder").session("10s").agg(bid_count=cz.count())


def q12(s: Streams) -> Stream:
    return s.arriving.group_by("bidder").tumbling("10s").agg(bid_count=cz.count())


def q13(s: Streams) -> Stream:
    bids = s.bid.select("auction", "bidder", "price", "dateTime", key=col("auction") % 10_000)
    return bids.join(cz.table(s.side), on="key").select("auction", "bidder", "price", "dateTime", "value")


def q14(s: Streams) -> Stream:
    price, hour = 0.908 * col("price"), F.hour(col("dateTime"))
    kind = (
        cz.when((hour >= 8) & (hour <= 18), "dayTime")
        .when((hour <= 6) | (hour >= 20), "nightTime")
        .otherwise("otherTime")
    )
    c = F.length(col("extra")) - F.length(F.replace(col("extra"), "c", ""))
    bids = s.bid.where((price > 1_000_000) & (price < 50_000_000))
    return bids.select("auction", "bidder", "dateTime", "extra", price=price, bidTimeType=kind, c_counts=c)


def bids_by_rank() -> dict[str, object]:
    """How many bids, bidders and auctions there are, in all and by rank of price."""
    made = {}
    for name, over in (("bids", None), ("bidders", "bidder"), ("auctions", "auction")):
        for rank, where in (("total", None), ("rank1", LOW), ("rank2", MIDDLE), ("rank3", HIGH)):
            one = cz.count(where=where) if over is None else cz.count_distinct(over, where=where)
            made[f"{rank}_{name}"] = one
    return made


def q15(s: Streams) -> Stream:
    return s.bid.forever().with_columns(day=DAY).group_by("day").alive().agg(bids_by_rank())


def q16(s: Streams) -> Stream:
    bids = s.bid.forever().with_columns(day=DAY, minute=F.date_format(col("dateTime"), "HH:mm"))
    return bids.group_by("channel", "day").alive().agg({"minute": cz.max("minute"), **bids_by_rank()})


def q17(s: Streams) -> Stream:
    prices = {n: f("price") for n, f in (("min", cz.min), ("max", cz.max), ("avg", cz.avg), ("sum", cz.sum))}
    counts = {
        n: cz.count(where=w) for n, w in (("total", None), ("rank1", LOW), ("rank2", MIDDLE), ("rank3", HIGH))
    }
    return s.bid.forever().with_columns(day=DAY).group_by("auction", "day").alive().agg({**counts, **prices})


def q18(s: Streams) -> Stream:
    return s.bid.forever().group_by("bidder", "auction").top(1, by="dateTime")


def q19(s: Streams) -> Stream:
    return s.bid.forever().group_by("auction").top(10, by="price", row_number="rank_number")


def q20(s: Streams) -> Stream:
    offers = s.auction.where(col("category") == 10).rename(auction_dateTime="dateTime", auction_extra="extra")
    return s.bid.join(offers.forever(), on={"auction": "id"})


def q21(s: Streams) -> Stream:
    name, found = F.lower(col("channel")), F.regexp_extract(col("url"), "(&|^)channel_id=([^&]*)", 2)
    number = cz.when(name == "apple", "0").when(name == "google", "1").when(name == "facebook", "2")
    bids = s.bid.where((found != "") | name.isin("apple", "google", "facebook", "baidu"))
    return bids.select(
        "auction", "bidder", "price", "channel", channel_id=number.when(name == "baidu", "3").otherwise(found)
    )


def q22(s: Streams) -> Stream:
    parts = F.split(col("url"), "/")
    return s.bid.select("auction", "bidder", "price", "channel", dir1=parts[3], dir2=parts[4], dir3=parts[5])


QUERIES: dict[str, Callable[[Streams], Stream]] = {
    name: value for name, value in globals().items() if name[0] == "q" and name[1:].isdigit()
}
