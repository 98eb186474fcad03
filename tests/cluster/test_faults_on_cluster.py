"""Twenty faults befall one query on a standalone cluster whose checkpoint lies in an object store.

Executors come and go by dynamic allocation, slow tasks are speculated on, and no shuffle service outlives an
executor. ``CAESURA_FAULT_SEED`` draws another order of the faults, and other input.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hadoop_aws
import psutil
import pytest
from clusters import SOURCES, package, standalone
from fault_scenes import EXITS, FAILS, SLEEPS, Scene, saved
from local_kafka import NotRunError
from local_s3 import BUCKET, Server
from struck import Life

from caesura.io.places import objects

SEED = int(os.environ.get("CAESURA_FAULT_SEED", "1"))
COUNTS = {
    "executor killed": 4, "all executors killed": 1, "blocks lost": 3, "worker killed": 3, "task retried": 3,
    "worker exited": 2, "speculated": 2, "driver killed": 1, "store unreachable": 1,
}  # fmt: skip
DAEMON, EXECUTOR = "-m pyspark.daemon", "CoarseGrainedExecutorBackend"
WAITING = {"task retried": FAILS, "worker exited": EXITS, "speculated": SLEEPS}


class ClusterLife(Life):
    """A driver of this machine, with executors below the folder of a cluster."""

    cluster: Path

    def executors(self, word: str) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                here = process.cwd().startswith(str(self.cluster)) and word in " ".join(process.cmdline())
            except psutil.Error:  # gone, or not ours
                continue
            found += [process] if here else []
        return found

    def befall(self, name: str, chunk: int) -> None:
        """Puts rows while a fault waits for them, or strikes once they are there."""
        if name in WAITING:
            (self.folder / WAITING[name]).touch()
        self.scene.feed(chunk)
        time.sleep(self.drawn.choice((0, 0.1, 0.4)))
        if name == "blocks lost":
            self._lose_blocks(chunk)
        elif name == "driver killed":
            self.kill()
            self.start()
        elif name == "store unreachable":
            self.outside.stop()
            time.sleep(2)
            self.outside.start()
        elif name not in WAITING:
            self._kill(name)
        self.until(lambda: self.scene.has(chunk), ends="passes" if name == "store unreachable" else "fails")
        if not self.lives:
            self.start()
            self.until_has(chunk)
        assert not [f for f in WAITING.values() if (self.folder / f).exists()], "no task met it"

    def _kill(self, name: str) -> None:
        there = self.executors(DAEMON if name == "worker killed" else EXECUTOR)
        for process in there if name.startswith("all") else self.drawn.sample(there, min(1, len(there))):
            process.kill()

    def _lose_blocks(self, chunk: int) -> None:
        """Takes the shuffle files away as they appear, until some are gone or the epoch is over."""
        gone: set[Path] = set()

        def lost() -> bool:
            for file in self.cluster.glob("worker-*/local/*/*/blockmgr-*/*/shuffle_*.data"):
                file.unlink(missing_ok=True)
                gone.add(file)
            return len(gone) >= 2 or self.scene.has(chunk)

        self.until(lost)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        hadoop_aws.fetched()
        running = Server()
    except NotRunError as error:
        pytest.skip(f"not run: {error}")
    with running, pytest.MonkeyPatch.context() as patched:
        for name, value in running.environment.items():
            patched.setenv(name, value)
        objects._opened.cache_clear()
        yield running
    objects._opened.cache_clear()


def settings(server: Server, zipped: Path) -> dict[str, str]:
    s3a, jars = "spark.hadoop.fs.s3a", os.pathsep.join(hadoop_aws.fetched())
    return {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        f"{s3a}.endpoint": server.environment["AWS_ENDPOINT_URL"],
        f"{s3a}.endpoint.region": server.environment["AWS_REGION"],
        f"{s3a}.path.style.access": "true",
        f"{s3a}.attempts.maximum": "3",
        f"{s3a}.retry.limit": "3",
        "spark.submit.pyFiles": str(zipped),
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.task.maxFailures": "8",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "4",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "20s",
        "spark.dynamicAllocation.shuffleTracking.timeout": "20s",
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The same without a cluster, a store or a fault."""
    scene = saved(Scene(folder=str(tmp_path_factory.mktemp("quiet") / "run"), master="local[2]", **DRAWN))
    life = Life(scene, random.Random(SEED))
    life.start()
    try:
        for chunk in range(scene.chunks):
            scene.feed(chunk)
            life.until_has(chunk)
        life.stop()
    finally:
        life.kill()
    return scene


@pytest.fixture(scope="module")
def life(
    tmp_path_factory: pytest.TempPathFactory, server: Server, undisturbed: Scene
) -> Iterator[ClusterLife]:
    """One query for all faults, on a cluster of its own; its first epoch is there."""
    folder = tmp_path_factory.mktemp("faults")
    with standalone(folder / "cluster") as master:
        own = {"master": master, "disk": f"s3://{BUCKET}/{uuid.uuid4().hex}"}
        scene = saved(Scene(folder=str(folder / "struck"), **DRAWN, **own))
        made = ClusterLife(scene, random.Random(f"moments {SEED}"), server)
        made.cluster, made.settings = folder / "cluster", settings(server, package(folder))
        made.env["PYTHONPATH"] = str(SOURCES)
        try:
            made.start()
            made.until_started()
            scene.feed(0)
            made.until_has(0)
            yield made
        finally:
            made.kill()


def drawn_faults() -> list[str]:
    names = [name for name, count in COUNTS.items() for _ in range(count)]
    random.Random(f"faults on a cluster {SEED}").shuffle(names)
    return names


NAMES = drawn_faults()
DRAWN: dict[str, Any] = {
    "seed": SEED, "plan": "two exchanges", "output": "changes", "sink": "folder", "source": "files",
    "chunks": len(NAMES) + 2,
}  # fmt: skip


@pytest.mark.parametrize(("chunk", "name"), list(enumerate(NAMES, start=1)))
def test_an_epoch_that_a_fault_befalls_is_that_of_an_undisturbed_run(
    life: ClusterLife, undisturbed: Scene, chunk: int, name: str
) -> None:
    life.befall(name, chunk)
    assert life.scene.epochs() == undisturbed.epochs()[: chunk + 1], f"CAESURA_FAULT_SEED={SEED}"


def test_after_twenty_faults_the_query_goes_on_in_peace(life: ClusterLife, undisturbed: Scene) -> None:
    assert len(NAMES) == 20
    life.scene.feed(len(NAMES) + 1)
    life.until_has(len(NAMES) + 1)
    life.stop()
    assert life.scene.epochs() == undisturbed.epochs(), f"CAESURA_FAULT_SEED={SEED}"
    assert sum(late.total() for _, late in undisturbed.epochs()) > 0
