"""The queries of the StreamQRE paper, written out: patients, Yahoo's benchmark, NEXMark.

Events are tagged by a small whole number in ``kind``. Each function takes the items that it reads and
gives a query; run it with `over`, with ticks where it says so.

>>> import pyarrow as pa
>>> from caesura.qre.engine.evaluation import evaluate
>>> day = pa.record_batch({"kind": [0, 1, 1, 2, 3], "value": [0.0, 2.0, 4.0, 0.0, 0.0]})
>>> evaluate(daily_maximum(patient_items()), day)[-1]
3.0
"""

from __future__ import annotations

import pyarrow as pa

from caesura.expr import Expr, col, lit, when
from caesura.qre.language.build import apply, atom, combine, iter1, iter_, or_, split
from caesura.qre.language.derived import iter_last, map_collect, match, partition, wnd, wnd_count
from caesura.qre.language.folds import avg, count, custom, interpolated_avg, max_, sum_
from caesura.qre.language.items import TICK, Items, items
from caesura.qre.language.query import Query
from caesura.qre.language.regex import letter, seq, star
from caesura.qre.language.relations import rel
from caesura.qre.language.sketches import median

PERSON, ITEM, BID, CLOSE = 0, 1, 2, 3
VIEW, CLICK, PURCHASE = 0, 1, 2
BEGIN, MEASURE, END, DAY = 0, 1, 2, 3
KIND = col("kind")
AT_TICK = col(TICK)
TEN_MINUTES_A_DAY = 144


def _schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(name, t, False) for name, t in fields])


def patient_items() -> Items:
    """Begin, measurement, end of an episode; the day's end. One patient."""
    return items(pa.schema([("kind", pa.int64()), ("value", pa.float64())]))


def patients_items() -> Items:
    """The same for many patients; the day's end belongs to none."""
    return items(pa.schema([("kind", pa.int64()), ("patient", pa.int64()), ("value", pa.float64())]))


def auction_items() -> Items:
    """NEXMark as the paper has it: bids are increments, auctions are closed by an event."""
    fields = ("kind", pa.int8()), ("item", pa.int64()), ("price", pa.float64()), ("category", pa.int32())
    return items(_schema(*fields))


def ad_items() -> Items:
    """Yahoo's events, the ad's campaign looked up."""
    fields = ("kind", pa.int8()), ("ad", pa.int32()), ("campaign", pa.int32()), ("user", pa.int32())
    return items(_schema(*fields))


# Patients.


def episode(of: Items, value: Query) -> Query:
    """What ``value`` makes of the measurements between begin and end."""
    return split(match(KIND == BEGIN, items=of), value, match(KIND == END, items=of), op=col("_1"))


def measurement(of: Items) -> Query:
    """One measurement's value."""
    return atom(KIND == MEASURE, col("value"), items=of)


def daily_maximum(of: Items) -> Query:
    """At the end of every day, the maximum over its episodes of the average measurement."""
    day = split(
        iter_(episode(of, iter_(measurement(of), avg())), max_()), match(KIND == DAY, items=of), op=col("_0")
    )
    return iter_last(day)


def critical_patients(of: Items, threshold: float) -> Query:
    """At the end of every day but the first, the patients whose last two days were critical."""
    day_end = KIND == DAY
    seen = split(
        iter1(episode(of, iter_(measurement(of), avg())), max_()), match(day_end, items=of), op=col("_0")
    )
    critical = rel().filter(col("value") > threshold)
    today = apply(map_collect(day_end, "patient", seen, every=letter(day_end)), critical)
    one = seq(star(~day_end.coalesce(False)), letter(day_end))
    before = match(star(one), items=of)
    now = split(before, match(one, items=of), today, op=col("_2"))
    yesterday = split(before, today, match(one, items=of), op=col("_1"))
    return combine(a=now, b=yesterday, op=rel("a").join(rel("b")).map_values(col("left")))


def interpolated(of: Items, at: Expr) -> Query:
    """An episode's average of the piecewise-linear curve through its measurements."""
    point = atom(KIND == MEASURE, {"t": at, "v": col("value")}, items=of)
    return episode(of, iter_(point, interpolated_avg()))


