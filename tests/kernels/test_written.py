"""Kernels whose text is written at run time are kept on disk, by several threads at once too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from caesura.kernels.written import run_of

TEXT = "def run(x):\n    return x + {number}\n"


def test_threads_that_want_one_text_at_once_all_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAESURA_CACHE", str(tmp_path))
    met = Barrier(8)

    def first(number: int) -> str:
        met.wait()
        return str(run_of("race", TEXT.format(number=number), machine=True).py_func(1))

    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            assert set(threads.map(first, [number] * 8)) == {str(number + 1)}
    assert {path.suffix for path in (tmp_path / "kernels").iterdir()} <= {".py", ""}
