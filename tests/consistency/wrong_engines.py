"""Four kinds of wrong engine, made of right parts: each claims what it should not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bank_oracle import bank

import caesura as cz
from caesura import Claim, Level, Prefix, Stream, col
from caesura.events import History, Item
from caesura.runtime import LongestQueue, Query

States = list[tuple[Claim, Mapping[str, History]]]


def claim(number: int, rows: int) -> Claim:
    return Claim(number, Level.PREFIX_CONSISTENT, {"read": Prefix(rows, offsets={0: rows})})


def stream(count: int, batch: int = 1) -> Stream:
    return bank.read(bank.transactions(count), batch_size=batch)


def eager_output(count: int) -> tuple[cz.Pipeline, States]:
    """Claims whatever has left by now, for all that was read."""
    pipe = bank.views(stream(count))
    query = Query(pipe.nodes, schedule=LongestQueue())
    came: dict[str, list[Item]] = {view: [] for view in pipe.views}
    states: States = []
    while query.step():
        fresh = {view: query.take(view) for view in came}
        for view, items in fresh.items():
            came[view] += items
        read = query.counters()["read"].rows_in
        if any(fresh.values()):
            states.append((claim(len(states) + 1, read), _folded(pipe, came)))
    return pipe, states


def _folded(pipe: cz.Pipeline, came: Mapping[str, list[Item]]) -> dict[str, History]:
    return {view: History.of(items, pipe[view].schema) for view, items in came.items()}


def _of_prefix(count: int, rows: int) -> dict[str, History]:
    """The views on the first rows, rightly."""
    part = bank.read(bank.transactions(count).slice(0, rows))
    pipe = bank.views(part)
    done = pipe.run()
    return {view: done[view].history for view in pipe.views}


def unsynchronised_join(count: int, lag: int) -> tuple[cz.Pipeline, States]:
    """Joins credits with the debits of some rows ago."""
    states: States = []
    for number, rows in enumerate(range(lag, count + 1, lag), 1):
        now, then = _of_prefix(count, rows), _of_prefix(count, max(0, rows - lag))
        wrong = dict(now)
        wrong["balance"] = _joined(now["credits"], then["debits"])
        states.append((claim(number, rows), wrong))
    return bank.views(stream(count)), states


def _joined(credits: History, debits: History) -> History:
    left, right = (cz.input_stream(n, h.schema) for n, h in (("c", credits), ("d", debits)))
    met = left.join(right, on={"to_account": "from_account"})
    out = met.select(account=col("to_account"), balance=col("credits") - col("debits"))
    query = out.query()
    query.feed("c", credits.page)
    query.feed("d", debits.page)
    query.run()
    return History.of(query.take("out"), out.schema)


def two_unaligned_queries(count: int) -> tuple[cz.Pipeline, States]:
    """Each query claims rightly by itself; put side by side, their prefixes differ."""
    pipe = bank.views(stream(count, 10))
    first = pipe.run(claims=cz.tokens(every=20))
    second = pipe.run(claims=cz.tokens(every=30))
    states: States = []
    for one, other in zip(first.claims, second.claims, strict=False):
        states.append((one, {**first.at(one), "debits": second["debits"].at(other)}))
    return pipe, states


def late_inside_an_operator(count: int) -> tuple[cz.Pipeline, States]:
    """All rows are accepted, and one aggregate leaves out those that it finds too late."""
    table = bank.transactions(count)
    pipe = bank.views(bank.read(table))
    done = pipe.run(claims=cz.tokens(every=50))
    strict = bank.views(bank.read(table, delay=2)).run(claims=cz.tokens(every=50))
    pairs = zip(done.claims, strict.claims, strict=True)
    return pipe, [(a, {**done.at(a), "credits": strict["credits"].at(b)}) for a, b in pairs]


def engines() -> Iterator[tuple[str, tuple[cz.Pipeline, States]]]:
    yield "eager output", eager_output(25)
    yield "unsynchronised join", unsynchronised_join(60, 15)
    yield "two unaligned queries", two_unaligned_queries(100)
    yield "lateness inside an operator", late_inside_an_operator(150)
