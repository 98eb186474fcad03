"""Lets the cells of a query work, one item at a time, and its sources read when nothing is queued."""

from __future__ import annotations

from caesura.events.page import Page
from caesura.runtime.claims.claiming import Claiming
from caesura.runtime.graph.budgets import Budgets
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.schedule import BottomUp, Schedule
from caesura.runtime.graph.source_reader import SourceReader, Waiter, next_ready
from caesura.runtime.query.assembly import Assembly


class Runner:
    """Chooses what works next, and delivers feedback before the page that it is meant for."""

    def __init__(self, parts: Assembly, schedule: Schedule, claiming: Claiming | None) -> None:
        self._graph, self._mailbox = parts.graph, parts.graph.mailbox
        self._readers, self._feeders = list(parts.readers.values()), parts.feeders
        self._schedule, self._claiming = schedule, claiming
        self._pulls = bool(parts.readers or parts.feeders) or claiming is not None
        """Whether more may come by itself when nothing is queued."""
        self._fed = any(cell.node.fed for cell in parts.graph.cells)
        """Whether something is fed by hand, so that nothing tells when the input is over."""
        self.budgets = Budgets(parts.graph.cells)
        self.waiter = Waiter()

    def run(self) -> None:
        """Works until nothing is queued and every source is at its end: an epoch, for budgets."""
        self.budgets.begin()
        self.work()
        if self._resume():
            self.work()

    def work(self) -> None:
        """Works off what is queued and what the sources have, within the epoch that `run` began."""
        while self._step():
            pass

    def step(self) -> bool:
        """Takes one item, or one batch of raw rows, or else work that waits; False when there is nothing."""
        return self._step() or self._go_on()

    def close(self) -> None:
        """Releases what the sources hold open; where they are read on they are opened again."""
        for reader in self._readers:
            reader.close()

    def deliver(self) -> None:
        """Delivers all feedback that waits, and has given what is demanded."""
        self._mailbox.deliver(self._graph.bottom_up)
        if self._mailbox.demands:
            self._give_now()

    def _go_on(self) -> bool:
        """Begins another epoch with the work that waits; False where none does."""
        self.budgets.begin()
        return self._resume()

    def _resume(self) -> bool:
        """Lets work that waits go on; not under claims, which speak of what each item became."""
        return self._claiming is None and self.budgets.resume()

    def _step(self) -> bool:
        edge, mailbox = self._next(), self._mailbox
        if edge is None:
            if mailbox.waiting and (self._pulls or mailbox.urgent):
                self.deliver()
            return self._pull()
        if mailbox.waiting and edge.items[0].__class__ is Page:  # for every item: no call
            self.deliver()
        assert edge.target is not None
        edge.target.work(edge.port)
        if mailbox.urgent:
            self.deliver()
        if self._claiming is not None:
            self._claiming.worked()
        return True

    def _next(self) -> Edge | None:
        """The edge whose next item is taken; None when none can be."""
        if type(self._schedule) is BottomUp:
            return self._graph.deepest()
        ready = self._graph.ready()
        return None if not ready else self._schedule.pick(ready) if len(ready) > 1 else ready[0]

    def _give_now(self) -> None:
        """Lets every step give what is demanded of it, from the sources down, so that each has the latest."""
        demands = self._mailbox.demands
        for cell in sorted(self._graph.cells, key=lambda c: c.depth):
            patterns = demands.pop(cell, ())
            if not patterns:
                continue
            while (edge := self._next()) is not None:
                if self._mailbox.waiting and isinstance(edge.items[0], Page):
                    self._mailbox.deliver(self._graph.bottom_up)
                assert edge.target is not None
                edge.target.work(edge.port)
            for pattern in patterns:
                cell.send(cell.guarded(cell.operator.demand, pattern))

    def _pull(self) -> bool:
        """Lets the source read whose turn it is; False when all are at their end.

        When none has anything, the queries that this one reads from take a step; or else it waits.
        """
        live = [r for r in self._readers if not r.done]
        if self._read(live) or any(advance() for advance in self._feeders):
            return True
        if live and not self._fed and all(reader.follows for reader in live):
            for reader in live:
                reader.finish()
            return True
        if live and self._next() is None and not self._go_on():
            self.waiter.wait(live)
        return bool(live)

    def _read(self, live: list[SourceReader]) -> bool:
        """Reads the source whose turn it is; False when none has anything now."""
        if self._claiming is not None:
            return self._claiming.pull()
        ready = next_ready(live)
        for reader in ready.passed_over:
            reader.pass_over()
        if ready.chosen is not None:
            ready.chosen.turn()
        return ready.chosen is not None
