"""What went wrong in Spark, as a diagnostic of ours: a worker's own, or the cause under the JVM's trace.

>>> print(cause_of("An exception was thrown from the Python worker:\\nTraceback (most recent call last):\\n"
...     '  File "x.py", line 3, in save\\nOSError: [Errno 28] No space left on device\\n\\tat org.apache'))
OSError: [Errno 28] No space left on device
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from caesura import errors
from caesura.errors import CaesuraError, StreamError
from caesura.spark.session import spark_log

if TYPE_CHECKING:
    from caesura.plan import Node

T = TypeVar("T")
TRIES = 5
"""How often something is tried that a busy machine may not do in time."""
NOT_STARTED = re.compile(r"Python worker (?:failed )?to connect back")
log = logging.getLogger("caesura.spark")
AGAIN = "start again with the same checkpoint: the epoch runs again, and nothing is lost"
_RAISED = re.compile(
    r"^\s*(?:Caused by: )?((?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Failure))(?:: (.*))?$"
)
_SPARKS = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)?\] [^\n]*")
"""How Spark begins a message of its own."""
_WRAPPERS = (
    *("PythonException", "SparkException", "StreamingQueryException", "Py4JJavaError", "Py4JException"),
    *("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"),
)
"""Exceptions that only say that there is another one."""


def _log() -> str:
    return f", and what Spark said in {spark_log()}" if spark_log() else ""


def explained(error: Exception, epoch: int) -> Exception:
    """What failed while an epoch was written: a worker, Spark, or the sink itself."""
    from pyspark.errors import PySparkException

    if isinstance(error, CaesuraError):
        return error
    if isinstance(error, PySparkException) or _through_py4j(error):
        return ours(error)
    if isinstance(error, OSError) and error.errno == 28:
        return _full(str(error), error)
    return StreamError(
        f"the sink failed in epoch {epoch}: {error}.",
        remedy="Mend it and start again with the same checkpoint: the epoch runs again, and none is lost.",
    )


def ours(error: Exception) -> Exception:
    """The diagnostic that a worker raised, out of the JVM's trace; the trace stays as its cause."""
    if isinstance(error, CaesuraError):
        return error
    text = str(error)
    found = re.search(r"CAESURA<<(\w+)\|(.*?)>>", text, re.DOTALL)
    if found is not None:
        return _parsed(found.group(1), found.group(2), error)
    if _through_py4j(error) and _lost(error):
        return _gone(error)
    if not_started(error):
        return StreamError(
            "Spark could not start Python in time.",
            remedy="It gives it ten seconds, which a very busy machine exceeds. start(...) tries again a few "
            "times by itself; what you write with to_spark(...) you start again: nothing is lost. If it "
            f"happens always, see `caesura doctor`{_log()}.",
        )
    if "org.apache.hadoop.fs.s3a.S3AFileSystem not found" in text:
        return StreamError(
            "Spark has no library for S3, through which its own checkpoint and file listings go.",
            remedy="Add it when the session is made: spark.jars.packages=org.apache.hadoop:hadoop-aws:X.Y.Z, "
            "with the version of Spark's Hadoop. Sinks need none: Caesura writes them itself.",
        )
    if type(error).__module__.startswith("grpc") or "SparkConnectGrpc" in type(error).__name__:
        return _server_gone(error)
    cause = cause_of(text)
    if "No space left on device" in text:
        return _full(cause, error)
    if (
        missing := re.search(r"ModuleNotFoundError: No module named '(pyarrow|numpy|numba|caesura)", text)
    ) is not None:
        return StreamError(
            f"the Python of Spark's workers has no package '{missing.group(1)}'.",
            remedy="They run `python3` unless told otherwise. Before the session is made, write "
            "os.environ['PYSPARK_PYTHON'] = sys.executable. On other machines and on a Spark Connect server "
            "install it or send it along: docs/cluster.md.",
        )
    return StreamError(
        f"the query failed in Spark: {cause.rstrip('.')}.",
        remedy=f"The whole trace is in this error's cause{_log()}.",
    )


def not_started(error: Exception) -> bool:
    """Whether Spark started a Python that did not begin in time."""
    return NOT_STARTED.search(str(error)) is not None


