"""What a well-typed query must satisfy, decided when it is built, each refusal with a shortest witness.

Choices are disjoint, splits concatenate and iterations iterate unambiguously, combined rates are
equivalent, a map-collect's rate depends on synchronisation items only. All of it is polynomial:
see `caesura.qre.checking.ambiguity` and `caesura.qre.checking.containment`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr
from caesura.qre.checking.ambiguity import ambiguous_word, common_word
from caesura.qre.checking.containment import dependent_words, missing_word
from caesura.qre.checking.inference import value_type
from caesura.qre.checking.minterms import Alphabet, alphabet
from caesura.qre.checking.positions import Positions, positions
from caesura.qre.checking.rewrite import unambiguous_rate
from caesura.qre.checking.witness import apart, drawn, parses, refusal, rows_of
from caesura.qre.language import query as q
from caesura.qre.language.arguments import queried
from caesura.qre.language.error_bounds import approximate, refuse_approximate
from caesura.qre.language.items import Items
from caesura.qre.language.regex import Letter, Regex, Star, letters
from caesura.qre.language.types import Opaque, Record, columns, to_arrow


def check(query: q.Query) -> None:
    """Refuses a query that is not well typed, or could read a stream in two ways.

    Parameters
    ----------
    query
        What is looked at; its items must be known.

    Raises
    ------
    PlanError
        With the part, the reason and the remedy; where it is ambiguous, with the shortest such stream.

    Notes
    -----
    A query is checked when it is built where its items are known, so that most users never call this.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caesura import col, qre
    >>> items = qre.items(pa.schema([("v", pa.int64())]))
    >>> v = qre.atom(op=col("v"), items=items)
    >>> qre.check(qre.iter(v, qre.sum()))
    """
    if queried("check", query).items is None:
        raise PlanError(
            "the items of this query are not known.", remedy="Call query.on(qre.items(schema)) first."
        )
    assert query.items is not None
    if isinstance(query, q.Pipe):
        _check_pipe(query)
        return
    body = query.per_key
    _refuse_inner(query, body)
    _refuse_approximate(query)
    value_type(query)
    for node in q.walk(body):
        if isinstance(node, q.Atom):
            _want_condition(node)
    letters = alphabet(query.items, _predicates(body))
    for node in q.walk(body):
        if isinstance(node, q.Atom):
            _check_predicate(query, node, letters)
    _Checker(query, letters).all(body)


def letters_of(query: q.Query) -> Alphabet:
    """The letters that the predicates of a query distinguish, as it is read.

    Items that no case declares are letters too, unless the query is well typed for the declared ones only.
    """
    assert query.items is not None
    return alphabet(query.items, _predicates(query), trusts_cases(query))


def trusts_cases(query: q.Query) -> bool:
    """Whether a query is well typed because of its items' cases: others are then refused as they come."""
    assert query.items is not None
    if not query.items.cases:
        return False
    known: bool | None = query.__dict__.get("_trusts_cases")
    if known is None:
        known = False
        try:
            body = query.per_key
            _Checker(query, alphabet(query.items, _predicates(body), False)).all(body)
        except PlanError:
            known = True
        object.__setattr__(query, "_trusts_cases", known)
    return known


def _check_pipe(query: q.Pipe) -> None:
    assert query.items is not None
    check(query.first)
    made = value_type(query.first)
    fields = dict(made.fields) if isinstance(made, Record) else {"value": made}
    missing = [name for name, t in fields.items() if to_arrow(t) is None]
    if missing or isinstance(made, Opaque):
        raise PlanError(
            f"the values before >> are of type {made}; '{(missing or ['value'])[0]}' is no column for items.",
            remedy="Apply an operation that gives scalars or a record, or promise a type with returns=.",
            place=query.place,
        )
    second_items = Items(pa.schema(columns(made)), time=query.items.time)
    object.__setattr__(query, "second", query.second.on(second_items))


def _refuse_approximate(query: q.Query) -> None:
    """Which items match, and whose they are, must not hang on approximate values."""
    assert query.items is not None
    types = dict(query.items.record.fields)
    if not any(approximate(t) for t in types.values()):
        return
    for node in q.walk(query):
        read = [e for _, e in node.by] if isinstance(node, (q.Partition, q.MapCollect)) else []
        read += [node.only] if node.only is not None else []
        for expr in (*read, *(_predicates(query) if node is query else ())):
            try:
                refuse_approximate(expr, types)
            except PlanError as error:
                raise error.at(node.step, node.place) from None


