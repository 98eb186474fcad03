"""Whether a stream keeps to its scheme: checked on a record, or item by item while it runs.

Condition 1: every punctuation conforms to a template (or says less than one that does). Condition 2:
every event is covered, for each template, by a punctuation of its form (or one that says more). The end
of input, the punctuation on everything, covers all that came before it.

>>> from caesura.punctuation.scheme import Scheme
>>> from caesura.events import parse
>>> watch = Watch(Scheme.parse("{[[time:+, id:-]], [[time:-, id:#]]}"))
>>> watch.see(parse(" LE RE | id |\\n 1 2 | 7 | +\\n-- 5 --\\n-- definite: id = 8 --"))
>>> print(watch.report())
1 event is not covered by [[time:-, id:#]], for example (time 1, id 7)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.punctuation import NULL, TIME, Intent, Pattern
from caesura.punctuation.scheme import NONE, Scheme
from caesura.punctuation.template import ContractError, Template, pieces, template_of

Reading = Literal["exact", "implied"]
"""The thesis' letter, or also what says less (condition 1) and more (condition 2) than a template."""
MAX_WAITING_ROWS = 100_000


@dataclass
class Watch:
    """What one stream has given against its scheme."""

    scheme: Scheme
    reading: Reading = "implied"
    tolerates: Scheme = NONE
    """Forms that may come as well, and need not cover anything."""
    strangers: list[Pattern] = field(default_factory=list)
    """Punctuation of a form that no template has."""
    open: dict[Template, list[tuple[Page, np.ndarray[Any, np.dtype[np.int64]]]]] = field(default_factory=dict)
    """Per template the events that nothing has covered yet."""
    overflow: int = 0
    """Events that were not kept because too many waited already."""

    def __post_init__(self) -> None:
        if self.scheme.kind == "any":
            raise ContractError(
                "no stream can obey 'any'.", remedy="Name the templates that it gives, as in {[[time:+]]}."
            )
        self.open = {template: [] for template in self.scheme}

    def append(self, item: Item) -> None:
        """Takes one item; by this name a watch can stand where items are collected.

        Parameters
        ----------
        item
            A page or punctuation.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Scheme, obeys
        >>> watch = obeys([], Scheme.parse("{[[time:+, id:-]]}"))
        >>> watch.append(cz.cti(5))
        >>> watch.obeyed
        True
        """
        if isinstance(item, Page):
            self._hold(item)
        elif item.intent is Intent.DEFINITE:
            for pattern in pieces(item.pattern) if self.reading == "implied" else (item.pattern,):
                self._cover(pattern)

    def see(self, items: Iterable[Item]) -> None:
        """Takes items in order.

        Parameters
        ----------
        items
            Pages and punctuation.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Scheme, obeys
        >>> watch = obeys([], Scheme.parse("{[[time:+, id:-]]}"))
        >>> watch.see([cz.definite(id=3)])
        >>> watch.obeyed
        False
        """
        for item in items:
            self.append(item)

    def _hold(self, page: Page) -> None:
        for waiting in self.open.values():
            if sum(len(p) for p, _ in waiting) + len(page) > MAX_WAITING_ROWS:
                self.overflow += len(page)
            elif len(page):
                waiting.append((page, page.sync))

    def _cover(self, pattern: Pattern) -> None:
        if not pattern.attributes:
            self.open = {template: [] for template in self.open}
            return
        if not self._known(pattern):
            self.strangers.append(pattern)
        for template, waiting in self.open.items():
            if waiting and self._counts(pattern, template):
                self.open[template] = _uncovered(waiting, pattern)

    def _known(self, pattern: Pattern) -> bool:
        if self.reading == "exact":
            return any(t.conforms(pattern) for t in (*self.open, *self.tolerates))
        known = (*self.open, *self.tolerates)
        form = template_of(pattern, known[0].names) if known else None
        return form is not None and any(t.implies(form) for t in known)

    def _counts(self, pattern: Pattern, template: Template) -> bool:
        if self.reading == "exact":
            return template.conforms(pattern)
        said = {n: values for n, values in pattern.items() if values != NULL or template[n] != "+"}
        form = template_of(Pattern.of(said), template.names)  # where values have an order, nulls begin it
        return form is not None and form.implies(template)

    @property
    def waiting(self) -> int:
        """How many events some template has not covered yet."""
        return sum(len(page) for waiting in self.open.values() for page, _ in waiting) + self.overflow

    @property
    def obeyed(self) -> bool:
        """Whether both conditions hold for what has come so far."""
        return not self.strangers and self.waiting == 0

    def report(self) -> str:
        """What is against the scheme.

        Returns
        -------
        str
            A line each; empty where nothing is.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Scheme, obeys
        >>> watch = obeys([], Scheme.parse("{[[time:+, id:-]]}"))
        >>> watch.report()
        ''
        """
        lines = [f"the punctuation '{p}' has none of the forms {self.scheme}" for p in self.strangers]
        for template, waiting in self.open.items():
            count = sum(len(page) for page, _ in waiting)
            if count:
                page, times = waiting[0]
                shown = ", ".join(f"{n} {v}" for n, v in _row(page, times).items())
                verb = "event is" if count == 1 else "events are"
                lines.append(f"{count} {verb} not covered by {template}, for example ({shown})")
        return "\n".join(lines)

    def refuse(self, source: str) -> None:
        """Raises for a source whose punctuation is not what it declared.

        Parameters
        ----------
        source
            The source's name.

        Raises
        ------
        StreamError
            With the punctuation that no template has.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Scheme, obeys
        >>> watch = obeys([], Scheme.parse("{[[time:+, id:-]]}"))
        >>> watch.refuse("clicks")
        """
        if self.strangers:
            raise StreamError(
                f"the source '{source}' declares {self.scheme}, but gave '{self.strangers[0]}'.",
                remedy="Declare that form too, or take such punctuation out of the data.",
            )

    def close(self, source: str) -> None:
        """Raises also for events that the source never covered.

        Parameters
        ----------
        source
            The source's name.

        Raises
        ------
        StreamError
            With what was not covered.

        Notes
        -----
        Call it when the input has ended.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.contracts import Scheme, obeys
        >>> watch = obeys([], Scheme.parse("{[[time:+, id:-]]}"))
        >>> watch.close("clicks")
        """
        self.refuse(source)
        if self.waiting:
            raise StreamError(
                f"the source '{source}' declares {self.scheme}, but at the end {self.report()}.",
                remedy="Declare only the punctuation that covers every event.",
            )


