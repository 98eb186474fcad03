"""Whatever befalls a query on Spark, epoch by epoch its output is that of an undisturbed one.

A seed draws plan, output, sink, source and two to six of the faults of `struck.FAULTS`. ``make soak`` runs
`CAESURA_FAULTS` seeds; ``CAESURA_FAULT_SEED`` runs one again.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from depth import DEPTH
from fault_scenes import LOCAL, PLANS, Scene, saved
from local_kafka import Broker, NotRunError
from local_s3 import Server
from struck import FAULTS, Fault, Life, clock_library

from caesura.io.places import objects

COUNT = int(os.environ.get("CAESURA_FAULTS", "0" if DEPTH == 1 else str(14 * DEPTH)))
SEEDS = [int(os.environ["CAESURA_FAULT_SEED"])] if "CAESURA_FAULT_SEED" in os.environ else range(COUNT)
pytestmark = pytest.mark.skipif(not SEEDS, reason="some minutes, for make soak")


@pytest.fixture(scope="module")
def outside() -> Iterator[dict[str, Any]]:
    """The broker and the store, started when first asked for."""
    with ExitStack() as stack:
        started: dict[str, Any] = {}

        class Asked(dict[str, Any]):
            def __missing__(self, name: str) -> Any:
                started[name] = self[name] = stack.enter_context(Broker() if name == "broker" else Server())
                return self[name]

        yield Asked()


def drawn_scene(seed: int, folder: Path) -> tuple[Scene, list[str], random.Random]:
    """A scene, and the faults that befall it, two to six; each kind leads in turn."""
    drawn = random.Random(f"faults on Spark {seed}")
    first = sorted(FAULTS)[seed % len(FAULTS)]
    needs = FAULTS[first].needs
    sink = needs.get("sink") or drawn.choice(["folder", "folder", "store", "table", "topic"])
    place = {
        "source": needs.get("source") or drawn.choice(["files", "files", "topic"]),
        "sink": sink,
        "plan": needs.get("plan") or drawn.choice(sorted(PLANS)),
        "output": "changes" if sink == "table" else needs.get("output") or drawn.choice(["changes", "final"]),
        "master": needs.get("master", LOCAL),
    }
    fitting = [name for name, fault in FAULTS.items() if fault.needs.items() <= place.items()]
    names = [first, *drawn.choices(fitting, k=drawn.randrange(1, 6))]
    drawn.shuffle(names)
    chunks = 3 + sum(FAULTS[name].feeds for name in names)
    return Scene(folder=str(folder), seed=seed, chunks=chunks, **place), names, drawn


def placed(scene: Scene, folder: Path, outside: dict[str, Any], **changed: Any) -> Scene:
    """The scene in a folder of its own, with topics of its own."""
    name = f"faults-{uuid.uuid4().hex[:8]}"
    if "topic" in (scene.source, scene.sink):
        from confluent_kafka.admin import AdminClient, NewTopic

        changed["servers"] = outside["broker"].servers
        topics = [NewTopic(f"{name}-{which}", 2, 1) for which in ("in", "out", "late")]
        client = AdminClient({"bootstrap.servers": changed["servers"]})
        for made in client.create_topics(topics).values():
            made.result()
        while any(client.list_topics(topic.topic).topics[topic.topic].error for topic in topics):
            pass  # a broker answers before all of it knows the topic
    return saved(dataclasses.replace(scene, folder=str(folder), name=name, **changed))


@contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """A disk of 24 MB; what it takes to mount one may be missing here."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"not run: a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield str(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def quiet(life: Life) -> None:
    """All chunks in peace."""
    life.start()
    for chunk in range(life.scene.chunks):
        life.until_started()
        life.scene.feed(chunk)
        life.until_has(chunk)
    life.stop()


def struck(life: Life, names: list[str]) -> None:
    """Two chunks in peace, one for each fault, and one in peace."""
    life.start()
    chunk = 0
    for name in [None, None, *names, None]:
        if name is None:
            life.until_started()
            life.scene.feed(chunk)
        else:
            FAULTS[name].strike(life, chunk)
            chunk += FAULTS[name].feeds - 1
        life.until_has(chunk)
        chunk += 1
    life.until_started()
    life.stop()


def bring(fault: Fault, life: Life, outside: dict[str, Any]) -> None:
    """Brings what a fault needs of this machine, into the life's environment."""
    if fault.brings in ("broker", "store"):
        life.outside = outside[fault.brings]
    if fault.brings == "clock":
        if shutil.which("cc") is None:
            pytest.skip("not run: no compiler for the clock that jumps")
        (life.folder / "clock").write_bytes(bytes(8))
        life.env["LD_PRELOAD"] = str(clock_library(life.folder))
        life.env["CAESURA_CLOCK"] = str(life.folder / "clock")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_query_on_spark_that_faults_befall_answers_as_an_undisturbed_one(
    seed: int, tmp_path: Path, outside: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, names, drawn = drawn_scene(seed, tmp_path)
    told = f"CAESURA_FAULT_SEED={seed}: {names} befell {scene}"
    faults = [FAULTS[name] for name in names]
    with ExitStack() as stack:
        try:
            if scene.sink == "store":
                for name, value in outside["store"].environment.items():
                    monkeypatch.setenv(name, value)
                objects._opened.cache_clear()
            disk = any(fault.brings == "disk" for fault in faults)
            changed = {"disk": stack.enter_context(small_disk(tmp_path / "disk"))} if disk else {}
            there = placed(scene, tmp_path / "struck", outside, **changed)
            undisturbed = placed(scene, tmp_path / "quiet", outside, master=LOCAL)
            life, other = Life(there, drawn), Life(undisturbed, drawn)
            for fault in faults:
                bring(fault, life, outside)
        except NotRunError as error:
            pytest.skip(f"not run: {error}")
        stack.callback(life.kill)
        stack.callback(other.kill)
        try:
            quiet(other)
            struck(life, names)
        except AssertionError as error:
            raise AssertionError(f"{told}\n{error}") from error
        (history, late), (wanted, wanted_late) = there.answer(), undisturbed.answer()
        assert len(wanted) > 0
        assert history == wanted, told
        assert late == wanted_late, told
        if (
            scene.source == "files"
            and scene.sink in ("folder", "store")
            and not any(f.shifts for f in faults)
        ):
            assert there.epochs() == undisturbed.epochs(), told
        print(f"{seed}: {len(names)} faults, {names}")  # noqa: T201 - with -s, the count of a long run