def _refuse_inner(root: q.Query, body: q.Query) -> None:
    for node in q.walk(body):
        if isinstance(node, (q.Pipe, q.Partition)):
            what = ">>" if isinstance(node, q.Pipe) else "partition"
            raise refusal(
                root,
                node,
                f"'{what}' stands inside another query, where only regular patterns can stand.",
                remedy=f"Use {what} only at the top of a query; inside one, map_collect partitions by key.",
            )


def _predicates(query: q.Query) -> list[Expr]:
    found: list[Expr] = []
    for node in q.walk(query):
        if isinstance(node, q.Atom):
            found.append(node.predicate)
        if isinstance(node, q.MapCollect):
            found += [node.sync, ~node.sync.coalesce(False), *(x.predicate for x in letters(node.over))]
    return found


def _want_condition(node: q.Atom) -> None:
    assert node.items is not None
    try:
        node.items.check(node.predicate)
    except CaesuraError as error:
        raise error.at("atom", node.place) from None


def _check_predicate(root: q.Query, node: q.Atom, alphabet_: Alphabet) -> None:
    if alphabet_.mask(node.predicate) == 0:
        raise refusal(
            root,
            node,
            f"the predicate '{node.predicate}' can never be true of these items.",
            remedy="Correct the condition; the column's values, or the tag's, exclude it.",
        )


