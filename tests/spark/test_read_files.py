"""A file that Spark has read and that is another one now is refused by name; what else befalls it is not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from depth import examples, seed_of
from restart_worlds import Files
from typer.testing import CliRunner

from caesura.cli import app
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.spark.host.checkpoint import save_plan
from caesura.spark.host.host import make_job
from caesura.spark.host.part import SparkPart
from caesura.spark.host.read_files import changed_files, check_unchanged, take_times, with_times_of_now
from caesura.spark.host.source_log import check_files
from caesura.spark.worker.job import Job

EXAMPLES = examples(20, short=2)
FORMS = ["parquet", "csv", "json"]


class SparkFiles(Files):
    """A folder of files, and the logs of a query on Spark that has read some of them."""

    @property
    def fates(self) -> dict[str, Any]:
        return {
            **super().fates,
            "touched": lambda: [os.utime(file) for file in self.folder.iterdir()],
            "copied with its time": self.copy,
            "a moment apart": lambda: self.shift(0.999),
            "a second apart": lambda: self.shift(1),
        }

    def copy(self) -> None:
        for file in list(self.folder.iterdir()):
            time, data = file.stat().st_mtime, file.read_bytes()
            file.unlink()
            file.write_bytes(data)
            os.utime(file, (time, time))

    def shift(self, seconds: float) -> None:
        for file in self.folder.iterdir():
            time = file.stat().st_mtime + seconds
            os.utime(file, (time, time))

    def state(self) -> dict[str, tuple[bytes, int]]:
        return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in self.folder.iterdir()}

    def read(self, checkpoint: Path) -> dict[str, tuple[bytes, int]]:
        """Lets Spark read some of the files, as its logs say it; gives those."""
        files = sorted(self.folder.iterdir())
        self.draw.shuffle(files)
        epochs: list[list[Path]] = []
        while files:
            size = self.draw.randint(1, len(files))
            epochs, files = [*epochs, files[:size]], files[size:]
        read = epochs[: self.draw.randint(1, len(epochs))]
        whole = self.draw.choice([-1, len(epochs) - 1])
        for folder in ("offsets", "commits", "sources/0"):
            (checkpoint / folder).mkdir(parents=True)
        lines: list[str] = []
        for number, some in enumerate(epochs):  # Spark lists files before it says that it reads them
            mine = [json.dumps(entry(file, number)) for file in some]
            lines += mine
            name = f"{number}.compact" if number == whole else str(number)
            log = lines if number == whole else mine
            (checkpoint / "sources/0" / name).write_text("\n".join(["v1", *log]))
        for number in range(len(read)):
            (checkpoint / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"logOffset":{number}}}')
        then = self.state()
        return {str(file): then[str(file)] for some in read for file in some}


def entry(file: Path, batch: int) -> dict[str, Any]:
    return {"path": file.as_uri(), "timestamp": file.stat().st_mtime_ns // 1_000_000, "batchId": batch}


def job_of(world: Files, checkpoint: Path) -> Job:
    job = make_job({"out": world.stream().node}, 2, speculate="eager", closes=False)
    save_plan(Place.of(checkpoint), job.stages, 2)
    return job


@pytest.mark.parametrize("form", FORMS)
def test_a_read_file_that_is_another_one_is_refused_by_name_and_no_other(form: str, tmp_path: Path) -> None:
    seed, refused = seed_of("read files", form), set[str]()
    for example in range(EXAMPLES):
        for number, fate in enumerate(SparkFiles(form, tmp_path / f"names-{example}", Random(0)).fates):
            folder = tmp_path / f"{example}-{number}"
            folder.mkdir()
            world = SparkFiles(form, folder / "in", Random(seed + example))
            then, job = world.read(folder / "cp"), job_of(world, folder / "cp")
            world.fates[fate]()
            now = world.state()
            apart = {f for f in then if f in now and abs(then[f][1] - now[f][1]) >= 1_000_000_000}
            assert {f for f in then if f in now and then[f][0] != now[f][0]} <= apart, "the world is odd"
            part = SparkPart.of(Place.of(folder / "cp"))
            about = f"{form}, {fate}, seed {seed + example}"
            assert {str(f) for _, files in changed_files(part.folder) for f in files} == apart, about
            if not apart:
                check_unchanged(part, job)
                continue
            refused.add(fate)
            with pytest.raises(StreamError, match=r"step 'rows' .*: in '.*in' '00\d\.") as caught:
                check_unchanged(part, job)
            assert "written anew after" in str(caught.value)
            assert f"`caesura move {folder / 'cp'} --files`" in caught.value.remedy
            assert take_times(part.folder) >= len(apart), about
            check_unchanged(part, job)
            assert not take_times(part.folder)
    assert refused >= {"touched", "a second apart", "made anew"}
    assert not refused & {"nothing", "grown", "vanished", "copied with its time", "a moment apart"}


def test_the_command_takes_files_that_were_touched_as_they_are(tmp_path: Path) -> None:
    world = SparkFiles("csv", tmp_path / "in", Random(3))
    world.read(tmp_path / "cp")
    (tmp_path / "cp" / "metadata").write_text('{"id":"a1"}')
    (crc := tmp_path / "cp" / "sources" / "0" / ".0.crc").write_bytes(b"crc")
    world.fates["touched"]()
    part = SparkPart.of(Place.of(tmp_path / "cp"))
    said = CliRunner().invoke(app, ["move", str(tmp_path / "cp")]).output
    assert "files" not in said
    assert any(changed_files(part.folder))
    said = CliRunner().invoke(app, ["move", str(tmp_path / "cp"), "--files"]).output
    assert "files that were read had other times: they are taken to hold what they held." in said
    assert not any(changed_files(part.folder))
    assert not crc.exists()


def test_first_offsets_of_other_sources_are_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "0"
    for text in ('v1\n{"topic":{"0":7}}', "v1\n", '0v1\n{"topic":{"0":7}}', "v1\nodd"):
        log.write_text(text)
        assert with_times_of_now(Place.of(log)) == (text.encode(), 0)


def test_files_of_a_store_that_only_spark_knows_are_left_to_it(tmp_path: Path) -> None:
    world = SparkFiles("csv", tmp_path / "in", Random(3))
    world.read(tmp_path / "cp")
    for log in (tmp_path / "cp" / "sources" / "0").iterdir():
        log.write_text(log.read_text().replace("file:", "hdfs://node"))
    check_files(Place.of(tmp_path / "cp"), 0)
    assert not any(changed_files(Place.of(tmp_path / "cp")))
