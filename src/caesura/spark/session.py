"""A SparkSession that works: the settings that Caesura needs, and a check of those of a user's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caesura.errors import StreamError, here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STORE = "spark.sql.streaming.stateStore.providerClass"
FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""On a local disk the default starts a process to look for links, eight times for each file."""
WITH_BYTECODE = Path(__file__).with_name("worker") / "python-for-spark"
"""A script that starts Python with the installed pyspark, not Spark's zip of it, which holds no bytecode."""
REAL_PYTHON = "CAESURA_PYTHON"
"""The environment variable that tells the script which Python to start."""


def session(
    name: str = "caesura", *, master: str = "local[*]", buckets: int | None = None, **settings: Any
) -> SparkSession:
    """A SparkSession with everything set as Caesura needs it.

    Parameters
    ----------
    name
        What the application is called.
    master
        Where it runs: ``"local[*]"``, ``"local-cluster[2,1,1024]"``, ``"spark://host:7077"``.
    buckets
        How many buckets stages have; by default one for each core.
    **settings
        Further settings with underscores for dots, ``spark_driver_memory="4g"``, or as they are called:
        ``**{"spark.executorEnv.AWS_REGION": "eu-west-1"}``.

    Returns
    -------
    pyspark.sql.SparkSession
        The session; the one that runs already, if there is one.

    Notes
    -----
    It sets the Python of the workers, the state store and the number of partitions; ``caesura doctor`` says
    what a session of your own lacks. Needs the extra ``spark``.

    See Also
    --------
    Stream.start : a streaming query on Spark.
    from_spark : a Spark DataFrame.

    Examples
    --------
    On this machine::

        spark = cz.session("speeds", master="local[4]")
    """
    _refuse_connect()
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = _python(master)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    partitions = buckets or _cores(master)
    conf = SparkConf().setAppName(name).setMaster(master)
    conf.setAll([*DEFAULTS.items(), ("spark.sql.shuffle.partitions", str(partitions))])
    if master.startswith("local"):
        conf.set("spark.sql.streaming.checkpointFileManagerClass", FILES)
        conf.set("spark.python.daemon.module", "caesura.spark.worker.daemon")
    named = {key if "." in key else key.replace("_", "."): str(value) for key, value in settings.items()}
    conf.setAll(list(named.items()))
    _launch_quietly(conf)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _python(master: str) -> str:
    """The Python of Spark's workers; on this machine one that reads pyspark with its bytecode."""
    os.environ[REAL_PYTHON] = sys.executable
    on_this_machine = master == "local" or master.startswith("local[")
    fits = on_this_machine and _installed() and os.access(WITH_BYTECODE, os.X_OK)
    return str(WITH_BYTECODE) if fits else sys.executable


def _installed() -> bool:
    """Whether a Python that is started finds the same pyspark as this one without Spark's help."""
    if "SPARK_HOME" in os.environ:
        return False
    found = [find_spec(name) for name in ("pyspark", "py4j")]
    homes = {str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin}
    return homes <= {*map(sysconfig.get_path, ("purelib", "platlib"))}


def _refuse_connect() -> None:
    """Stops where this process has Spark Connect: there is one kind of session in a process."""
    if not any(name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")):
        return
    where = os.environ.get("SPARK_REMOTE", "").partition(";")[0] or "a Spark Connect server"
    raise StreamError(
        f"this process works with {where}, and cz.session() would start a Spark of its own beside it.",
        remedy="Give start(...) the session that you have: SparkSession.builder.remote(...).getOrCreate(); "
        "its settings are the server's. For a Spark of its own unset SPARK_REMOTE, in a new process.",
        place=here(),
    )


DEFAULTS = {
    STORE: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.locality.wait": "0",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps for its pages, shown or not, a thousand of each: 20 MB that fill up in a thousand epochs.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    # Left on, workers of a stage with state have another environment, and so another parent and pool.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def _launch_quietly(conf: Any) -> None:
    """Starts the JVM with its own chatter in a log file instead of the user's terminal."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    handle, path = tempfile.mkstemp(prefix="caesura-spark-", suffix=".log")
    os.environ["CAESURA_SPARK_LOG"] = path
    streams = {"stdout": handle, "stderr": handle}
    SparkContext._gateway = launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
    SparkContext._jvm = SparkContext._gateway.jvm
    os.close(handle)


def spark_log() -> str:
    """The file that takes what the JVM says, if `session` started it."""
    return os.environ.get("CAESURA_SPARK_LOG", "")


def _cores(master: str) -> int:
    if master.startswith("local[") and master[6:-1].isdigit():
        return int(master[6:-1])
    return os.cpu_count() or 2


def check_session(spark: SparkSession) -> int:
    """Refuses a session that cannot run Caesura, with what to change; gives its number of buckets."""
    if spark.conf.get(STORE, "") != ROCKSDB:
        raise StreamError(
            f"the session's state store is {spark.conf.get(STORE, 'not set')}.",
            remedy=f"Set it before the query starts: spark.conf.set('{STORE}', '{ROCKSDB}').",
        )
    _check_python(spark)
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)


def _check_python(spark: SparkSession) -> None:
    """Refuses a Python of workers on this machine that cannot run them."""
    context = None if over_connect(spark) else spark.sparkContext
    master = "" if context is None else str(context.master)
    if context is None or not (master == "local" or master.startswith("local[")):
        return
    python = str(context.pythonExec)
    own = {sys.executable} | (
        {str(WITH_BYTECODE)} if os.environ.get(REAL_PYTHON) == sys.executable else set()
    )
    lacks = "" if shutil.which(python) in own else _lacking(python)
    if lacks:
        raise StreamError(
            f"Spark's workers run '{python}', {lacks}.",
            remedy="Before the session is made, write os.environ['PYSPARK_PYTHON'] = sys.executable, or make "
            "it with cz.session().",
        )


NEEDED = ("pyarrow", "numpy", "numba", "pandas", "pyspark")
"""The packages that workers import; Caesura itself may be sent along."""
_PROBE = (
    "import sys; from importlib.util import find_spec; print('%d.%d' % sys.version_info[:2], "
    "*(name for name in sys.argv[1:] if find_spec(name) is None))"
)


@lru_cache
def _lacking(python: str) -> str:
    """What a Python lacks to be that of workers; "" for nothing."""
    try:
        done = subprocess.run([python, "-c", _PROBE, *NEEDED], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"which does not start: {error}"
    version, *missing = done.stdout.split()
    own = "{}.{}".format(*sys.version_info[:2])
    if version != own:
        return f"which is Python {version}; this is {own}"
    return f"which has no package '{missing[0]}'" if missing else ""


def retained_epochs(spark: SparkSession) -> int:
    """Of how many epochs Spark retains what it needs to go on from them."""
    return int(spark.conf.get("spark.sql.streaming.minBatchesToRetain") or 100)


def over_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark Connect server."""
    return "connect" in type(spark).__module__
