"""64-bit words for texts and decimals, in the order of the values as far as 64 bits can tell.

Values with equal words are few, and whoever asks compares those themselves; all structs, lists and maps have
one word. A text's word is made of the
eight bytes behind what all texts so far begin with; when that becomes shorter, words are made anew.

>>> some = SortWords(pa.string())
>>> some.take(pa.array(["sensor-00000012", "sensor-00000003"])), some.prefix
(False, b'sensor-000000')
>>> some.of(pa.array(["sensor-00000012", "sensor-00000003"])).argsort().tolist()
[1, 0]
>>> some.take(pa.array(["sense"])), some.prefix
(True, b'sens')
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.columns import raw_parts
from caesura.events.order import is_nested
from caesura.events.types import is_bytes
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8
from caesura.ops.aggregate.accumulators.extremes import has_words, ranked
from caesura.ops.aggregate.accumulators.sums import wide_words

EXACT = 2**52
"""High halves up to which the low half still shows in a double."""


@kernel
def prefix_words(offsets: I64, data: U8, skip: int, out: I64) -> None:
    """Eight bytes of each text from ``skip`` on, the first one highest: words in the order of the texts."""
    for i in range(len(out)):
        word = 0
        for k in range(8):
            at = offsets[i] + skip + k
            byte = int(data[at]) if at < offsets[i + 1] else 0
            if k == 0:
                byte -= 128  # the highest bit is the sign
            word = (word << 8) | byte if k else byte
        out[i] = word


def shared(a: bytes, b: bytes) -> bytes:
    """What two texts begin with."""
    for place, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return a[:place]
    return min(a, b, key=len)


class SortWords:
    """How values of a type become words."""

    def __init__(self, t: pa.DataType) -> None:
        self.type = t
        self.prefix: bytes | None = None
        """What all texts begin with."""

    def take(self, values: pa.Array) -> bool:
        """Looks at values to come, none of them null; whether words made before are of another kind."""
        if not is_bytes(self.type) or len(values) == 0:
            return False
        ends = pc.min_max(values.cast(pa.binary()))
        common = shared(ends["min"].as_py(), ends["max"].as_py())
        before, self.prefix = self.prefix, common if self.prefix is None else shared(self.prefix, common)
        return before is not None and before != self.prefix

    def of(self, values: pa.Array) -> I64:
        """The words of values that were looked at."""
        if has_words(self.type):
            return ranked(values)
        if is_bytes(self.type):
            offsets, data = raw_parts(values)
            out = np.empty(len(values), np.int64)
            prefix_words(offsets.astype(np.int64), data, len(self.prefix or b""), out)
            return out
        if is_nested(self.type):
            return np.zeros(len(values), np.int64)
        low, high = wide_words(values)
        small = np.abs(high) < EXACT
        near = high.astype(np.float64) * 2.0**64 + np.where(small, low, 0).astype(np.float64)
        return ranked(pa.array(near))