def good_and_bad_days(of: Items, extreme: float) -> Query:
    """The sum over days: a calm day counts its measurements, one with an extreme minus its greatest."""
    calm, wild = (KIND == MEASURE) & (col("value") <= extreme), (KIND == MEASURE) & (col("value") > extreme)
    day_end = match(KIND == DAY, items=of)
    good = split(iter_(atom(calm, col("value"), items=of), count()), day_end, op=col("_0") * 1.0)
    bad = split(
        match(star(calm), items=of),
        atom(wild, col("value"), items=of),
        iter_(measurement(of), max_()),
        day_end,
        op=-col("_1").greatest(col("_2")),
    )
    return iter_(or_(good, bad), sum_())


def after_the_last_extreme(of: Items, extreme: float) -> Query:
    """Of an episode with an extreme measurement, the average of those after the last extreme one."""
    wild, calm = (KIND == MEASURE) & (col("value") > extreme), (KIND == MEASURE) & (col("value") <= extreme)
    inner = split(
        match(star(KIND == MEASURE), items=of),
        match(wild, items=of),
        iter_(atom(calm, col("value"), items=of), avg()),
        op=col("_2"),
    )
    return episode(of, inner)


def every_other_day(of: Items) -> Query:
    """Every other day, the number of measurements of each patient since the last answer."""
    day_end = KIND == DAY
    other = KIND != DAY
    tally = atom(other, when(KIND == MEASURE, 1).otherwise(0), items=of)
    first = split(
        iter1(tally, sum_()),
        match(day_end, items=of),
        iter_(tally, sum_()),
        match(day_end, items=of),
        op=col("_0") + col("_2"),
    )
    second = split(match(day_end, items=of), iter1(tally, sum_()), match(day_end, items=of), op=col("_1"))
    body = or_(first, second)
    return iter_last(map_collect(day_end, "patient", body, every=seq(day_end, day_end)))


def increasing(of: Items, column: str) -> Query:
    """The length of the increasing run that ends here: by >>, each number with the one before it."""
    pair = custom({"last": None, "now": None}, {"last": col("acc").field("now"), "now": col("x")})
    paired = iter1(atom(op=col(column) * 1.0, items=of), pair)
    run = iter1(atom(op=col("now") > col("last")), 0, when(col("x"), col("acc") + 1).otherwise(1))
    return paired >> run


def p6(of: Items, *, epsilon: float | None = None) -> Query:
    """At the end of every day, the median over all days of the number of measurements."""
    tally = atom(KIND != DAY, when(KIND == MEASURE, 1).otherwise(0), items=of)
    per_day = split(iter_(tally, sum_()), match(KIND == DAY, items=of), op=col("_0") * 1.0)
    return iter_(per_day, median(epsilon=epsilon, nonnegative=epsilon is not None))


def p7(of: Items, size: int, threshold: float, *, epsilon: float | None = None) -> Query:
    """At every event, how many of the last ``size`` events are measurements above a threshold."""
    height = atom(op=when(KIND == MEASURE, col("value")).otherwise(0.0), items=of)
    return wnd_count(height, size, col("x") > threshold, epsilon=epsilon)


# Yahoo. Run y1 and y2_scores' consumer with ticks every second.


def y1(of: Items) -> Query:
    """At every tick, views per campaign since the tick before."""
    of = of.with_ticks()
    view = atom(~AT_TICK, when(KIND == VIEW, 1).otherwise(0), items=of)
    views = split(iter1(view, sum_()), match(AT_TICK, items=of), op={"views": col("_0")})
    return iter_last(map_collect(AT_TICK, "campaign", views, every=letter(AT_TICK)))


def y2_scores(of: Items) -> Query:
    """The best ad of a campaign and its score whenever one of its ads wins a user.

    An ad wins a user when he purchases after viewing it, once. Scores only grow, so the best is the last
    that passed the best before it.
    """
    won = split(
        match(star(KIND != VIEW), items=of),
        match(KIND == VIEW, items=of),
        match(star(KIND != PURCHASE), items=of),
        atom(KIND == PURCHASE, {"campaign": col("campaign"), "ad": col("ad")}, items=of),
        op=col("_3"),
    )
    first = partition(won, by={"_ad": "ad", "_user": "user"}, again=False)
    tally = custom(
        {"campaign": 0, "ad": 0, "score": 0},
        {
            "campaign": col("x").field("campaign"),
            "ad": col("x").field("ad"),
            "score": col("acc").field("score") + 1,
        },
    )
    scored = partition(iter1(atom(), tally), by={"_ad": "ad"})
    x, best = col("x"), col("acc")
    better = x.field("score") > best.field("score")
    top = custom(
        {"ad": 0, "score": 0},
        {name: when(better, x.field(name)).otherwise(best.field(name)) for name in ("ad", "score")},
    )
    return (
        first
        >> scored
        >> partition(iter1(atom(op={"ad": col("ad"), "score": col("score")}), top), by="campaign")
    )


