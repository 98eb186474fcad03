"""Arrow's stream format read with care: what comes from outside may say that it is longer than it is.

Arrow trusts the offsets that it reads. A crafted file, or one that was changed, would be read past its
end, which ends the process. So every batch is checked before anything looks at it.

>>> first_batch(b"no batch")
Traceback (most recent call last):
...
ValueError: this is no whole batch of Arrow.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def first_batch(data: Any) -> pa.RecordBatch:
    """The first batch of a stream, as bytes or a buffer; a ValueError where it is not whole."""
    try:
        batch = pa.ipc.open_stream(data).read_next_batch()
        batch.validate(full=True)
    except UNREADABLE as error:
        raise ValueError("this is no whole batch of Arrow.") from error
    return batch


def whole_table(data: Any) -> pa.Table:
    """All batches of a stream; a ValueError where one is not whole."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except UNREADABLE as error:
        raise ValueError("this is no whole table of Arrow.") from error
    return table


UNREADABLE = (pa.ArrowException, StopIteration, EOFError, OSError, ValueError, TypeError, KeyError)
"""What Arrow raises for bytes that it cannot read."""
