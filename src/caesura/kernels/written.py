"""Kernels whose text is written at run time: compiled once, and kept on disk by what they say.

>>> run = run_of("example", "def run(x):\\n    return x + 1\\n", machine=False)
>>> run(2)
3
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
from pathlib import Path
from typing import Any

from caesura.kernels import Kernel


def run_of(kind: str, text: str, *, machine: bool) -> Any:
    """The function ``run`` of a text: as machine code, or as the plain Python that it is."""
    if not machine:
        scope: dict[str, Any] = {}
        exec(text, scope)
        return scope["run"]
    import numba

    name = f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    folder = Path(os.environ.get("CAESURA_CACHE", str(Path.home() / ".cache" / "caesura"))) / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
        fresh.write_text(text)
        fresh.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    for known, value in list(vars(module).items()):
        if isinstance(value, Kernel):
            setattr(module, known, value.compiled())
    return numba.njit(cache=True, nogil=True, error_model="numpy")(module.run)
