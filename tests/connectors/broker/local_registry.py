"""A real schema registry for tests: Apicurio's, which speaks Confluent's protocol; fetched once by Maven."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType

from local_kafka import FETCH_SECONDS, JVM, START_SECONDS, NotRunError, cache, free_port

VERSION = "3.0.9"
"""The last that runs on Java 17."""
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"


def unpacked() -> Path:
    """The folder of the registry, fetched if it is not there."""
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    there = cache() / f"apicurio-{VERSION}"
    if there.is_dir() and "java" not in missing:
        return there
    if missing:
        raise NotRunError(f"{' and '.join(missing)} not found")
    there.parent.mkdir(parents=True, exist_ok=True)
    fetched = Path(tempfile.mkdtemp(dir=there.parent))
    command = ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={fetched}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    files = list(fetched.glob("*.tar.gz"))
    if done.returncode or not files:
        shutil.rmtree(fetched)
        raise NotRunError(f"Maven could not fetch Apicurio: {done.stdout.strip()[:300]}")
    shutil.unpack_archive(files[0], fetched)
    files[0].unlink()
    fetched.rename(there)
    return there


class RegistryServer:
    """A registry that holds all in memory."""

    def __init__(self) -> None:
        self.folder = unpacked()
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/apis/ccompat/v7"

    def __enter__(self) -> RegistryServer:
        [jar] = self.folder.glob("*-runner.jar")
        self.process = subprocess.Popen(
            ["java", *JVM, "-jar", str(jar)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "QUARKUS_HTTP_PORT": str(self.port)},
        )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/subjects", timeout=10).close()
                return self
            except OSError:
                time.sleep(0.2)
        self.__exit__(None, None, None)
        raise NotRunError("Apicurio did not start")

    def backward(self, subject: str) -> None:
        """From now on the subject takes schemas only that can read what was written before."""
        body, headers = b'{"compatibility": "BACKWARD"}', {"Content-Type": "application/json"}
        asking = urllib.request.Request(f"{self.url}/config/{subject}", body, headers, method="PUT")
        urllib.request.urlopen(asking, timeout=10).close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
