"""Why a loop ends, found before it runs; a loop for which no reason is found is refused.

Strongly convergent (section 3.2), so that every derivation may be a row of its own:
- a counter, or the start of a row, that every trip moves towards a bound that is tested, in front of the
  step that moves it or behind it;
- a sequence number or time, drawn from a stream outside, that every trip moves strictly on;
- a set of visited things (a set, bits, or a path as text) that every trip adds to, what it adds being tested
  not to be there yet.
That must hold against every row of the loop that a row depends on, also on the right side of a
difference or of a join, where a row is there because others are not. The least value of a group rests on
rows with no greater one: it may be what grows.

Convergent, so that rows must be kept once each, or the best one per key:
- every column is carried, or drawn from outside, or bounded as above, and no lifetime is moved on: there
  are finitely many rows;
- the value to be least never gets less on a trip, and its key is as above. Where rows have further columns
  (the next hop, the path), it is a whole number or a time and gets strictly more, so that no row owes
  itself to a row that it may take the place of.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Apply, Column, Constant, Expr, attributes, lit, same
from caesura.expr.rewrite import strip
from caesura.fixpoint.bounds import (
    Difference,
    at_least,
    at_most,
    differences,
    negative,
    not_negative,
    not_positive,
    positive,
    upper_bounded,
)
from caesura.fixpoint.node import Keep
from caesura.fixpoint.trace import (
    REC,
    START,
    Tracer,
    Trip,
    from_loop,
    from_outside,
    is_rec,
    linear,
    picked,
    views,
)
from caesura.plan import Node, walk
from caesura.plan.loops import on_loop

REMEDY = (
    "Add .distinct() to the step if each row counts once, or a column that ends it: a counter with a tested "
    "bound, a sequence number that must grow, or a visited set that is tested. Or allow max_rounds=."
)


def why_it_ends(seed: Node, body: Node, loop: str, *, keep: Keep | None, max_rounds: int | None) -> str:
    """The reason, in words; refuses a loop without one."""
    trips = Tracer(loop, body).trips(body)
    if keep is not None:
        origins = Tracer(loop, seed).trips(seed)
        reason = _keeps(seed, trips, keep, max_rounds, origins)
        _refuse_later(seed, body, loop, trips)
        return reason
    if max_rounds is not None:
        return f"it is cut after {max_rounds} rounds"
    reason = strongly(seed.schema, trips)
    if reason:
        return reason
    raise PlanError(f"nothing shows that the loop ends: {_missing(seed.schema, trips)}.", remedy=REMEDY)


def strongly(schema: pa.Schema, trips: Sequence[Trip]) -> str:
    """Why no derivation can go around for ever; empty where that is not seen."""
    every = [view.with_start() for trip in trips for view in trip.seen()]
    for name in _names(schema, every):
        exact = name == START or not pa.types.is_floating(schema.field(name).type)  # large ones lose a 1
        for word, test in (("falls", -1), ("grows", 1)):
            seen = [picked(trip, name, test) for trip in every]
            if exact and all(_counts(trip, name, test) for trip in seen):
                return f"'{_shown(name)}' {word} towards a bound"
            if all(_advances(trip, name, test, exact) for trip in seen):
                return f"'{_shown(name)}' strictly {word} through a stream from outside"
        if all(_visits(trip, name) for trip in every):
            return f"'{name}' grows by what it is tested not to have"
    return ""


def _names(schema: pa.Schema, trips: Sequence[Trip]) -> list[str]:
    """The columns that may show that a loop ends, and its rows' starts."""
    return [*schema.names, *([START] if trips and all(START in trip.columns for trip in trips) else [])]


def _refuse_later(seed: Node, body: Node, loop: str, trips: Sequence[Trip]) -> None:
    """Rows that count once are finitely many only if they do not come again ever later."""
    circle = on_loop(body, loop)
    moved = [n for n in walk(body) if n.fingerprint in circle and n.moves_time]
    if moved and not strongly(seed.schema, trips):
        raise PlanError(
            f"nothing shows that the loop ends: '{moved[0].step}' ({moved[0].place}) moves a lifetime on in "
            "every round, so rows may come ever later.",
            remedy="Move lifetimes before the loop or behind it, or count the rounds in a tested column.",
        )


