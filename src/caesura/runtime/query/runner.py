"""Lets the cells of a query work, one item at a time, and its sources read: at rest, and between rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from caesura.events.page import Page
from caesura.runtime.graph.budgets import Budgets
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.free_running import FreeRunning
from caesura.runtime.graph.schedule import BottomUp, Schedule
from caesura.runtime.graph.source_reader import SourceReader, Waiter, next_ready
from caesura.runtime.query.assembly import Assembly

if TYPE_CHECKING:
    from caesura.runtime.claims.claiming import Claiming


class Onlooker(Protocol):
    """Whoever shows other threads how a query stands; the thread that runs it calls."""

    def look(self) -> None:
        """Between two steps."""

    def update(self) -> None:
        """When the query stops working for a while."""


class Runner:
    """Chooses what works next, and delivers feedback before the page that it is meant for."""

    def __init__(self, parts: Assembly, schedule: Schedule, claiming: Claiming | None) -> None:
        self._graph, self._mailbox = parts.graph, parts.graph.mailbox
        self._readers, self._feeders = list(parts.readers.values()), parts.feeders
        self._clocks = [reader for reader in self._readers if reader.rowless]
        """Their turn never comes by how far they are: it is always theirs."""
        self._schedule, self._claiming = schedule, claiming
        self._pulls = bool(parts.readers or parts.feeders) or claiming is not None
        """Whether more may come by itself when nothing is queued."""
        self._fed = any(cell.node.fed for cell in parts.graph.cells)
        """Whether something is fed by hand, so that nothing tells when the input is over."""
        self._free_running = FreeRunning(parts.loops) if self._readers and claiming is None else None
        """Where claims are made each speaks of a prefix that has run its course."""
        self.budgets = Budgets(parts.graph.cells)
        self.waiter = Waiter()
        self.onlookers: list[Onlooker] = []

    def run(self) -> None:
        """Works until nothing is queued and every source is at its end: an epoch, for budgets."""
        self.budgets.begin()
        self.work()
        if self._resume():
            self.work()
        self.rest()

    def work(self) -> None:
        """Works off what is queued and what the sources have, within the epoch that `run` began."""
        while self._step():
            for one in self.onlookers:
                one.look()

    def replay(self) -> None:
        """Works off what is queued and what the sources have now, and waits for nothing."""
        while self._next() is not None or self._mailbox.waiting:
            self._work_off()
        while self._read([reader for reader in self._readers if not reader.done]):
            self._work_off()
            for one in self.onlookers:
                one.look()

    def _work_off(self) -> None:
        """Takes items until none is queued, and delivers feedback."""
        while self._next() is not None:
            self._step()
        self.deliver()

    def take_queued(self) -> None:
        """Works off what is queued, and reads nothing more."""
        while (edge := self._next()) is not None:
            assert edge.target is not None
            edge.target.work(edge.port)

    def step(self) -> bool:
        """Takes one item, or one batch of raw rows, or else work that waits; False when there is nothing."""
        for one in self.onlookers:
            one.look()
        return self._step() or self._go_on()

    def rest(self) -> None:
        """Shows other threads how the query stands now that it stops working."""
        for one in self.onlookers:
            one.update()

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
        if edge.items[0].__class__ is Page:  # for every item: no call
            if edge.back and self._read_between(edge):
                return True
            if mailbox.waiting:
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
        if not self._pulls:
            return False
        live = [r for r in self._readers if not r.done]
        if self._read(live) or any(advance() for advance in self._feeders):
            return True
        if live and not self._fed and all(reader.follows for reader in live):
            for reader in live:
                reader.finish()
            return True
        if self._fed and self._next() is None and all(reader.rowless for reader in live):
            return False
        if live and self._next() is None and not self._go_on():
            self.waiter.wait(live)
        return bool(live)

    def _read_between(self, edge: Edge) -> bool:
        """Reads a source before the next round of a loop, where it has something and little is in flight."""
        if self._free_running is None:
            return False
        live = [r for r in self._readers if not r.done]
        if not self._free_running.may_read(edge, live):
            return False
        if self._mailbox.waiting:
            self.deliver()
        found = self._read(live)
        self._free_running.asked(live, found=found)
        return found

    def _read(self, live: list[SourceReader]) -> bool:
        """Reads the source whose turn it is; False when none has anything now."""
        if self._claiming is not None:
            return self._claiming.pull()
        for clock in self._clocks:
            if not clock.done:
                clock.pass_over()
        ready = next_ready(live)
        for reader in ready.passed_over:
            reader.pass_over()
        if ready.chosen is not None:
            ready.chosen.turn()
        return ready.chosen is not None
