"""Consistent accordances: one contract per operator, such that every edge's two ends say the same.

On trees semi-joins alone decide it (full reducers, the thesis' section 5.5); where paths meet again, or
run in a loop, they only narrow the choice, and a search settles what is left. Feedback that its receiver
does not take stops there; it does not make a plan unsafe.

>>> linear = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}>")
>>> valued = Contract.parse("<In={[[a:#]]}, Out={[[a:#]]}>")
>>> found = accordance({"A": [linear, valued], "B": [valued]}, [Link("A", "B")])
>>> print(found["A"])
<In={[[a:#]]}, Out={[[a:#]]}>
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from caesura.contracts.contract import Contract, match, mounted
from caesura.errors import closest
from caesura.punctuation.scheme import NONE, Scheme
from caesura.punctuation.template import ContractError

Feedback = Literal["stops", "required"]
Domains = dict[str, frozenset[int]]


@dataclass(frozen=True)
class Link:
    """An edge of a plan: an operator's output into another's input."""

    source: str
    target: str
    out: int = 0
    port: int = 0


@dataclass(frozen=True)
class Accordance:
    """A contract per operator, and the edges on which feedback stops."""

    chosen: Mapping[str, Contract]
    stopped: tuple[Link, ...] = ()

    def __getitem__(self, operator: str) -> Contract:
        return self.chosen[operator]

    def __str__(self) -> str:
        lines = [f"{operator}: {contract}" for operator, contract in self.chosen.items()]
        lines += [f"feedback from {link.target} stops at {link.source}" for link in self.stopped]
        return "\n".join(lines)


def accordance(
    offered: Mapping[str, Sequence[Contract]], links: Iterable[Link], *, feedback: Feedback = "stops"
) -> Accordance | None:
    """One contract for each operator, such that the two ends of every edge say the same.

    Parameters
    ----------
    offered
        For each operator the contracts that it offers.
    links
        The edges between them.
    feedback
        ``"stops"``: feedback that its receiver does not take stops there; ``"required"``: it must flow.

    Returns
    -------
    Accordance or None
        The contracts that were chosen, and the edges on which feedback stops; None where there are none.

    Examples
    --------
    >>> from caesura.contracts import Contract, Link, accordance
    >>> linear = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}>")
    >>> valued = Contract.parse("<In={[[a:#]]}, Out={[[a:#]]}>")
    >>> found = accordance({"A": [linear, valued], "B": [valued]}, [Link("A", "B")])
    >>> print(found["A"])
    <In={[[a:#]]}, Out={[[a:#]]}>
    """
    edges = tuple(links)
    _check(offered, edges)
    for strict in (True, False) if feedback == "stops" else (True,):
        found = _solve(offered, edges, strict)
        if found is not None:
            chosen = {operator: offered[operator][i] for operator, i in found.items()}
            return Accordance(chosen, tuple(link for link in edges if not flows(chosen, link)))
    return None


def consistent(chosen: Mapping[str, Contract], links: Iterable[Link]) -> bool:
    """Whether chosen contracts agree on every edge, feedback aside.

    Parameters
    ----------
    chosen
        A contract for each operator.
    links
        The edges between them.

    Returns
    -------
    bool
        True or False.

    Examples
    --------
    >>> from caesura.contracts import Contract, Link, consistent
    >>> linear = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}>")
    >>> valued = Contract.parse("<In={[[a:#]]}, Out={[[a:#]]}>")
    >>> consistent({"A": linear, "B": valued}, [Link("A", "B")])
    False
    """
    return all(agrees(chosen[link.source], chosen[link.target], link) for link in links)


def agrees(source: Contract, target: Contract, link: Link) -> bool:
    """Whether the antecedent's output scheme is the subsequent's input scheme."""
    return source.outs[link.out] == target.ins[link.port]


def flows(chosen: Mapping[str, Contract], link: Link) -> bool:
    """Whether feedback passes an edge upwards; what could mount a guard for ever does not."""
    source, target = chosen[link.source], chosen[link.target]
    sent = target.feedback_out[link.port]
    if sent == NONE:
        return True
    fits = match(source.feedback_in[link.out], sent)
    return fits and all(mounted(source, template, link.out) for template in sent)


def reduce_tree(
    offered: Mapping[str, Sequence[Contract]], links: Iterable[Link]
) -> dict[str, list[Contract]]:
    """The contracts of a tree's operators that stand in some accordance.

    Parameters
    ----------
    offered
        For each operator the contracts that it offers.
    links
        The edges between them.

    Returns
    -------
    dict
        For each operator the contracts that are left: none where there is no accordance.

    Raises
    ------
    ContractError
        Where the plan is no tree.

    Examples
    --------
    >>> from caesura.contracts import Contract, Link, reduce_tree
    >>> linear = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}>")
    >>> valued = Contract.parse("<In={[[a:#]]}, Out={[[a:#]]}>")
    >>> left = reduce_tree({"A": [linear, valued], "B": [valued]}, [Link("A", "B")])
    >>> len(left["A"])
    1
    """
    edges = tuple(links)
    _check(offered, edges)
    if not is_tree(offered, edges):
        raise ContractError("the plan is no tree.", remedy="Use accordance, which is exact on any graph.")
    domains = {operator: frozenset(range(len(some))) for operator, some in offered.items()}
    pairs = {link: _pairs(offered, link, False) for link in edges}
    outwards = _rooted(offered, edges)
    for parent, link in reversed(outwards):
        _semijoin(domains, pairs[link], link, towards="source" if link.source == parent else "target")
    for parent, link in outwards:
        _semijoin(domains, pairs[link], link, towards="target" if link.source == parent else "source")
    return {operator: [offered[operator][i] for i in sorted(some)] for operator, some in domains.items()}


def is_tree(operators: Iterable[str], links: Sequence[Link]) -> bool:
    """Whether no two paths, in whichever direction, join the same operators."""
    parent = {operator: operator for operator in operators}

    def root(operator: str) -> str:
        while parent[operator] != operator:
            operator = parent[operator]
        return operator

    for link in links:
        a, b = root(link.source), root(link.target)
        if a == b:
            return False
        parent[a] = b
    return True


def _check(offered: Mapping[str, Sequence[Contract]], links: Sequence[Link]) -> None:
    for link in links:
        for operator in (link.source, link.target):
            if operator not in offered:
                raise ContractError(
                    f"an edge names the operator '{operator}', which offers nothing.",
                    remedy=closest(operator, offered),
                )
        for contract in offered[link.source]:
            _has(link.source, link.out, len(contract.outs), "output")
        for contract in offered[link.target]:
            _has(link.target, link.port, len(contract.ins), "input")


def _has(operator: str, number: int, count: int, what: str) -> None:
    if number >= count:
        raise ContractError(
            f"an edge uses {what} {number + 1} of '{operator}', whose contract has {count}.",
            remedy="Let every contract of an operator have a scheme for each of its edges.",
        )


class _Pairs:
    """Which contracts of an edge's two ends fit: by number, both ways."""

    def __init__(self) -> None:
        self.down: dict[int, set[int]] = {}
        self.up: dict[int, set[int]] = {}

    def add(self, source: int, target: int) -> None:
        self.down.setdefault(source, set()).add(target)
        self.up.setdefault(target, set()).add(source)


def _pairs(offered: Mapping[str, Sequence[Contract]], link: Link, strict: bool) -> _Pairs:
    """An equijoin on the scheme, by hash; with the match condition where feedback must flow."""
    by_scheme: dict[Scheme, list[int]] = {}
    for j, target in enumerate(offered[link.target]):
        by_scheme.setdefault(target.ins[link.port], []).append(j)
    pairs = _Pairs()
    for i, source in enumerate(offered[link.source]):
        for j in by_scheme.get(source.outs[link.out], ()):
            target = offered[link.target][j]
            ends = {link.source: source, link.target: target}
            if not strict or (link.source == link.target and i != j) or flows(ends, link):
                pairs.add(i, j)
    return pairs


def _semijoin(domains: Domains, pairs: _Pairs, link: Link, towards: Literal["source", "target"]) -> bool:
    """Narrows one end of an edge by the other; says whether it did."""
    mine, other = (link.source, link.target) if towards == "source" else (link.target, link.source)
    fits = pairs.down if towards == "source" else pairs.up
    kept = frozenset(i for i in domains[mine] if not domains[other].isdisjoint(fits.get(i, ())))
    if link.source == link.target:
        kept = frozenset(i for i in kept if i in fits.get(i, ()))
    changed = len(kept) < len(domains[mine])
    domains[mine] = kept
    return changed


def _solve(
    offered: Mapping[str, Sequence[Contract]], links: tuple[Link, ...], strict: bool
) -> dict[str, int] | None:
    pairs = {link: _pairs(offered, link, strict) for link in links}
    touching: dict[str, list[Link]] = {operator: [] for operator in offered}
    for link in links:
        for operator in {link.source, link.target}:
            touching[operator].append(link)
    domains = {operator: frozenset(range(len(some))) for operator, some in offered.items()}
    return _Search(pairs, touching).settle(domains, list(offered), list(links))


@dataclass(frozen=True)
class _Search:
    """Semi-joins until nothing changes, then a choice, part by independent part."""

    pairs: Mapping[Link, _Pairs]
    touching: Mapping[str, list[Link]]

    def settle(self, domains: Domains, some: list[str], stale: list[Link]) -> dict[str, int] | None:
        """A choice for these operators, given that only these edges may have to be joined again."""
        if not self._narrow(domains, stale):
            return None
        chosen = {operator: min(domains[operator]) for operator in some if len(domains[operator]) == 1}
        for part in self._parts([operator for operator in some if operator not in chosen]):
            found = self._choose(domains, part)
            if found is None:
                return None
            chosen.update(found)
        return chosen

    def _choose(self, domains: Domains, part: list[str]) -> dict[str, int] | None:
        first = min(part, key=lambda operator: (-len(self.touching[operator]), len(domains[operator])))
        for i in sorted(domains[first]):
            trial = {**domains, first: frozenset({i})}
            found = self.settle(trial, part, list(self.touching[first]))
            if found is not None:
                return found
        return None

    def _narrow(self, domains: Domains, stale: list[Link]) -> bool:
        waiting = deque(stale)
        queued = set(stale)
        while waiting:
            link = waiting.popleft()
            queued.discard(link)
            for end in ("source", "target"):
                towards: Literal["source", "target"] = "source" if end == "source" else "target"
                if _semijoin(domains, self.pairs[link], link, towards):
                    changed = link.source if end == "source" else link.target
                    if not domains[changed]:
                        return False
                    fresh = [other for other in self.touching[changed] if other not in queued]
                    waiting.extend(fresh)
                    queued.update(fresh)
        return all(domains.values())

    def _parts(self, open_: list[str]) -> Iterator[list[str]]:
        """The operators still open, split where no edge joins them."""
        left = set(open_)
        for start in open_:
            if start not in left:
                continue
            left.discard(start)
            part, todo = [], [start]
            while todo:
                operator = todo.pop()
                part.append(operator)
                for link in self.touching[operator]:
                    for other in (link.source, link.target):
                        if other in left:
                            left.discard(other)
                            todo.append(other)
            yield part


def _rooted(operators: Iterable[str], links: Sequence[Link]) -> list[tuple[str, Link]]:
    """A tree's edges from a root outwards, each with the end that is nearer to the root."""
    touching: dict[str, list[Link]] = {}
    for link in links:
        touching.setdefault(link.source, []).append(link)
        touching.setdefault(link.target, []).append(link)
    seen: set[str] = set()
    order: list[tuple[str, Link]] = []
    for root in operators:
        todo = [] if root in seen else [root]
        while todo:
            near = todo.pop(0)
            seen.add(near)
            for link in touching.get(near, ()):
                far = link.target if link.source == near else link.source
                if far not in seen:
                    order.append((near, link))
                    todo.append(far)
    return order
