"""The epochs of a rebuild that takes more than one: each reads what its first one read, and is collected.

    offsets/0 ... offsets/7    written by us, one at a time; Spark runs that which is not committed, and ends
    history/0 ... history/7    the packets that leave the plan in these epochs; the sink sees none of them
    offsets/8                  nothing new: its epoch gives the sink the difference, see `rebuild`

Spark begins with the last entry of its offset log that has no commit, whoever wrote it. So each of these
epochs reads exactly what its entry says, with the clock as it was read and what was said then. Behind the
last one follow epochs without rows, until nothing goes around any more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.streaming.datasource import ReadAllAvailable

from caesura.io.places import Place
from caesura.io.places.json_files import parsed
from caesura.io.places.lease import refuse_deposed
from caesura.plan import Node
from caesura.runtime.buckets.clock import period
from caesura.runtime.packets.packet import Packet, rows_bytes, rows_packets
from caesura.spark.errors import asking_spark, errors_as_lines, ours, patiently
from caesura.spark.host.clock_source import CLOCK
from caesura.spark.host.entered_epochs import ReplayStep
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.frames import hops
from caesura.spark.host.host import packets
from caesura.spark.host.loop_source import LoopReader
from caesura.spark.host.observing import observed
from caesura.spark.host.part import HISTORY, SparkPart
from caesura.spark.host.source_log import check_files
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.sinks.epochs import packets_of
from caesura.spark.worker.admission import EVERYTHING
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass
class OffsetWriter:
    """Writes entries of Spark's offset log for a plan: sources, then the loop log, then the clock."""

    head: tuple[str, str]
    sources: int
    loop: str
    clocked: bool
    back: str = "-"
    """How far the loop log was read."""

    @staticmethod
    def like(before: Place, epoch: int, job: Job) -> OffsetWriter:
        """As an epoch of another folder says of everything but offsets."""
        file = before / "offsets" / str(epoch)
        version, head, *_ = file.read_text().splitlines()
        about = parsed(head, file, wants=("conf",))
        about["conf"][PARTITIONS] = str(job.buckets)
        clocked = period(job.stages) is not None
        return OffsetWriter((version, json.dumps(about)), len(job.stages.sources), job.loop, clocked)

    def write(self, folder: Place, number: int, step: ReplayStep) -> None:
        """Lets an epoch read up to somewhere, and nothing else."""
        lines = [step.at.get(str(place), "-") for place in range(self.sources)]
        lines += [self.back] * bool(self.loop)
        if self.clocked:
            lines.append("-" if step.clock is None else json.dumps({CLOCK: step.clock}))
        (folder / "offsets" / str(number)).put("\n".join([*self.head, *lines]).encode())

    def take_back(self) -> bool:
        """Lets the next epoch take what came back and was said by now; says whether there is anything."""
        if not self.loop:
            return False
        reader = LoopReader(self.loop)
        start = reader.initialOffset() if self.back == "-" else json.loads(self.back)
        reader.commit(start)
        try:
            end = reader.latestOffset(start, ReadAllAvailable())
        except RuntimeError as error:  # as a line, for Spark
            raise ours(error) from error
        self.back = self.back if end == start else json.dumps(end)
        return end != start


@dataclass(frozen=True)
class CollectedEpochs:
    """What Spark calls with an epoch whose rows are kept in the folder of the plan; the sink sees nothing."""

    part: SparkPart
    fence: int
    loop: str

    def __call__(self, batch: DataFrame, number: int) -> None:
        with errors_as_lines():
            check_files(self.part.folder, number)
            if self.fence:
                refuse_deposed(self.part.checkpoint, self.fence)
            rows = batch.filter("stage = 0").collect()
            file = self.part.folder / HISTORY / str(number)
            file.put(rows_bytes(packets_of(rows)), private=True)
            if self.loop:
                LoopLog(self.loop).note_sent()


def collected(part: SparkPart) -> Iterator[list[Packet]]:
    """What the epochs of a replay have given, one after the other."""
    for number in range(part.replayed):
        yield rows_packets((part.folder / HISTORY / str(number)).read_bytes())


def replay(part: SparkPart, job: Job, nodes: Mapping[str, Node], spark: SparkSession) -> SparkPart:
    """Runs the epochs in which a plan reads what was read before; gives the part behind them."""
    feedback, number = CheckpointFeedback.of(job, nodes), 0
    if part.replay:
        assert part.like is not None
        steps, writer = part.replay, OffsetWriter.like(*part.like, job)
        part = replace(part, replay=())
        run = _runner(part, _again(job, len(steps)), spark)
        for number, step in enumerate(steps):
            feedback.repeat(step.feedback)
            writer.take_back()
            run(writer, number, step)
        while writer.take_back():
            number += 1
            run(writer, number, replace(steps[-1], feedback=()))
        number += 1
        writer.write(part.folder, number, steps[-1])
    feedback.repeat(part.unheard)
    return part.replayed_in(number)


def _again(job: Job, steps: int) -> Job:
    """The job whose workers read again; those of the query itself do not go on with what these hold."""
    return replace(job, name=uuid.uuid4().hex, replayed=steps, wakes=bool(job.loop), recorded=None)


def _runner(
    part: SparkPart, job: Job, spark: SparkSession
) -> Callable[[OffsetWriter, int, ReplayStep], None]:
    """Runs one epoch of Spark's, and waits for its end."""
    frame = observed(packets(spark, job, streaming=True, limits=EVERYTHING), job, own=True)
    stream = frame.writeStream.outputMode("append").trigger(once=True)
    stream = stream.foreachBatch(CollectedEpochs(replace(part, unheard=()), job.fence, job.loop))
    stream = stream.option("checkpointLocation", part.folder.hadoop)

    def run(writer: OffsetWriter, number: int, step: ReplayStep) -> None:
        writer.write(part.folder, number, step)
        with hops(spark, job), asking_spark():
            query = patiently(stream.start)
        try:
            query.awaitTermination()
        except Exception as error:
            raise ours(error) from error
        finally:
            query.stop()

    return run
