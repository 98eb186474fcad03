"""A Spark cluster of several processes on this machine, and a Spark Connect server, as contexts.

Their processes have a home, a temporary folder and a working folder of their own, and a Python in which
Caesura is not installed: what a query needs there, it must have brought along.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
PATIENCE = 90.0


class NotRunError(Exception):
    """Something that a cluster needs is not on this machine."""


def spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise NotRunError("pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NotRunError("there is no Java")
    return Path(found.origin).parent


def package(folder: Path) -> Path:
    """Caesura as a file that --py-files and addArtifacts take."""
    made = folder / "caesura.zip"
    with zipfile.ZipFile(made, "w") as zipped:
        for file in sorted(SOURCES.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and "caesura" in file.parts:
                zipped.write(file, file.relative_to(SOURCES))
    return made


def bare_python(folder: Path) -> Path:
    """A Python that has this one's packages, but neither Caesura nor anything of the user's site."""
    import numpy

    packages = Path(numpy.__file__).parents[1]
    made = folder / "python"
    made.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S -s "$@"\n')
    made.chmod(0o755)
    return made


def environment(folder: Path, python: Path) -> dict[str, str]:
    """What a process of the cluster sees: nothing of this one's folders."""
    for name in ("home", "tmp", "local"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    own = {"HOME": f"{folder}/home", "TMPDIR": f"{folder}/tmp", "SPARK_LOCAL_DIRS": f"{folder}/local"}
    return {
        **kept,
        **own,
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def running(
    command: list[str], folder: Path, env: dict[str, str], ready: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose log has said that it is ready; at the end it is killed."""
    said = folder / "log"
    with said.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        wait_for(lambda: ready in said.read_text(errors="replace") or process.poll() is not None)
        if process.poll() is not None or ready not in said.read_text(errors="replace"):
            raise AssertionError(f"{command} is not ready: {said.read_text(errors='replace')[-2000:]}")
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def wait_for(true: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def free_port() -> int:
    """A port that nobody has, below those that the system gives out by itself and may give meanwhile."""
    for port in random.Random().sample(range(20_000, 30_000), 100):
        with socket.socket() as some, suppress(OSError):
            some.bind(("127.0.0.1", port))
            return port
    raise NotRunError("a hundred ports are taken")


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server with two cores, which has the package on its path; gives its address."""
    folder.mkdir(parents=True)
    given = {"PYTHONPATH": str(package(folder))}
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [f"{spark_home()}/bin/spark-submit", "--class", SERVER, "--master", "local[2]", *options]
    env = {**environment(folder, bare_python(folder)), **given}
    with running(command, folder, env, "server started at"):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers, each with folders of its own; gives the master's address."""
    port, java = free_port(), [f"{spark_home()}/bin/spark-class"]
    (folder / "master").mkdir(parents=True)
    python = bare_python(folder / "master")
    command = [*java, MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    address = f"spark://127.0.0.1:{port}"
    with (
        running(
            command, folder / "master", environment(folder / "master", python), "I have been elected leader"
        ),
        several([_worker(folder / f"worker-{n}", python, address) for n in range(workers)]),
    ):
        yield address


def _worker(folder: Path, python: Path, master: str) -> tuple[list[str], Path, dict[str, str], str]:
    folder.mkdir()
    command = [
        f"{spark_home()}/bin/spark-class",
        WORKER,
        "--cores",
        "1",
        "--memory",
        "1g",
        "--webui-port",
        "0",
    ]
    command += ["--host", "127.0.0.1", "--work-dir", f"{folder}/work", master]
    return command, folder, environment(folder, python), "Successfully registered with master"


@contextmanager
def several(processes: list[tuple[list[str], Path, dict[str, str], str]]) -> Iterator[None]:
    if not processes:
        yield
        return
    with running(*processes[0]), several(processes[1:]):
        yield
