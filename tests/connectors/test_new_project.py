"""``caesura new --template kafka``, run against a real broker as its README says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from caesura.cli.main import app


def ran(script: str, folder: Path, servers: str) -> None:
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env={"KAFKA": servers, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def length(servers: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in partitions]
    consumer.close()
    return sum(ends)


def test_its_orders_come_out_once(tmp_path: Path, servers: str) -> None:
    result = CliRunner().invoke(app, ["new", str(tmp_path / "shop"), "--template", "kafka"])
    assert result.exit_code == 0, result.output
    for script in ("generate.py", "pipeline.py"):
        ran(script, tmp_path / "shop", servers)
    once = length(servers, "revenue")
    assert once > 0
    ran("pipeline.py", tmp_path / "shop", servers)  # nothing is new, so nothing but a note may be added
    assert length(servers, "revenue") == once