def _missing(schema: pa.Schema, trips: Sequence[Trip]) -> str:
    """What comes nearest to a reason."""
    every = [view.with_start() for trip in trips for view in trip.seen()]
    for name in _names(schema, every):
        bounded = any(_counts(view, name, direction) for view in every for direction in (1, -1))
        for view in every:
            base, by = linear(view.columns[name])
            if base is not None and is_rec(base) == name and by:
                if name != START and pa.types.is_floating(schema.field(name).type):
                    return f"'{name}' is a float, which adding {by} may leave as it is"
                if bounded:
                    towards = f"'{_shown(name)}' moves towards a bound"
                    return f"{towards}, but not past every row that a row depends on"
                return f"'{_shown(name)}' changes by {by} in every round, but no test bounds it"
            if any(d.name == name and d.least == 0 for d in differences(view, name)):
                return f"'{name}' may stay the same from round to round; it would have to change strictly"
    return _added_what(schema, every) or "no column is seen to move towards an end in every round"


def _added_what(schema: pa.Schema, every: Sequence[Trip]) -> str:
    """What is said of a column to which another is added."""
    for name in schema.names:
        for view in every:
            added = _added_to(view, name)
            if added is None or isinstance(added, Constant) or pa.types.is_floating(schema.field(name).type):
                continue
            if positive(added, view.facts) or negative(added, view.facts):
                return f"'{name}' changes by {_shown(added)} in every round, but no test bounds it"
            return f"'{name}' changes by {_shown(added)} in every round, which no test shows to be above 0"
    return ""


def _counts(trip: Trip, name: str, direction: int) -> bool:
    """A counter with a tested bound; it moves by a whole number, perhaps one that is tested."""
    if not _moves_on(trip, name, direction):
        return False
    return upper_bounded(trip, name) if direction > 0 else upper_bounded(trip, name, flipped=True)


def _moves_on(trip: Trip, name: str, direction: int) -> bool:
    base, by = linear(trip.columns[name])
    counts = base is not None and is_rec(base) == name and by * direction > 0
    if name == START and direction > 0:  # what comes of a meeting starts no earlier than what met
        counts = counts or _starts_later(base, by)
    if not counts:
        added, moves = _added_to(trip, name), positive if direction > 0 else negative
        counts = added is not None and moves(added, trip.facts)
    return counts


def _starts_later(base: Expr | None, by: int) -> bool:
    """Whether a start lies past that of the loop's own row, which another may lie past already."""
    match base:
        case Apply(name="greatest", args=args):
            return any(_starts_later(x, by + i) for x, i in map(linear, args))
    return base is not None and is_rec(base) == START and by > 0


def _advances(trip: Trip, name: str, direction: int, exact: bool) -> bool:
    """A value from outside that is strictly past the one before."""
    return any(_beyond(d, direction) for d in differences(trip, name, exact=exact))


def _beyond(d: Difference, direction: int) -> bool:
    least = d.least if direction > 0 else d.greatest
    if least is None:
        return False
    return least * direction > 0 or (least == 0 and (d.strict_low if direction > 0 else d.strict_high))


def _visits(trip: Trip, name: str) -> bool:
    own = Column(REC + name)
    match strip(trip.columns[name]):
        case Apply(name="bit_or", args=(a, b)):
            added = b if same(a, own) else a if same(b, own) else None
            return added is not None and _is_bit(added) and any(_lacks_bit(f, own, added) for f in trip.facts)
        case Apply(name="set_add") as grown:
            return any(_lacks_member(fact, own, one) for fact in trip.facts for one in _added(grown, own))
        case Apply(name="concat") as joined:
            parts = _flat(joined)
            if not same(parts[0], own):
                return False
            return any(_lacks_text(fact, own, parts[1:]) for fact in trip.facts)
    return False


