"""A step at work, with its edges: takes one item at a time, and sends what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Protocol, TypeVar

from caesura.consistency.token import Marks, is_token, pieces
from caesura.errors import RAISED, CaesuraError, failure
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.responder import Responder
from caesura.plan import Node, Operator
from caesura.plan.step_log import WORKING
from caesura.punctuation import INFINITY, Punctuation
from caesura.runtime.feedback.at_step import StepFeedback
from caesura.runtime.feedback.mailbox import Mailbox
from caesura.runtime.graph.edge import Edge

T = TypeVar("T")
AROUND_BYTES = 1 << 20
"""Up to so many bytes of pages that wait to go around a loop go as one."""


class Tap(Protocol):
    """Whoever takes what leaves a cell."""

    def append(self, item: Item, /) -> None: ...


class ItemObserver(Protocol):
    """Whoever makes claims about what leaves: it sees tokens pass, and what each item became."""

    def token(self, cell: Cell, tokens: list[Punctuation], /) -> Punctuation: ...
    def derived(self, cell: Cell, item: Item, items: list[Item], /) -> list[Item]: ...


class PageTaker(Protocol):
    """Whoever may do a page's work in several steps at once; where it does not, it has done nothing."""

    def took(self, page: Page, /) -> bool: ...
    def divide(self, threads: Executor, count: int, /) -> None: ...


class Cell:
    """A step at work, with its edges."""

    def __init__(self, node: Node, operator: Operator, label: str, mailbox: Mailbox) -> None:
        self.node, self.operator, self.label = node, operator, label
        self.inputs: list[Edge] = []
        self.outputs: list[Edge] = []
        self.depth = 0
        self.taps: list[Tap] = []
        self.around: Edge | None = None
        """The edge that leads back around the loop that ends here."""
        self.feedback = StepFeedback(self, mailbox)
        self.responder: Responder | None = None
        """What stops rows here on account of feedback, from the first message on."""
        self.awake: Responder | None = None
        """The same, but while it rests: then items pass as if there were none."""
        self.rest = 0
        """For how many more pages it rests."""
        self.watch: ItemObserver | None = None
        self.fused: PageTaker | None = None
        """Whoever takes pages past several steps at once."""
        self.carries = node.row_wise
        """Whether tokens may pass as row positions of a page."""

    @property
    def blocked(self) -> bool:
        return any(edge.full for edge in self.outputs)

    @property
    def joined_bytes(self) -> int:
        """Up to how many bytes of waiting pages are taken as one: a step that passes rows on asks below."""
        passes = (self.node.row_wise or self.node.fed) and len(self.outputs) == 1 and not self.taps
        target = self.outputs[0].target if passes else None
        return self.operator.joined_bytes if target is None else target.joined_bytes

    def work(self, port: int) -> None:
        """Takes one item."""
        edge = self.inputs[port]
        if self.awake is None and self.watch is None and not edge.desired:
            alone = len(edge.items) == 1
            item = edge.next_item(0 if alone else AROUND_BYTES if edge.back else self.joined_bytes)
            is_page = isinstance(item, Page)
            if self.fused is None or not is_page or not self.fused.took(item):  # type: ignore[arg-type]
                self.send(self.receive(port, item))
            if self.responder is not None:
                self.rest -= is_page
                if self.rest <= 0 or self.operator.promises[port].cti == INFINITY:
                    self.feedback.wake()
        else:
            self._work_observed(port, edge)
        if self.around is not None:
            self.go_around()

    def _work_observed(self, port: int, edge: Edge) -> None:
        """Takes one item where feedback or claims are to be thought of."""
        if self.watch is not None and is_token(edge.items[0]):
            tokens = [e.items.popleft() for e in self.inputs if not e.back]
            self.flush()
            self.send([self.watch.token(self, [t for t in tokens if is_token(t)])])
            return
        if edge.desired and self.watch is None:
            edge.promote()
        item = edge.items.popleft()
        items = self.receive(port, item)
        self.send(items if self.watch is None else self.watch.derived(self, item, items))
        if self.awake is not None or edge.desired:
            self.feedback.follow(edge, item)

    def go_around(self) -> None:
        """Puts what goes back around the loop on its edge."""
        assert self.around is not None
        for item in self.operator.around:
            self.around.push(item)
        self.operator.around.clear()

    def flush(self) -> bool:
        """Sends what waits here and needs no further input; whether there was any."""
        if not self.operator.pending:
            return False
        self.send(self.guarded(self.operator.flush))
        return True

    def receive(self, port: int, item: Item) -> list[Item]:
        """What leaves because an item came."""
        counters = self.operator.counters
        if isinstance(item, Page):
            counters.pages_in += 1
            counters.rows_in += len(item)
            if isinstance(item.tags, Marks):
                return self.carry(port, item, item.tags)
            if self.awake is not None:
                above = self.inputs[port].source
                item = self.awake.admit(port, item, None if above is None else above.responder)
            return self.guarded(self.operator.page, port, item)
        counters.punctuation_in = item
        return self.guarded(self.operator.punctuation, port, item)

    def carry(self, port: int, page: Page, marks: Marks) -> list[Item]:
        """A page with tokens in it through a step that keeps nothing; cut if the step loses them."""
        if self.carries:
            items = self.guarded(self.operator.page, port, page)
            carried = [i.tags.tokens for i in items if isinstance(i, Page) and isinstance(i.tags, Marks)]
            if carried == [marks.tokens]:
                return items
            self.carries = False
        out: list[Item] = []
        for piece in pieces(page):
            out += self.guarded(self.operator.page, port, piece) if isinstance(piece, Page) else [piece]
        return out

    def guarded(self, call: Callable[..., Iterable[T]], *args: object) -> list[T]:
        """Calls the operator; an error that it raises names the step and the user's line."""
        WORKING.counters = self.operator.counters
        try:
            return list(call(*args))
        except CaesuraError as error:
            raise error.at(self.node.step, self.node.place) from error.__cause__
        except RAISED as error:
            raise self.told(error) from error
        finally:
            WORKING.counters = None

    def told(self, error: BaseException) -> CaesuraError:
        """What is not ours, as an error that names the step and the user's line."""
        return failure(error).at(self.node.step, self.node.place)

    def send(self, items: Iterable[Item]) -> None:
        """Puts items on every edge out and into every tap."""
        counters = self.operator.counters
        if self.awake is not None:
            items = self.awake.release(items)
        for item in items:
            if isinstance(item, Page):
                marked, rows = isinstance(item.tags, Marks), len(item)
                if rows == 0 and not marked:
                    continue
                counters.rows_out += rows
            else:
                marked = False
                counters.punctuation_out = item
            for edge in self.outputs:
                edge.push(item)
            for tap in self.taps:
                for part in pieces(item) if marked and isinstance(item, Page) else (item,):
                    tap.append(part)
