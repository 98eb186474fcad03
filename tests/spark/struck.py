"""A query in a process of its own, and the table of faults that befall it.

A fault puts the next rows and does its harm while the query works on them, or before; it ends with a query
that runs, or will by itself. What it leaves is then waited for.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
from fault_scenes import EXITS, FAILS, OTHER, SEPARATE, Scene

PATIENCE = 300.0
BUSY = "Spark could not start Python in time"
"""What a query says that a busy machine has stopped: no fault of ours, and it is started again."""
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long *jump;
__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("CAESURA_CLOCK"), O_RDONLY);
  void *at = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) jump = at;
}
int clock_gettime(clockid_t kind, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int said = real(kind, now);
  if (jump && (kind == CLOCK_REALTIME || kind == CLOCK_REALTIME_COARSE)) now->tv_sec += *jump;
  return said;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  now->tv_sec = at.tv_sec; now->tv_usec = at.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *to) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (to) *to = at.tv_sec;
  return at.tv_sec;
}
"""
"""A wall clock that a file shifts, for all processes that are started with it."""


class Life:
    """The processes of one query, one after the other."""

    def __init__(self, scene: Scene, drawn: random.Random, outside: Any = None) -> None:
        self.scene, self.drawn, self.outside = scene, drawn, outside
        """``outside`` is the broker or the store, where a fault stops it."""
        kept = {name: own for name, own in os.environ.items() if not name.startswith("SPARK")}  # a client's
        self.env = {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.buckets, self.starts = 2, 0
        self.settings: dict[str, str] = {}
        """Of the session, beside its own."""
        self.process: subprocess.Popen[bytes] | None = None
        self._given: dict[str, Any] = {}

    @property
    def folder(self) -> Path:
        return Path(self.scene.folder)

    @property
    def said(self) -> str:
        logs = sorted(self.folder.glob("log-*"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-3000:]}" for log in logs)

    @property
    def last_said(self) -> str:
        return (self.folder / f"log-{self.starts - 1:02d}").read_text(errors="replace")

    def start(self, **given: Any) -> subprocess.Popen[bytes]:
        (self.folder / "started").unlink(missing_ok=True)
        (self.folder / "stop").unlink(missing_ok=True)
        script = Path(__file__).with_name("fault_scenes.py")
        self._given, given = given, {"buckets": self.buckets, "settings": self.settings, **given}
        with (self.folder / f"log-{self.starts:02d}").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(script), str(self.folder), json.dumps(given)],
                env=self.env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.starts += 1
        return self.process

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def until(self, there: Callable[[], bool], *, ends: Literal["fails", "passes"] = "fails") -> None:
        """Waits; a query that ends meanwhile is a failure, or what was waited for."""
        end = time.monotonic() + PATIENCE
        while not there():
            if not self.lives and BUSY in self.last_said:
                self.start(**self._given)
            if not self.lives:
                code = None if self.process is None else self.process.returncode
                assert ends == "passes" or there(), f"the query ended with {code}:\n{self.said}"
                return
            assert time.monotonic() < end, f"nothing happens:\n{self.said}"
            time.sleep(0.1 if "//" in self.scene.disk else 0.005)  # a look into a store costs more

    def until_started(self) -> None:
        self.until((self.folder / "started").exists)

    def until_has(self, chunk: int) -> None:
        self.until(lambda: self.scene.has(chunk))

    def until_ended(self, *words: str) -> None:
        """Waits until the query has ended by itself, and has said why."""
        self.until(lambda: False, ends="passes")
        assert any(word in self.said for word in words), self.said

    def stop(self) -> None:
        (self.folder / "stop").touch()
        assert self.process is not None
        assert self.process.wait(PATIENCE) == 0, self.said

    def kill(self) -> None:
        """Driver, JVM and workers at once, and what the JVM started in groups of their own."""
        if self.process is None:
            return
        below = self.below("")
        with_own = [self.process.pid, *(child.pid for child in below)]
        for number in with_own:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def below(self, word: str) -> list[psutil.Process]:
        """The processes that the query has started and whose command has a word."""
        found = []
        if not self.lives:
            return found
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if word in " ".join(child.cmdline()):
                    found.append(child)
            except psutil.NoSuchProcess:
                continue
        return found

    def strike(self, word: str) -> None:
        """Kills one of the query's processes, if there is any."""
        there = self.below(word)
        if there:
            self.drawn.choice(there).kill()

    def fed(self, chunk: int) -> None:
        """Puts rows, and waits for a drawn moment of the epoch that takes them."""
        before = self.written()
        self.until_started()
        self.scene.feed(chunk)
        moment = self.drawn.choice(["offsets", "state", "out", "commits", "at once"])
        if moment != "at once":
            self.until(lambda: self.written(moment) > before[moment] or self.scene.has(chunk))
        time.sleep(self.drawn.choice((0, 0, 0.05, 0.2, 0.5)))

    def written(self, moment: str | None = None) -> Any:
        """How many files there are of each kind that an epoch writes."""
        places = {
            "offsets": "cp/offsets/[0-9]*", "commits": "cp/commits/[0-9]*",
            "state": "cp/state/*/*/*.changelog", "out": "out/out/*",
        }  # fmt: skip
        folder = Path(self.scene.disk or self.scene.folder)
        counts = {name: sum(1 for _ in folder.glob(place)) for name, place in places.items()}
        return counts if moment is None else counts[moment]


def driver_killed(life: Life, chunk: int) -> None:
    """Driver, JVM and workers are gone in one moment."""
    life.fed(chunk)
    life.kill()
    life.start()


