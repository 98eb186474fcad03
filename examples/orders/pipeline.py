"""Orders that come late, and orders that are corrected or cancelled after they were counted."""

from __future__ import annotations

from pathlib import Path

import caesura as cz

DATA = Path(__file__).parent / "data"

# A '+' says an order; a '-' takes it back, and a '+' behind it says it anew. Times are seconds.
# The source promises that nothing older than ten minutes changes any more; what does is put aside.
_orders = cz.read.csv(
    DATA / "orders.csv",
    time="placed",
    end="until",
    new_end="now",
    kind="kind",
    punctuate=cz.delay(600),
    name="orders",
)

# Revenue per shop and ten minutes.
revenue = _orders.group_by("shop").tumbling(600).agg(revenue=cz.sum("amount"), orders=cz.count())
