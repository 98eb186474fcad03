"""A real Kafka broker of one node, for tests and newcomers: fetched once by Maven, started from its jars.

``python tests/connectors/broker/local_kafka.py`` starts one and waits; that is `make kafka`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

POM = Path(__file__).with_name("pom.xml")
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
START_SECONDS, FETCH_SECONDS = 120, 600
JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1")
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
"""


class NotRunError(Exception):
    """What is missing to start a broker here."""


def cache() -> Path:
    """Where what was fetched stays."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "caesura"


def jars() -> Path:
    """The broker and all that it needs, fetched if they are not there."""
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    there = cache() / f"kafka-{abs(hash_of(POM)):x}"
    if there.is_dir() and "java" not in missing:
        return there
    if missing:
        raise NotRunError(f"{' and '.join(missing)} not found")
    there.parent.mkdir(parents=True, exist_ok=True)
    fetched = Path(tempfile.mkdtemp(dir=there.parent))
    command = ["mvn", "-B", "-q", "-f", str(POM), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={fetched}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if done.returncode or not any(fetched.glob("kafka_*.jar")):
        shutil.rmtree(fetched)
        raise NotRunError(f"Maven could not fetch Kafka: {done.stdout.strip()[:300]}")
    fetched.rename(there)
    return there


def hash_of(file: Path) -> int:
    """A number for the content of a file, the same in every process."""
    import zlib

    return zlib.crc32(file.read_bytes())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


class Broker:
    """One node; it can be stopped and started again with all that it holds."""

    def __init__(self, port: int | None = None) -> None:
        self.jars = jars()
        self.port = port or free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="caesura-kafka-"))
        config = PROPERTIES.format(port=self.port, controller=free_port(), folder=self.folder)
        self.config = self.folder / "server.properties"
        self.config.write_text(config)
        self.process: subprocess.Popen[bytes] | None = None
        format_ = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self.config)]
        done = subprocess.run(self._java(*format_), capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotRunError(f"Kafka could not make its folder: {done.stderr.strip()[-300:]}")

    @property
    def servers(self) -> str:
        return f"localhost:{self.port}"

    def _java(self, *arguments: str) -> list[str]:
        return ["java", *JVM, "-cp", f"{self.jars}/*", *arguments]

    def start(self) -> Broker:
        """Starts it, and waits until it answers."""
        with (self.folder / "out.log").open("ab") as out:
            command = self._java("kafka.Kafka", str(self.config))
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("localhost", self.port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise NotRunError(f"Kafka did not start; see {self.folder / 'out.log'}")

    def stop(self) -> None:
        """Stops it; what it holds stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> int:
    try:
        with Broker(int(os.environ.get("PORT", "9092"))) as broker:
            sys.stdout.write(f"Kafka answers at {broker.servers}; Ctrl-C ends it, with all that it holds.\n")
            sys.stdout.flush()
            assert broker.process is not None
            return broker.process.wait()
    except NotRunError as error:
        sys.stderr.write(f"Kafka is not run: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