class _Checker:
    """The checks of one query over one alphabet."""

    def __init__(self, root: q.Query, alphabet_: Alphabet) -> None:
        self.root = root
        self.letters = alphabet_
        self._sure = alphabet_.certain
        self._doubts = self._sure != (1 << len(alphabet_.minterms)) - 1
        self._autos: dict[tuple[Regex, bool], Positions] = {}

    def auto(self, rate: Regex, doubtful: bool = True) -> Positions:
        key = (rate, doubtful)
        if key not in self._autos:
            keep = -1 if doubtful else self._sure
            self._autos[key] = positions(rate, lambda name: self._mask(name) & keep)
        return self._autos[key]

    def _mask(self, name: Hashable) -> int:
        """The letters for which a predicate is true."""
        masks = self.letters._masks
        if name not in masks:
            self.letters.mask(self.letters.exprs[self.letters.predicates[name]])
        return masks[name]

    def all(self, body: q.Query) -> None:
        """Everything inside a query that has a rate."""
        todo = [body]
        for node in q.walk(body):
            if isinstance(node, q.Combine):
                todo += node.parts[1:]
            elif isinstance(node, q.MapCollect):
                todo.append(node.body)
        for one in todo:
            self.unambiguous(one)
        for node in q.walk(body):
            if isinstance(node, q.Combine) and len(node.parts) > 1:
                self._equivalent(node)
            elif isinstance(node, q.MapCollect):
                self._well_formed(node)

    def unambiguous(self, query: q.Query) -> None:
        for node in q.walk(query):
            self._no_empty_twice(node)
        if ambiguous_word(self.auto(query.rate)) is not None:
            self._blame(query)

    def _no_empty_twice(self, node: q.Query) -> None:
        if isinstance(node, (q.Iter, q.SlidingWindow)) and node.body.rate.nullable:
            raise refusal(
                self.root,
                node,
                "the body of this iteration matches the empty stream, so every stream would have "
                "endlessly many parses: nothing ever ends.",
                remedy="Iterate something that reads at least one item, as iter1 instead of iter inside.",
            )
        if isinstance(node, q.Or):
            empty = [p for p in node.parts if p.rate.nullable]
            if len(empty) > 1:
                raise refusal(
                    self.root,
                    node,
                    f"the empty stream matches two parts of this or_:\n  1. {empty[0]}\n  2. {empty[1]}",
                    remedy="Let one part at most match the empty stream.",
                )

    def _blame(self, query: q.Query) -> None:
        """Finds the smallest part that is ambiguous, and refuses it."""
        parts = query.children() if isinstance(query, (q.Split, q.Or, q.Iter, q.SlidingWindow)) else ()
        if isinstance(query, q.Combine):
            parts = query.parts[:1]
        for part in parts:
            if ambiguous_word(self.auto(part.rate)) is not None:
                self._blame(part)
        word = ambiguous_word(self.auto(query.rate, doubtful=False)) if self._doubts else None
        if self._doubts and word is None:
            word = ambiguous_word(self.auto(query.rate))
            assert word is not None
            raise self._undecided(query, "it may be ambiguous", word)
        word = word or ambiguous_word(self.auto(query.rate))
        assert word is not None
        parsed = parses(query, word, lambda r: self.auto(r))
        better = unambiguous_rate(query.rate, self.auto(query.rate), self._mask)
        remedy = _REMEDIES.get(
            type(query).__name__, "Rewrite it so that every stream parses in one way only."
        )
        if better is not None:
            remedy += f" The same streams match, each in one way, with the rate {better}."
        count = f"{len(word)} item" + ("s" if len(word) != 1 else "")
        raise self._shown(
            query,
            f"{apart(query)}. The shortest stream with two parses has {count}:",
            word,
            parsed,
            remedy=remedy,
        )

    def _undecided(self, node: q.Query, what: str, word: list[int]) -> PlanError:
        doubtful = [c for c in word if not self._sure >> c & 1]
        truth = self.letters.minterms[doubtful[0]].truth
        named = " and ".join(
            f"({e})" if truth >> i & 1 else f"not ({e})" for i, e in enumerate(self.letters.exprs)
        )
        return refusal(
            self.root,
            node,
            f"cannot decide whether this query is well typed: {what} if an item can satisfy {named}.",
            remedy="Test columns against constants, or install z3-solver, which knows sums and products.",
        )

    def _equivalent(self, node: q.Combine) -> None:
        first = node.parts[0]
        for other in node.parts[1:]:
            if first.rate == other.rate:
                continue
            word, here, there = self._difference(first, other)
            if word is None:
                continue
            if self._doubts and any(not self._sure >> c & 1 for c in word):
                raise self._undecided(node, "its rates differ", word)
            raise self._shown(
                node,
                "the parts of this combine have different rates. This stream matches one part only:",
                word,
                f"  matches:       {here}\n  does not match: {there}",
                remedy="Combine queries that are defined on the same streams; pad one with match(...).",
            )

    def _difference(self, one: q.Query, two: q.Query) -> tuple[list[int] | None, q.Query, q.Query]:
        """A shortest word that only one of two queries matches, that one, and the other."""
        a, b = self.auto(one.rate), self.auto(two.rate)
        words = [(missing_word(a, b), one, two), (missing_word(b, a), two, one)]
        return min(words, key=lambda found: math.inf if found[0] is None else len(found[0]))

    def _well_formed(self, node: q.MapCollect) -> None:
        synced = Letter(node.sync)
        over, body = self.auto(node.over), self.auto(node.body.rate)
        if node.given:
            self._ignores_keyed(node, over)
        only = common_word(body, self.auto(Star(synced)))
        if only is not None:
            raise self._shown(
                node,
                "the body of this map_collect matches a stream without any keyed item:",
                only,
                remedy="Let the body read at least one keyed item: a map holds keys that were seen.",
            )
        outside = missing_word(body, over)
        if outside is not None:
            raise self._shown(
                node,
                "the body of this map_collect matches a stream at which no map is collected:",
                outside,
                remedy="Let the body end with the synchronisation item that brings the map out.",
            )

    def _ignores_keyed(self, node: q.MapCollect, over: Positions) -> None:
        """Refuses a rate that is not s[(not S)* S / S] for some s over S alone."""
        try:
            found = dependent_words(over, self.letters.mask(node.sync), len(self.letters.minterms))
        except OverflowError:
            raise refusal(
                self.root,
                node,
                "cannot decide whether the rate of this map_collect depends on keyed items.",
                remedy=_EVERY,
            ) from None
        if found is not None:
            inside, outside = found
            if self._doubts and any(not self._sure >> c & 1 for c in (*inside, *(outside or ()))):
                raise self._undecided(node, "its rate depends on keyed items", [*inside, *(outside or ())])
            other = "It ends with a keyed item, at which no map comes."
            if outside is not None:
                rows = drawn(outside, self.letters)
                other = f"This one, with the same synchronisation items, does not:\n{rows}"
            raise self._shown(
                node,
                "the rate of this map_collect depends on keyed items. This stream belongs to it:",
                inside,
                other,
                remedy=_EVERY,
            )

    def _shown(
        self, node: q.Query, problem: str, word: list[int], rest: str = "", *, remedy: str
    ) -> PlanError:
        """A refusal with a stream that shows it."""
        text = f"{problem}\n{drawn(word, self.letters)}" + (f"\n{rest}" if rest else "")
        return refusal(self.root, node, text, remedy=remedy, witness=rows_of(word, self.letters))


_EVERY = "Say with every= which synchronisation items bring the map out, as a regex."
_REMEDIES = {
    "Or": "Make the parts exclude each other: add the negation of the one to the other's predicates.",
    "Split": "Make the border visible: exclude the next part's first item from what repeats before it.",
    "Iter": "Let every piece show where it begins or ends, by an item that occurs nowhere else in it.",
}
