"""Tables of Iceberg by their catalogs, which a name or properties tell; needs the package `pyiceberg`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from caesura.errors import CaesuraError, DataError, PlanError
from caesura.io.codecs.protocol import reason
from caesura.io.sinks.packages import package

Catalog = str | Mapping[str, str]


@dataclass(frozen=True)
class IcebergName:
    """The name of a table in a catalog; it travels to workers."""

    table: str
    catalog: Catalog

    def __post_init__(self) -> None:
        if "." not in self.table:
            raise PlanError(
                f"'{self.table}' names no table of a catalog.",
                remedy="Give its namespace too: 'traffic.speeds'.",
            )

    @property
    def shown(self) -> str:
        """What messages call it; properties may hold secrets."""
        return f"the Iceberg table '{self.table}'"

    def opened(self) -> Any:
        """The catalog."""
        try:
            if isinstance(self.catalog, str):
                return _opened(self.catalog, ())
            given = dict(self.catalog)
            return _opened(given.pop("name", "default"), tuple(given.items()))
        except CaesuraError:
            raise
        except Exception as error:
            raise PlanError(
                f"the catalog of {self.shown} cannot be opened: {reason(error)}.",
                remedy="Give the name of a catalog that pyiceberg knows, or its properties: "
                "catalog={'name': 'lake', 'type': 'sql', 'uri': ..., 'warehouse': ...}.",
            ) from error

    def load(self) -> Any:
        """The table as it is now."""
        missing = package("pyiceberg.exceptions", "iceberg")
        try:
            return self.opened().load_table(self.table)
        except (missing.NoSuchTableError, missing.NoSuchNamespaceError):
            raise DataError(
                f"there is no {self.shown.removeprefix('the ')} in its catalog.",
                remedy="See that the namespace and the name are right.",
            ) from None


@lru_cache(16)
def _opened(name: str, properties: tuple[tuple[str, str], ...]) -> Any:
    return package("pyiceberg.catalog", "iceberg").load_catalog(name, **dict(properties))
