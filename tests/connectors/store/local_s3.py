"""A real S3-compatible server on this machine, for tests: built once by Go, started from its binary."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from local_kafka import NotRunError, cache

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
BUILD_SECONDS, START_SECONDS = 1800, 60
KEY, SECRET, BUCKET = "caesura", "caesura-secret", "caesura"


def binary() -> Path:
    """The server, built if it is not there."""
    there = cache() / "connectors" / f"versitygw-{VERSION}"
    if there.is_file():
        return there
    if shutil.which("go") is None:
        raise NotRunError("go not found")
    there.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=there.parent) as made:
        command = ["go", "install", f"{MODULE}@{VERSION}"]
        env = {**os.environ, "GOBIN": made}
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=BUILD_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotRunError(f"Go did not build {MODULE} in {BUILD_SECONDS} seconds") from None
        if done.returncode:
            raise NotRunError(f"Go could not build {MODULE}: {done.stderr.strip()[-300:]}")
        (Path(made) / "versitygw").rename(there)
    return there


class Server:
    """A server with one bucket; `environment` is what a process needs to reach it.

    It can be stopped and started again with all that it holds.
    """

    def __init__(self) -> None:
        program = binary()
        self._folder = Path(tempfile.mkdtemp(prefix="caesura-s3-"))
        for name in (f"data/{BUCKET}", "meta"):
            (self._folder / name).mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = [str(program), "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{self._port}"]
        command += ["--quiet", "--keep-alive", "posix", "--sidecar", str(self._folder / "meta")]
        self._command = [*command, str(self._folder / "data")]
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with (self._folder / "log").open("a") as log:
            self._running = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=self._folder)
        self._wait()

    @property
    def environment(self) -> dict[str, str]:
        own = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}", "AWS_REGION": "us-east-1"}
        return {**own, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._running.poll() is None:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        said = (self._folder / "log").read_text()[-300:]
        self.__exit__(None, None, None)
        raise NotRunError(f"the server did not start: {said}")

    def stop(self) -> None:
        """Stops it; what it holds stays."""
        self._running.kill()
        self._running.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
