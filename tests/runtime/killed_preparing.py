"""A process that prepares and kills itself at a put: killed_preparing.py FOLDER NUMBER."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from test_change import PLANS

from caesura.io.places.local import LocalStorage

real, count = LocalStorage.put, [0]


def main(folder: str, at: int) -> None:
    own = threading.get_ident()  # another thread beats for the lease, when it is time to

    def put(storage: LocalStorage, *args: Any, **options: Any) -> None:
        if threading.get_ident() == own:
            if count[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)
            count[0] += 1
        real(storage, *args, **options)

    LocalStorage.put = put  # type: ignore[method-assign]
    PLANS["size"](Path(folder)).prepare_upgrade(f"{folder}/cp", every="0s")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