def obeys(items: Sequence[Item], scheme: Scheme, reading: Reading = "exact") -> Watch:
    """Whether a recorded stream keeps to its scheme.

    Parameters
    ----------
    items
        Pages and punctuation, as they came.
    scheme
        What was declared.
    reading
        ``"exact"``: punctuation has the form of a template; other readings also take what says more or
        less.

    Returns
    -------
    Watch
        A watch that has seen it: ask it for ``obeyed`` and ``report()``.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura.contracts import Scheme, obeys
    >>> items = cz.parse('''
    ...  LE RE | id |
    ...   1 2  | 7  | +
    ...  -- definite: time < 5 --
    ... ''')
    >>> obeys(items, Scheme.parse("{[[time:+, id:-]]}")).obeyed
    True
    """
    watch = Watch(scheme, reading)
    watch.see(items)
    return watch


def _uncovered(
    waiting: list[tuple[Page, np.ndarray[Any, np.dtype[np.int64]]]], pattern: Pattern
) -> list[tuple[Page, np.ndarray[Any, np.dtype[np.int64]]]]:
    kept = []
    for page, times in waiting:
        left = np.flatnonzero(~pattern.matches(page.payload, times))
        if len(left):
            kept.append((page.take(left), times[left]))
    return kept


def _row(page: Page, times: np.ndarray[Any, np.dtype[np.int64]]) -> Mapping[str, Any]:
    payload: pa.RecordBatch = page.payload
    own = {name: payload.column(i)[0].as_py() for i, name in enumerate(payload.schema.names)}
    return {TIME: int(times[0]), **own}
