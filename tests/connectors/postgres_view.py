"""A process that keeps a view of two tables of Postgres in a third; tests kill it."""

from __future__ import annotations

import sys

import caesura as cz


def main(dsn: str, orders: str, customers: str, target: str, folder: str) -> None:
    bought = cz.read.postgres(dsn, orders, slot=orders)
    known = cz.read.postgres(dsn, customers, slot=customers).rename({"id": "customer"})
    by_region = (
        bought.join(known, on="customer").group_by("region").alive().agg(n=cz.count(), total=cz.sum("amount"))
    )
    sink = cz.postgres(dsn, target)
    query = by_region.upserts(key="region").query(checkpoint=f"{folder}/checkpoint", sink=sink, every="50ms")
    while query.step():
        sys.stdout.write("step\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