def _is_bit(expr: Expr) -> bool:
    match strip(expr):
        case Apply(name="shift_left", args=(Constant(value=int() as one), _)):
            return one != 0
        case Constant(value=int() as one):
            return one != 0
    return False


def _lacks_bit(fact: Expr, own: Expr, added: Expr) -> bool:
    match fact:
        case Apply(name="equal", args=(Apply(name="bit_and", args=(a, b)), Constant(value=0))):
            return (same(a, own) and same(b, added)) or (same(b, own) and same(a, added))
    return False


def _added(made: Expr, own: Expr) -> list[Expr]:
    """What is added to a set, one member after the other; nothing where it is another set."""
    match made:
        case Apply(name="set_add", args=(held, one)):
            return [one] if same(held, own) else [one, *more] if (more := _added(strip(held), own)) else []
    return []


def _lacks_member(fact: Expr, own: Expr, one: Expr) -> bool:
    match fact:
        case Apply(name="not", args=(Apply(name="set_has", args=(held, member)),)):
            return same(held, own) and same(member, one) and from_outside(one)
    return False


def _lacks_text(fact: Expr, own: Expr, added: list[Expr]) -> bool:
    """A test that some of the text that is added does not stand in the path yet."""
    match fact:
        case Apply(name="not", args=(Apply(name="contains_each", args=(path, part)),)):
            wanted = _flat(part)
            runs = (added[i : i + len(wanted)] for i in range(len(added) - len(wanted) + 1))
            found = any(all(same(x, y) for x, y in zip(run, wanted, strict=True)) for run in runs)
            return same(path, own) and found and from_outside(part)
    return False


def _flat(expr: Expr) -> list[Expr]:
    bare = strip(expr)
    if isinstance(bare, Apply) and bare.name == "concat":
        return [part for arg in bare.args for part in _flat(arg)]
    return [bare]


# Loops that keep one of each.


def _keeps(
    seed: Node, trips: Sequence[Trip], keep: Keep, max_rounds: int | None, origins: Sequence[Trip]
) -> str:
    per = keep.per or tuple(seed.schema.names)
    _check_keep(seed, keep, per)
    if max_rounds is not None:
        raise PlanError(
            "a row that counts once may be found in several rounds, so max_rounds says nothing about it.",
            remedy="Carry a counter in a column and test it, or keep='all'.",
        )
    if not keep.value and (reason := strongly(seed.schema, trips)):
        return reason
    for name in per:
        for trip in trips:
            if not any(_finite(view, name, seed.schema) for view in views(trip)):
                raise PlanError(
                    f"nothing shows that the loop ends: '{name}' is computed anew in every round "
                    f"({_shown(views(trip)[0].columns[name])}), so there may be ever more rows.",
                    remedy=f"Take '{name}' from a stream, bound it with a test, "
                    "or keep all rows and allow max_rounds=.",
                )
    if not keep.value:
        return "each row counts once, and its columns are carried or come from outside"
    further = keep.further(seed.schema)
    signed = _never_negative(keep.value, [*origins, *trips], seed.schema)
    for trip in trips:
        _refuse_better(trip, keep, signed=signed)
        if further:
            _refuse_equal(trip, keep, further[0])
        for view in trip.seen():
            _refuse_reading(view, keep, further)
    word = "less" if keep.best == "least" else "greater"
    always = f"and always gets {'greater' if word == 'less' else 'less'}"
    return f"only the {keep.best} '{keep.value}' counts, " + (
        always if further else f"and it never gets {word}"
    )


