"""Steps that put rows on a grid: numbered buckets of a column, and Trill's quantised lifetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.ops.windows import Bucket, Quantise
from caesura.plan import Duration, here, ticks

if TYPE_CHECKING:
    from caesura.api.stream import Stream


def bucketed(
    stream: Stream, attr: str, size: Duration, slide: Duration | None, origin: int, name: str
) -> Stream:
    """A stream with the window numbers of a column."""
    from caesura.api.stream import Stream

    known = attr in stream.schema.names
    time = stream.schema.field(attr).type if known else pa.int64()
    try:
        width = ticks(size, time, "bucket size")
        step = width if slide is None else ticks(slide, time, "slide")
    except CaesuraError as error:
        raise error.at(name or "bucket", here()) from None
    return Stream(Bucket(inputs=(stream.node,), attr=attr, size=width, slide=step, origin=origin, name=name))


def quantised(stream: Stream, size: Duration, every: Duration, offset: Duration) -> Stream:
    """A stream whose lifetimes lie on a grid."""
    from caesura.api.stream import Stream

    time = stream.node.time
    try:
        width, hop, start = (
            ticks(d, time, w) for d, w in ((size, "window size"), (every, "hop"), (offset, "window offset"))
        )
    except CaesuraError as error:
        raise error.at("lifetimes", here()) from None
    return Stream(Quantise(inputs=(stream.node,), size=width, period=hop, offset=start))
