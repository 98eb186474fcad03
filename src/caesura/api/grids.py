"""Steps that put rows on a grid: numbered buckets of a column, and Trill's quantised lifetimes."""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.ops.windows import Bucket, Quantise
from caesura.plan import Duration, Node, here, ticks


def bucketed(
    source: Node, attr: str, size: Duration, slide: Duration | None, origin: int, name: str
) -> Bucket:
    """The window numbers of a column."""
    known = attr in source.schema.names
    time = source.schema.field(attr).type if known else pa.int64()
    try:
        width = ticks(size, time, "bucket size")
        step = width if slide is None else ticks(slide, time, "slide")
    except CaesuraError as error:
        raise error.at(name or "bucket", here()) from None
    return Bucket(inputs=(source,), attr=attr, size=width, slide=step, origin=origin, name=name)


def quantised(source: Node, size: Duration, every: Duration, offset: Duration) -> Quantise:
    """Lifetimes that lie on a grid."""
    try:
        width, hop, start = (
            ticks(d, source.time, w)
            for d, w in ((size, "window size"), (every, "hop"), (offset, "window offset"))
        )
    except CaesuraError as error:
        raise error.at("lifetimes", here()) from None
    return Quantise(inputs=(source,), size=width, period=hop, offset=start)