def _check_keep(seed: Node, keep: Keep, per: tuple[str, ...]) -> None:
    for name in (*per, *([keep.value] if keep.value else [])):
        if name not in seed.schema.names:
            raise PlanError(
                f"there is no column '{name}' to keep by.", remedy=closest(name, seed.schema.names)
            )
    if not keep.value:
        return
    t = seed.schema.field(keep.value).type
    ordered = pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_temporal(t)
    if not ordered or pa.types.is_uint64(t):
        raise PlanError(
            f"'{keep.value}' is {t}, which a loop cannot keep the {keep.best} of.",
            remedy="Cast it to bigint, double or a timestamp.",
        )
    if keep.value in per:
        raise PlanError(
            f"'{keep.value}' is part of the key that the {keep.best} '{keep.value}' is kept of.",
            remedy="Leave it out of per=.",
        )
    further = keep.further(seed.schema)
    if further and pa.types.is_floating(t):
        raise PlanError(
            f"a row of the loop has '{further[0]}' besides its key and its value, and '{keep.value}' is {t}: "
            "adding to a float may leave it as it is, and then nothing tells which of two rows was made "
            "of the other.",
            remedy="Count in whole numbers (metres, cents): cast it to bigint. Or select the key and the "
            "value only, and join the rest to what comes out.",
        )


def _finite(trip: Trip, name: str, schema: pa.Schema) -> bool:
    """Whether the column has finitely many values, whatever the other columns hold."""
    made, exact = trip.columns[name], not pa.types.is_floating(schema.field(name).type)
    if from_loop(made) or from_outside(made) or pa.types.is_boolean(schema.field(name).type):
        return True
    counts = exact and any(_counts(trip, name, direction) for direction in (1, -1))
    return (
        counts or any(_advances(trip, name, direction, exact) for direction in (1, -1)) or _visits(trip, name)
    )


def _never_negative(value: str, trips: Sequence[Trip], schema: pa.Schema) -> bool:
    """Whether the value is 0 or more in the seed, and in every row that is made of such rows."""
    if pa.types.is_unsigned_integer(schema.field(value).type):
        return True
    own = Apply("greater_equal", (Column(REC + value), lit(0)))
    return all(not_negative(v.columns[value], (*v.facts, own)) for trip in trips for v in views(trip))


def _refuse_better(trip: Trip, keep: Keep, *, signed: bool) -> None:
    """The value may only get worse on a trip."""
    if any(_worse(view, keep) or (signed and _scaled(view, keep)) for view in views(trip)):
        return
    made = strip(views(trip)[0].columns[keep.value])
    raise PlanError(
        f"nothing shows that the loop ends: '{keep.value}' becomes {_shown(made)}, "
        "which may be better than what it was made of.",
        remedy=_add_test(trip, keep),
    )


def _worse(trip: Trip, keep: Keep) -> bool:
    """Whether the value is no better than what it was made of, whatever its sign."""
    own, made = Column(REC + keep.value), strip(trip.columns[keep.value])
    ok = not_negative if keep.best == "least" else not_positive
    worst: Literal["greatest", "least"] = "greatest" if keep.best == "least" else "least"
    bounded = isinstance(made, Apply) and made.name == worst and any(same(a, own) for a in made.args)
    added = _added_to(trip, keep.value)
    fine = same(made, own) or from_outside(made) or bounded
    return fine or (added is not None and ok(added, trip.facts))


def _scaled(trip: Trip, keep: Keep) -> bool:
    """Whether a value that is 0 or more is multiplied by what makes it no better.

    A factor of 0 would make NaN of infinity, which is greater than all.
    """
    factor = _factor_of(trip, keep.value)
    if factor is None:
        return False
    if keep.best == "least":
        return at_least(factor, trip.facts, 1)
    return positive(factor, trip.facts) and at_most(factor, trip.facts, 1)


def _added_to(trip: Trip, value: str) -> Expr | None:
    """What is added to the value on a trip."""
    own = Column(REC + value)
    match strip(trip.columns[value]):
        case Apply(name="add") as made:
            terms = _terms(made)
            mine = [i for i, term in enumerate(terms) if same(term, own)]
            rest = [term for i, term in enumerate(terms) if [i] != mine]
            return reduce(lambda a, b: Apply("add", (a, b)), rest) if len(mine) == 1 else None
        case Apply(name="subtract", args=(a, b)) if same(a, own):
            return Apply("negate", (b,))
    return None


