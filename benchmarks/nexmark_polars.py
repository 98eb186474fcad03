"""NEXMark's queries in Polars, lazily over Parquet files or tables, for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow as pa
from polars import LazyFrame, col


class Frames(NamedTuple):
    """The files of the auction house."""

    person: LazyFrame
    auction: LazyFrame
    bid: LazyFrame
    side: LazyFrame


def frames(folder: Path) -> Frames:
    """The files of a folder as lazy frames."""
    return Frames(*(pl.scan_parquet(folder / f"{name}.parquet") for name in Frames._fields))


def tables_as_frames(tables: Mapping[str, pa.Table]) -> Frames:
    """Tables in memory as lazy frames."""
    return Frames(*(pl.from_arrow(tables[name]).lazy() for name in Frames._fields))


DAY = col("dateTime").dt.strftime("%Y-%m-%d").alias("day")
MINUTE = col("dateTime").dt.strftime("%H:%M").alias("minute")
RANKS = {
    "rank1": col("price") < 10_000,
    "rank2": (col("price") >= 10_000) & (col("price") < 1_000_000),
    "rank3": col("price") >= 1_000_000,
}


def _window(seconds: int) -> pl.Expr:
    return col("dateTime").dt.epoch("us") // (seconds * 1_000_000)


def _in_time(f: Frames) -> LazyFrame:
    """Bids while their auction is open, with the auction's columns."""
    bids = f.bid.rename({"extra": "bid_extra", "dateTime": "bid_dateTime"})
    both = bids.join(f.auction, left_on="auction", right_on="id")
    return both.filter(col("bid_dateTime").is_between(col("dateTime"), col("expires")))


def _by_rank() -> list[pl.Expr]:
    made = [pl.len().alias("total_bids")]
    made += [where.sum().alias(f"{rank}_bids") for rank, where in RANKS.items()]
    for name in ("bidder", "auction"):
        made.append(col(name).n_unique().alias(f"total_{name}s"))
        made += [col(name).filter(w).n_unique().alias(f"{rank}_{name}s") for rank, w in RANKS.items()]
    return made


def q0(f: Frames) -> LazyFrame:
    return f.bid.select("auction", "bidder", "price", "dateTime", "extra")


def q1(f: Frames) -> LazyFrame:
    return f.bid.select("auction", "bidder", "dateTime", "extra", price=0.908 * col("price"))


def q2(f: Frames) -> LazyFrame:
    return f.bid.filter(col("auction") % 123 == 0).select("auction", "price")


def q3(f: Frames) -> LazyFrame:
    sellers = f.person.filter(col("state").is_in(["OR", "ID", "CA"]))
    offers = f.auction.filter(col("category") == 10)
    return offers.join(sellers, left_on="seller", right_on="id").select("name", "city", "state", "id")


def q4(f: Frames) -> LazyFrame:
    best = _in_time(f).group_by("auction", "category").agg(final=col("price").max())
    return best.group_by("category").agg(final=col("final").mean())


def q5(f: Frames) -> LazyFrame:
    hops = f.bid.select("auction", w=pl.concat_list([_window(2) - h for h in range(5)])).explode("w")
    counts = hops.group_by("auction", "w").agg(num=pl.len())
    return counts.filter(col("num") == col("num").max().over("w")).select("auction", "num")


def q6(f: Frames) -> LazyFrame:
    best = _in_time(f).group_by("auction", "seller", "expires").agg(final=col("price").max())
    last = col("final").rolling_mean(10, min_samples=1).over("seller", order_by=["expires", "auction"])
    return best.select("seller", avg=last)


def q7(f: Frames) -> LazyFrame:
    best = f.bid.filter(col("price") == col("price").max().over(_window(10)))
    return best.select("auction", "price", "bidder", "dateTime", "extra")