def jvm_killed(life: Life, chunk: int) -> None:
    """Spark is gone; its driver says so and ends."""
    life.fed(chunk)
    life.strike("org.apache.spark.deploy.SparkSubmit")
    life.until_ended("JVM is gone")
    life.start()


def executor_killed(life: Life, chunk: int) -> None:
    """One of two executors is gone, with the blocks that it held."""
    life.fed(chunk)
    life.strike("CoarseGrainedExecutorBackend")


def worker_killed(life: Life, chunk: int) -> None:
    """A Python worker, or the process that starts them, is gone; the task runs again."""
    life.fed(chunk)
    life.strike("-m caesura.spark.worker.daemon")


def task_retried(life: Life, chunk: int) -> None:
    """A function of the user's fails once, in the middle of a page."""
    _waiting(life, chunk, FAILS)


def worker_exited(life: Life, chunk: int) -> None:
    """A worker is gone at an exact row."""
    _waiting(life, chunk, EXITS)


def _waiting(life: Life, chunk: int, name: str) -> None:
    life.until_started()
    (life.folder / name).touch()
    life.scene.feed(chunk)
    life.until_has(chunk)
    assert not (life.folder / name).exists(), "no task met it"


def disk_full(life: Life, chunk: int) -> None:
    """No byte more fits on the disk of checkpoint and output; then there is room again."""
    life.until_started()
    ballast = Path(life.scene.disk) / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            _fill(file, bytes(size))
    life.scene.feed(chunk)
    life.until_ended("a disk is full", "No space left on device")
    ballast.unlink()
    life.start()


def _fill(file: Any, block: bytes) -> None:
    try:
        while file.write(block) == len(block):
            pass
    except OSError:
        return


def outside_gone(life: Life, chunk: int) -> None:
    """The broker, or the store, does not answer for a while; the query waits or ends, and goes on."""
    life.until_started()
    if life.drawn.random() < 0.5 and life.scene.source != "topic":
        life.fed(chunk)
        life.outside.stop()
    else:
        if life.scene.source == "topic":
            life.scene.feed(chunk)
        life.outside.stop()
        if life.scene.source != "topic":
            life.scene.feed(chunk)
    time.sleep(life.drawn.choice((1, 4, 9)))
    life.outside.start()
    life.until(lambda: life.scene.has(chunk), ends="passes")
    if not life.lives:
        life.start()


def clock_jumped(life: Life, chunk: int) -> None:
    """The wall clock goes hours forward or back in the middle of an epoch."""
    life.fed(chunk)
    hours = life.drawn.choice((-30, -2, 2, 30))
    with (life.folder / "clock").open("r+b") as clock:
        clock.write((hours * 3600).to_bytes(8, "little", signed=True))


def upgraded(life: Life, chunk: int) -> None:
    """Another plan and back again, both as if it had always been so."""
    for plan in (OTHER, None):
        life.until_started()
        life.stop()
        life.start(plan=plan, on_change="rebuild")
    life.until_started()
    life.scene.feed(chunk)


def rescaled(life: Life, chunk: int) -> None:
    """The buckets are moved to more or fewer partitions."""
    life.until_started()
    life.stop()
    life.buckets = life.drawn.choice([n for n in (1, 2, 3) if n != life.buckets])
    life.start(rescale=True)
    life.until_started()
    life.scene.feed(chunk)


def taken_over(life: Life, chunk: int) -> None:
    """Another process takes over while the first is at work, which then can write no more."""
    life.fed(chunk)
    first = life.process
    assert first is not None
    life.start(take_over=True)
    life.until_has(chunk)
    life.until_started()
    second, life.process = life.process, first
    life.scene.feed(chunk + 1)  # nothing tells a query that rests
    life.until_ended("taken over")
    life.process = second


@dataclass(frozen=True)
class Fault:
    """What strikes, and what it needs of the scene."""

    strike: Callable[[Life, int], None]
    needs: dict[str, str] = field(default_factory=dict)
    """Of source, sink, output, master or plan."""
    brings: Literal["", "disk", "clock", "broker", "store"] = ""
    """What of this machine it needs."""
    shifts: bool = False
    """Whether epochs are other ones afterwards."""
    feeds: int = 1
    """How many chunks it puts."""


FAULTS = {
    "driver killed": Fault(driver_killed),
    "executor killed": Fault(executor_killed, {"master": SEPARATE}),
    "worker killed": Fault(worker_killed),
    "worker exited": Fault(worker_exited),
    "task retried": Fault(task_retried),
    "jvm killed": Fault(jvm_killed),
    "disk full": Fault(disk_full, {"sink": "folder", "source": "files"}, "disk"),
    "store unreachable": Fault(outside_gone, {"sink": "store", "source": "files"}, "store"),
    "broker gone, source": Fault(outside_gone, {"source": "topic", "sink": "folder"}, "broker"),
    "broker gone, sink": Fault(outside_gone, {"source": "files", "sink": "topic"}, "broker"),
    "clock jump": Fault(clock_jumped, {"source": "files", "sink": "folder"}, "clock"),
    "upgrade": Fault(
        upgraded, {"plan": "tumbling", "output": "changes", "sink": "folder", "source": "files"}, shifts=True
    ),
    "rescale": Fault(rescaled, shifts=True),
    "take-over": Fault(taken_over, feeds=2),
}


def clock_library(folder: Path) -> Path:
    """The wall clock that a file shifts, compiled; the caller has looked for a compiler."""
    (folder / "clock.c").write_text(CLOCK)
    made = folder / "clock.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(folder / "clock.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return made
