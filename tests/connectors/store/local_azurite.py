"""Azure's own emulator of its blob store on this machine, for tests: installed once by npm."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from email.utils import formatdate
from pathlib import Path
from types import TracebackType

from local_kafka import NotRunError, cache

VERSION = "3.35.0"
INSTALL_SECONDS, START_SECONDS = 900, 120
ACCOUNT, CONTAINER, KEY = "caesura", "data", base64.b64encode(b"caesura").decode()
PROTOCOL = "2023-11-03"


def program() -> Path:
    """The emulator, installed if it is not there."""
    folder = cache() / "connectors" / f"azurite-{VERSION}"
    there = folder / "node_modules" / ".bin" / "azurite-blob"
    if there.exists():
        return there
    if shutil.which("npm") is None:
        raise NotRunError("npm not found")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"azurite@{VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotRunError(f"npm did not install azurite in {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        raise NotRunError(f"npm could not install azurite: {done.stderr.strip()[-300:]}")
    return there


class AzureServer:
    """An account with one container; `environment` is what a process needs to reach it."""

    def __init__(self) -> None:
        started = program()
        self._folder = Path(tempfile.mkdtemp(prefix="caesura-azure-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = [str(started), "--blobPort", str(self._port), "--silent", "--skipApiVersionCheck"]
        command += ["--inMemoryPersistence", "--disableTelemetry"]
        accounts = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        quiet = subprocess.DEVNULL
        self._running = subprocess.Popen(command, env=accounts, cwd=self._folder, stdout=quiet, stderr=quiet)
        self._wait()
        try:
            self._make_container()
        except BaseException:
            self.stop()
            raise

    @property
    def environment(self) -> dict[str, str]:
        own = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}
        return {**own, "AZURE_STORAGE_ENDPOINT": self._url, "AZURE_ALLOW_HTTP": "true"}

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}/{ACCOUNT}"

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._running.poll() is None:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        raise NotRunError("azurite did not start")

    def _make_container(self) -> None:
        """Asks for a container, signed with the account's key."""
        asked = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": PROTOCOL}
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in asked.items())]
        lines += [f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}", "restype:container"]
        mac = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
        asked["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(mac.digest()).decode()}"
        url = f"{self._url}/{CONTAINER}?restype=container"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=asked)).close()

    def stop(self) -> None:
        self._running.kill()
        self._running.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> AzureServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