def _terms(expr: Expr) -> list[Expr]:
    """What is added up."""
    match strip(expr):
        case Apply(name="add", args=(a, b)):
            return [*_terms(a), *_terms(b)]
    return [strip(expr)]


def _factor_of(trip: Trip, value: str) -> Expr | None:
    """What the value is multiplied by on a trip."""
    own = Column(REC + value)
    match strip(trip.columns[value]):
        case Apply(name="multiply", args=(a, b)):
            return b if same(a, own) else a if same(b, own) else None
    return None


def _refuse_equal(trip: Trip, keep: Keep, further: str) -> None:
    """With further columns the value gets worse in every round, past every row that a row is made of."""
    strictly = positive if keep.best == "least" else negative
    for view in trip.seen():
        added = _added_to(view, keep.value)
        if added is not None and strictly(added, view.facts):
            continue
        sign = ">" if keep.best == "least" else "<"
        wanted = f"Add to '{keep.value}' what is tested to be {sign} 0"
        if added is not None:
            wanted = f"Test that {_shown(added)} {sign} 0 where it comes in"
        raise PlanError(
            f"a row of the loop has '{further}' besides its key and its value, and '{keep.value}' may stay "
            "the same from round to round: then a row could take the place of one that it is made of.",
            remedy=f"{wanted}; or select the key and the value only, and join the rest to what comes out.",
        )


def _refuse_reading(trip: Trip, keep: Keep, further: Sequence[str]) -> None:
    """Nothing but the value and further columns may depend on them."""
    own = Column(REC + keep.value)
    used = [
        (keep.value, f) for f in trip.facts if own.name in attributes(f) and not _only_caps(f, own, keep.best)
    ]
    keys = [trip.columns[n] for n in keep.per]
    used += [(keep.value, key) for key in keys if own.name in attributes(key)]
    used += [(n, e) for n in further for e in (*trip.facts, *keys) if REC + n in attributes(e)]
    if used:
        name, read = used[0]
        which = (
            f"only the {keep.best}" if name == keep.value else f"only that of the {keep.best} '{keep.value}'"
        )
        raise PlanError(
            f"'{_shown(read)}' reads '{name}', of which the loop keeps {which}.",
            remedy="Test the value behind the loop.",
        )


def _only_caps(fact: Expr, own: Expr, best: str) -> bool:
    """A test that a better value passes wherever a worse one does."""
    below, above = ("less", "less_equal"), ("greater", "greater_equal")
    first, second = (below, above) if best == "least" else (above, below)
    match fact:
        case Apply(name=name, args=(a, b)) if same(a, own) and own.name not in attributes(b):  # type: ignore[attr-defined]
            return name in first
        case Apply(name=name, args=(a, b)) if same(b, own) and own.name not in attributes(a):  # type: ignore[attr-defined]
            return name in second
    return False


def _add_test(trip: Trip, keep: Keep) -> str:
    for view in views(trip):
        if (added := _added_to(view, keep.value)) is not None:
            sign = ">=" if keep.best == "least" else "<="
            return f"Test that {_shown(added)} {sign} 0 where it comes in, for example with where(...)."
        if (factor := _factor_of(view, keep.value)) is not None:
            test = f"{_shown(factor)} >= 1" if keep.best == "least" else f"0 < {_shown(factor)} <= 1"
            seed = f"'{keep.value}' >= 0 in the seed"
            return f"Test that {test} where it comes in, and that {seed}, with where(...)."
    return f"Write the value as the one before plus something, or keep='distinct' instead of the {keep.best}."


def _shown(expr: Expr | str) -> str:
    """An expression with the users' own names."""
    import re

    return re.sub(r"`(?:rec|also\d+|in\d+|any\d+):([^`]*)`", r"\1", str(expr)).replace(START, "start()")
