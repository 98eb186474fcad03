"""Another process that has a checkpoint."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLDS = """
import sys
from caesura.io.places import Place
from caesura.io.places.lease import Lease
lease = Lease.take(Place.of(sys.argv[1]))
print("held", flush=True)
for _ in sys.stdin:
    try:
        lease.check()
        print("still", flush=True)
    except Exception as error:
        print(error, flush=True)
"""


@contextmanager
def another_process(checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease of a checkpoint."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(checkpoint)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def asked(process: subprocess.Popen[str]) -> str:
    """What it says of its lease now."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("and now?\n")
    process.stdin.flush()
    return process.stdout.readline()
