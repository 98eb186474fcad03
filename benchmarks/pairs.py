"""Two ways side by side, so that what else the machine does falls on both."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

Laps = Iterator[None]
"""A run that can be stopped after every few items, so that two are timed side by side."""


def paired(one: Callable[[], Laps], other: Callable[[], Laps], pairs: int) -> dict[str, Any]:
    """The difference in CPU time between two ways that run side by side, lap by lap, in either order.

    A pair is two runs of each: who goes first in a lap pays more, so in the second run it is the other.
    Arrow parses the same files for both, partly ahead and in threads of its own: each is given half of it.
    The median of the pairs' ratios is given, and the sum over laps of the median difference in each, which
    other work on the machine moves less; both with where they lie 95 times in 100 when pairs are resampled.
    """
    side_by_side(one(), other(), 0)
    took, parsing = [], []
    for turn in range(2 * pairs):
        gc.collect()
        gc.disable()
        began = time.process_time()
        with Parsing.apart():
            took.append(side_by_side(one(), other(), turn))
        parsing.append((time.process_time() - began - np.sum(took[-1])) / 2)
        gc.enable()
    laps = np.array(took).reshape(pairs, 2, 2, -1).mean(axis=1)  # per pair, way and lap
    shared = np.array(parsing).reshape(pairs, 2).mean(axis=1)
    first, second = laps.sum(axis=2).T + shared
    ratios = 100 * (second / first - 1)

    def typical(some: Some) -> float:
        return float(np.median(ratios[some]))

    def by_lap(some: Some) -> float:
        more = np.median(laps[some, 1] - laps[some, 0], axis=0).sum()
        return float(100 * more / np.median(first[some]))

    whole = np.arange(pairs)
    return {
        "off_s": f"{first.mean():.3f} ± {first.std():.3f}",
        "on_s": f"{second.mean():.3f} ± {second.std():.3f}",
        "median_percent": round(typical(whole), 2),
        "interval": [round(end, 2) for end in resampled(typical, pairs)],
        "by_lap_percent": round(by_lap(whole), 2),
        "by_lap_interval": [round(end, 2) for end in resampled(by_lap, pairs)],
        "pairs": pairs,
    }


Some = npt.NDArray[np.int64]


def resampled(estimate: Callable[[Some], float], count: int, *, sure: float = 95) -> tuple[float, float]:
    """Where an estimate over some of so many pairs lies, in percent of all draws (bootstrap)."""
    picked = np.random.default_rng(1).integers(0, count, (2000, count))
    low, high = np.percentile([estimate(some) for some in picked], [(100 - sure) / 2, (100 + sure) / 2])
    return float(low), float(high)


def side_by_side(one: Laps, other: Laps, turn: int) -> list[list[float]]:
    """CPU seconds of two runs, per lap, without parsing files; who goes first is drawn for every lap.

    Turns 2 k and 2 k + 1 draw the same, the other way round.
    """
    runs: tuple[Laps, Laps] = (one, other)
    taken: list[list[float]] = [[], []]
    draw = random.Random(turn // 2)
    going = True
    while going:
        leads = draw.getrandbits(1) ^ turn % 2
        for which in (leads, 1 - leads):
            began, parsed = time.thread_time(), Parsing.seconds
            going = next(runs[which], STOP) is not STOP
            taken[which].append(time.thread_time() - began - (Parsing.seconds - parsed))
    return taken


STOP = object()


class Parsing:
    """A CSV file as Arrow opens it, with a clock that runs while it parses in the engine's thread."""

    seconds: ClassVar[float] = 0.0

    def __init__(self, *args: Any, **options: Any) -> None:
        self.opened = self.timed(lambda: open_csv(*args, **options))
        self.schema = self.opened.schema

    @classmethod
    @contextmanager
    def apart(cls) -> Iterator[None]:
        csv.open_csv = cls
        try:
            yield
        finally:
            csv.open_csv = open_csv

    @classmethod
    def timed(cls, action: Callable[[], Any]) -> Any:
        began = time.thread_time()
        try:
            return action()
        finally:
            cls.seconds += time.thread_time() - began

    def __enter__(self) -> Parsing:
        return self

    def __exit__(self, *failure: object) -> None:
        self.opened.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self.timed(lambda: next(self.opened, None))) is not None:
            yield batch


open_csv = csv.open_csv
