"""A real Postgres of its own, for tests: made in a temporary folder, from programs that Debian installs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from local_kafka import NotRunError

PROGRAMS = Path("/usr/lib/postgresql")
SETTINGS = ("fsync=off", "wal_level=logical", "unix_socket_directories=''", "listen_addresses=127.0.0.1")


class PostgresServer:
    """A server on a free port; the folder goes with it."""

    def __init__(self) -> None:
        found = sorted(PROGRAMS.glob("*/bin/initdb")) or [Path(p) for p in [shutil.which("initdb")] if p]
        if not found:
            raise NotRunError("no Postgres server here: apt-get install postgresql")
        self._bin = found[-1].parent
        self._as: list[str] = []
        if os.geteuid() == 0:  # Postgres does not run as root
            runs = shutil.which("runuser")
            if runs is None:
                raise NotRunError("runuser not found, and Postgres does not run as root")
            self._as = [runs, "-u", "postgres", "--"]
        self.folder = Path(tempfile.mkdtemp(prefix="caesura-postgres-"))
        if self._as:
            shutil.chown(self.folder, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def dsn(self) -> str:
        """How to reach it."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._bin / program), *arguments]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise NotRunError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")

    def __enter__(self) -> PostgresServer:
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()
        return self

    def start(self) -> None:
        """Starts it, also again."""
        settings = " ".join(f"-c {one}" for one in (*SETTINGS, f"port={self.port}"))
        log, data = str(self.folder / "log"), str(self.folder / "data")
        self._run("pg_ctl", "-D", data, "-w", "-l", log, "-o", settings, "start")

    def stop(self) -> None:
        """Stops it at once, as a crash would."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
