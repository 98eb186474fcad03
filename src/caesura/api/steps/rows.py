"""Steps on rows one by one: which are kept, and with which columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from caesura.api.columns import together
from caesura.api.planned import Planned
from caesura.errors import CaesuraError, PlanError, closest
from caesura.expr import Expr, as_column, as_expr, as_predicate, col, name_of
from caesura.ops.refused import OnError
from caesura.ops.sample import Sample
from caesura.ops.select import Select
from caesura.ops.where import Where
from caesura.plan import here

if TYPE_CHECKING:
    from caesura.api.stream import Stream


class RowSteps(Planned):
    """Steps on rows one by one: which are kept, and with which columns."""

    def where(self, predicate: Expr | bool | str, *, name: str = "") -> Stream:
        """Keeps the events whose payload satisfies the predicate; a text is SQL: ``where("id > 3")``."""
        try:
            test = as_predicate(predicate)
        except CaesuraError as error:
            raise error.at(name or "where", here()) from None
        return self._then(Where(inputs=(self.node,), predicate=test, name=name))

    filter = where

    def sample(self, fraction: float, seed: int = 0, *, name: str = "") -> Stream:
        """Keeps a share of the rows, chosen by what they hold and a seed: ``sample(0.1, seed=7)``.

        Equal rows are kept or left out together, and a correction goes with the row that it corrects. The
        choice is the same on every host, in any number of buckets and after a restart; a greater share
        keeps all that a smaller one does. Samples with different seeds are independent of each other.
        """
        by = tuple(self.columns)
        return self._then(Sample(inputs=(self.node,), fraction=fraction, seed=seed, by=by, name=name))

    def select(self, /, *columns: str | Expr | Mapping[str, Any], **computed: Any) -> Stream:
        """Keeps, renames and computes columns: ``select("id", kmh=col("mph") * 1.6)``.

        What is computed may also be given as mappings: ``select("id", {"kmh": col("mph") * 1.6})``.
        """
        pairs: list[tuple[str, Expr]] = []
        for c in columns:
            if isinstance(c, Mapping):
                pairs += [(output, as_expr(expr)) for output, expr in c.items()]
            else:
                pairs.append((name_of(as_column(c)), as_column(c)))
        if isinstance(computed.get("name"), str):
            warnings.warn(
                "select(name=...) is a column; name the step with .named(...) behind it", stacklevel=2
            )
        pairs += [(output, as_expr(expr)) for output, expr in computed.items()]
        return self._then(Select(inputs=(self.node,), columns=tuple(pairs)))

    def with_columns(self, columns: Mapping[str, Any] | None = None, /, **computed: Any) -> Stream:
        """All columns, with some computed anew or added."""
        pairs: dict[str, Expr] = {name: col(name) for name in self.columns}
        made = together(columns, computed, "with_columns")
        pairs.update({name: as_expr(expr) for name, expr in made.items()})
        return self._then(Select(inputs=(self.node,), columns=tuple(pairs.items())))

    def on_error(self, where: OnError) -> Stream:
        """Where rows go for which the step before this one has no value: ``stop``, the default, or ``late``.

        A sum that its type cannot hold, a text that is no number, a function that fails: with ``stop`` the
        query stops and names the step and the row, with ``late`` the row waits in the late table.
        """
        if where not in ("stop", "late") or not isinstance(self.node, Select | Where):
            error = PlanError(
                f"on_error({where!r}) says nothing about '{self.node.step}'.",
                remedy="Write .on_error('late') or .on_error('stop') behind where, select or with_columns.",
            )
            raise error.at("on_error", here())
        return self._then(replace(self.node, on_error=where))

    def drop(self, *names: str) -> Stream:
        """All columns but these."""
        for name in names:
            self._known(name, "drop")
        pairs = [(name, col(name)) for name in self.columns if name not in names]
        return self._then(Select(inputs=(self.node,), columns=tuple(pairs)))

    def rename(self, columns: Mapping[str, str] | None = None, /, **more: str) -> Stream:
        """Renames columns: ``rename(new="old")``, or ``rename({"new": "old"})``."""
        names = together(columns, more, "rename")
        for old in names.values():
            self._known(old, "rename")
        new = {old: output for output, old in names.items()}
        return self._then(
            Select(inputs=(self.node,), columns=tuple((new.get(n, n), col(n)) for n in self.columns))
        )

    def _known(self, name: str, step: str) -> None:
        if name not in self.columns:
            error = PlanError(f"there is no column '{name}'.", remedy=closest(name, self.columns))
            raise error.at(step, here())