def latest_per_key(of: Items, key: str, *values: str) -> Query:
    """At every tick, each key's last values so far; the second half of Y2."""
    of = of.with_ticks()
    record = {name: col(name) for name in values}
    last = custom(dict.fromkeys(values), {n: col("x").field(n).coalesce(col("acc").field(n)) for n in values})
    some = atom(lit(True), record, items=of)
    body = split(
        match(star(AT_TICK), items=of),
        atom(~AT_TICK, record, items=of),
        iter_(some, last),
        match(AT_TICK, items=of),
        op={n: col("_2").field(n).coalesce(col("_1").field(n)) for n in values},
    )
    return map_collect(AT_TICK, key, body)


# NEXMark. Run n4 and n5 with ticks every ten minutes.


def auction(of: Items, op: Expr | dict[str, Expr]) -> Query:
    """Item, bids, close; ``op`` reads ``start`` (price p, category c) and ``b``, the sum of increments."""
    return split(
        start=atom(KIND == ITEM, {"p": col("price"), "c": col("category")}, items=of),
        b=iter_(atom(KIND == BID, col("price"), items=of), sum_()),
        end=match(KIND == CLOSE, items=of),
        op=op,
    )


def n1(of: Items) -> Query:
    """At every start or close of an auction, how many are open."""
    change = when(KIND == ITEM, 1).when(KIND == CLOSE, -1).otherwise(0)
    marks = KIND.isin([ITEM, CLOSE])
    return split(
        iter_(atom(op=change, items=of), sum_()), atom(marks, change, items=of), op=col("_0") + col("_1")
    )


def n2(of: Items) -> Query:
    """At every close, the average closing price so far."""
    price = auction(of, col("start").field("p") + col("b"))
    return partition(price, by="item", only=KIND != PERSON) >> iter1(atom(op=col("value")), avg())


def n3(of: Items) -> Query:
    """At every close, the average closing price so far in its category."""
    price = {"category": col("start").field("c"), "price": col("start").field("p") + col("b")}
    closed = partition(auction(of, price), by={"_item": "item"}, only=KIND != PERSON)
    return closed >> partition(iter1(atom(op=col("price")), avg()), by="category")


def n4(of: Items) -> Query:
    """At every tick, the highest current bid since the tick before."""
    of = of.with_ticks()
    own = ~AT_TICK & (KIND != PERSON)
    step = {"inc": when(KIND != CLOSE, col("price")).otherwise(0.0).coalesce(0.0), "tick": AT_TICK}
    acc, x = col("acc"), col("x")
    price = acc.field("price") + x.field("inc")
    fresh = when(acc.field("tick"), price).otherwise(acc.field("best").greatest(price))
    kept = when(acc.field("tick"), lit(None, "double")).otherwise(acc.field("best"))
    fold = custom(
        {"price": 0.0, "best": None, "tick": False, "seen": False},
        {
            "price": price,
            "best": when(x.field("tick"), kept).otherwise(fresh),
            "tick": x.field("tick"),
            "seen": acc.field("seen") | x.field("tick"),
        },
    )
    rest, first = col("rest"), col("first")
    body = split(
        skip=match(star(AT_TICK), items=of),
        first=atom(own, col("price"), items=of),
        rest=iter_(atom(own | AT_TICK, step, items=of), fold),
        end=match(AT_TICK, items=of),
        op=when(rest.field("tick"), lit(None, "double"))
        .when(rest.field("seen"), first + rest.field("best"))
        .otherwise(first.greatest(first + rest.field("best"))),
    )
    return apply(map_collect(AT_TICK, "item", body), rel().max())


def n5(of: Items, units: int = TEN_MINUTES_A_DAY) -> Query:
    """At every tick, the item with the most bids in the last ``units`` periods."""
    of = of.with_ticks()
    own = ~AT_TICK & (KIND != PERSON)
    one = atom(own, when(KIND == BID, 1).otherwise(0), items=of)
    end = match(AT_TICK, items=of)
    later = split(iter_(one, sum_()), end, op=col("_0"))
    first = split(iter1(one, sum_()), end, op=col("_0"))
    body = split(match(star(AT_TICK), items=of), wnd(later, units, sum_(), first=first), op=col("_1"))
    return apply(map_collect(AT_TICK, "item", body), rel().best())