def q8(f: Frames) -> LazyFrame:
    persons = f.person.select("id", "name", w=_window(10)).unique()
    sellers = f.auction.select("seller", w=_window(10)).unique()
    both = persons.join(sellers, left_on=["id", "w"], right_on=["seller", "w"])
    return both.select("id", "name", starttime=pl.from_epoch(col("w") * 10_000_000, "us"))


def q9(f: Frames) -> LazyFrame:
    ordered = _in_time(f).sort("price", "bid_dateTime", descending=[True, False])
    return ordered.unique("auction", keep="first")


def q10(f: Frames) -> LazyFrame:
    return f.bid.select("auction", "bidder", "price", "dateTime", "extra", DAY, MINUTE)


def q11(f: Frames) -> LazyFrame:
    gap = col("dateTime").diff().over("bidder") > pl.duration(seconds=10)
    bids = f.bid.sort("dateTime").with_columns(fresh=gap.fill_null(True))
    sessions = bids.with_columns(session=col("fresh").cum_sum().over("bidder"))
    return sessions.group_by("bidder", "session").agg(bid_count=pl.len()).drop("session")


def q13(f: Frames) -> LazyFrame:
    bids = f.bid.with_columns(key=col("auction") % 10_000)
    return bids.join(f.side, on="key").select("auction", "bidder", "price", "dateTime", "value")


def q14(f: Frames) -> LazyFrame:
    price, hour = 0.908 * col("price"), col("dateTime").dt.hour()
    kind = (
        pl.when(hour.is_between(8, 18))
        .then(pl.lit("dayTime"))
        .when((hour <= 6) | (hour >= 20))
        .then(pl.lit("nightTime"))
        .otherwise(pl.lit("otherTime"))
    )
    bids = f.bid.filter((price > 1_000_000) & (price < 50_000_000))
    c = col("extra").str.count_matches("c", literal=True)
    return bids.select("auction", "bidder", "dateTime", "extra", price=price, bidTimeType=kind, c_counts=c)


def q15(f: Frames) -> LazyFrame:
    return f.bid.group_by(DAY).agg(_by_rank())


def q16(f: Frames) -> LazyFrame:
    return f.bid.group_by("channel", DAY).agg(MINUTE.max(), *_by_rank())


def q17(f: Frames) -> LazyFrame:
    counts = [pl.len().alias("total"), *(where.sum().alias(rank) for rank, where in RANKS.items())]
    price = col("price")
    return f.bid.group_by("auction", DAY).agg(
        *counts, min=price.min(), max=price.max(), avg=price.mean(), sum=price.sum()
    )


def q18(f: Frames) -> LazyFrame:
    return f.bid.sort("dateTime").unique(["bidder", "auction"], keep="last")


def q19(f: Frames) -> LazyFrame:
    ordered = f.bid.sort("price", "dateTime", descending=[True, False])
    number = pl.int_range(1, pl.len() + 1).over("auction")
    return ordered.with_columns(rank_number=number).filter(col("rank_number") <= 10)


def q20(f: Frames) -> LazyFrame:
    offers = f.auction.filter(col("category") == 10)
    offers = offers.rename({"dateTime": "auction_dateTime", "extra": "auction_extra"})
    return f.bid.join(offers, left_on="auction", right_on="id")


def q21(f: Frames) -> LazyFrame:
    name = col("channel").str.to_lowercase()
    found = col("url").str.extract("(&|^)channel_id=([^&]*)", 2).fill_null("")
    known = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    bids = f.bid.filter((found != "") | name.is_in(list(known)))
    number = name.replace_strict(known, default=found, return_dtype=pl.String)
    return bids.select("auction", "bidder", "price", "channel", channel_id=number)


def q22(f: Frames) -> LazyFrame:
    parts = col("url").str.split("/")
    return f.bid.select(
        "auction", "bidder", "price", "channel", *(parts.list.get(i + 2).alias(f"dir{i}") for i in (1, 2, 3))
    )


POLARS: dict[str, Callable[[Frames], LazyFrame]] = {
    name: value for name, value in globals().items() if name[0] == "q" and name[1:].isdigit()
}