def patiently(call: Callable[[], T]) -> T:
    """Calls again, a few times, while Spark could not start Python in time: it gives it ten seconds."""
    for left in reversed(range(TRIES)):
        try:
            return call()
        except Exception as error:
            if not left or not not_started(error):
                raise
            log.warning("Spark could not start Python in time; trying again, %d times at most", left)
    raise AssertionError


def cause_of(text: str) -> str:
    """The innermost exception that a trace names, Python's before the JVM's; else its first line."""
    lines = [line for line in text.strip().splitlines() if line.strip() and not line.startswith("\t")]
    raised = [found for line in lines if (found := _RAISED.match(line))]
    telling = [f for f in raised if f.group(1).split(".")[-1] not in _WRAPPERS]
    python = [f for f in telling if "." not in f.group(1)]
    sparks = [f.group(0).strip() for f in _SPARKS.finditer(text) if f.group(1) not in _WRAPPERS]
    if not python and sparks:
        return sparks[-1]
    if not telling:
        return lines[0].strip() if lines else "nothing was said"
    kind, message = (python or telling)[-1].groups(default="")
    return f"{kind.split('.')[-1]}: {message.strip()}" if message else kind.split(".")[-1]


def _parsed(kind: str, text: str, error: Exception) -> CaesuraError:
    problem, _, remedy = text.partition("\n")
    made: CaesuraError = getattr(errors, kind, StreamError)(problem, remedy=remedy)
    made.called = ""  # the worker's text names its place
    made.__cause__ = error
    return made


def _full(what: str, error: Exception) -> CaesuraError:
    made = StreamError(
        f"a disk is full: {what.rstrip('.')}.",
        remedy="Make room where the checkpoint, the output, the loop log and Spark's own files "
        f"(spark.local.dir, the temporary folder) lie, and {AGAIN}.",
    )
    made.__cause__ = error
    return made


def _gone(error: Exception) -> CaesuraError:
    made = StreamError(
        "Spark's JVM is gone: it was killed, often for want of memory, or it crashed.",
        remedy=f"Start a new process, and {AGAIN}. Give the JVM more memory if it happens again: "
        f"cz.session(spark_driver_memory='4g'){_log()}.",
    )
    made.__cause__ = error
    return made


def _server_gone(error: Exception) -> CaesuraError:
    made = StreamError(
        f"the Spark Connect server does not answer: {str(error).strip().splitlines()[0].rstrip('.')}.",
        remedy=f"See whether it runs, and {AGAIN}. A query that still runs there goes on until it is taken "
        "over: take_over=True.",
    )
    made.__cause__ = error
    return made


def _through_py4j(error: BaseException) -> bool:
    """Whether an error came up in, or came out of, the way to the JVM."""
    if type(error).__module__.startswith("py4j"):
        return True
    at = error.__traceback__
    while at is not None:
        if "/py4j/" in at.tb_frame.f_code.co_filename.replace("\\", "/"):
            return True
        at = at.tb_next
    return False


def _lost(error: BaseException) -> bool:
    """Whether nobody answers at the other end."""
    if type(error).__name__ == "Py4JError":  # a call at work when the other end went has no trace
        return re.fullmatch(r"An error occurred while calling \S+", str(error).strip()) is not None
    network = type(error).__name__ == "Py4JNetworkError"
    return network or isinstance(error, (ConnectionError, EOFError))


@contextmanager
def asking_spark() -> Iterator[None]:
    """Errors of the JVM, or of the way to it, as ours."""
    try:
        yield
    except CaesuraError:
        raise
    except Exception as error:
        raise ours(error) from error


@contextmanager
def named_errors(source: Node) -> Iterator[None]:
    """Errors in a worker while a source is read: they name it and the user's line, and survive the JVM."""
    try:
        yield
    except CaesuraError as error:
        raise as_line(error.at(source.step, source.place)) from error


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """Errors in a worker that survive the way through the JVM."""
    try:
        yield
    except CaesuraError as error:
        raise as_line(error) from error


def as_line(error: Exception) -> Exception:
    """An error of ours as one line that survives the way through the JVM; `ours` reads it."""
    if isinstance(error, CaesuraError):
        return RuntimeError(f"CAESURA<<{type(error).__name__}|{error}>>")
    return error
