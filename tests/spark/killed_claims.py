"""A pipeline on Spark that kills its driver in the middle of its second epoch: killed_claims.py FOLDER.

The files of the epoch are written and committed then, and the claim that makes them count is not made.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from quick_start import quick_start
from test_change_on_spark import claim

import caesura as cz
from caesura.consistency.store import Manifest, Store

real = Store.commit


def killed(store: Store, manifest: Manifest) -> None:
    if manifest.claim.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    real(store, manifest)


if __name__ == "__main__":
    Store.commit = killed  # type: ignore[method-assign]
    spark = cz.session("caesura-killed", master="local[2]", buckets=2, **quick_start())
    claim(Path(sys.argv[1]), spark, "old")
