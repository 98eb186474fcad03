"""The paper's queries beside the engines that it compares with: RxJava, Esper and Flink, each in a JVM.

``make bench NAME=qre ARGS="--jvm"``. Maven fetches the engines once (`rivals/pom.xml`), the compiler in
Java's own modules compiles `rivals/*.java`, and each engine runs every query over the same events, made
before as objects of Java. Times are CPU times of the whole JVM while events flow (with compiling and
collecting, without starting), the least of several runs after one another; answers must be those of our
query. What cannot be fetched or does not run is reported as not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import qre_data as data

HERE = Path(__file__).parent / "rivals"
FETCH_SECONDS, RUN_SECONDS = 600, 1500
COLUMNS = {
    "nexmark": ("kind", "item", "price", "category", None),
    "yahoo": ("kind", "ad", None, "campaign", "user"),
}
"""What an event of Java takes its fields from."""
ENGINES = {"rxjava": "rxjava", "esper": "esper-runtime", "flink": "flink-runtime"}
"""Each with the jar that names its version."""
CLASSES = {"rxjava": "RunRxJava", "esper": "RunEsper", "flink": "RunFlink"}
PLAIN = ("Y1", "Y2", "N1", "N2", "N3", "N4", "N5")
PERIOD = {"Y1": data.SECOND, "N4": 600 * data.SECOND, "N5": 600 * data.SECOND}
JVM = ("-Xmx2g", "-XX:+UseSerialGC", "--add-opens=java.base/java.util=ALL-UNNAMED")


class NotRunError(Exception):
    """What is missing to run an engine here."""


def fetched() -> Path:
    """The engines with all that they need, fetched if they are not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "caesura"
    there = cache / f"rivals-{zlib.crc32((HERE / 'pom.xml').read_bytes()):x}"
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if there.is_dir() and "java" not in missing:
        return there
    if missing:
        raise NotRunError(f"{' and '.join(missing)} not found")
    cache.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=cache))
    command = ["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if done.returncode or not any(part.glob("*.jar")):
        shutil.rmtree(part)
        raise NotRunError(f"Maven could not fetch the engines: {done.stdout.strip()[:300]}")
    part.rename(there)
    return there


def compiled(jars: Path, folder: Path) -> str:
    """The class path of all that `rivals` holds."""
    path = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    command = [
        "java",
        "-m",
        "jdk.compiler/com.sun.tools.javac.Main",
        "-nowarn",
        "-cp",
        path,
        "-d",
        str(folder),
    ]
    done = subprocess.run(
        [*command, *map(str, sorted(HERE.glob("*.java")))], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotRunError(f"Java could not compile: {(done.stderr + done.stdout).strip()[:300]}")
    return os.pathsep.join((str(folder), path))


def write(of: data.Data, kind: str, file: Path, period: int | None) -> None:
    """All events as columns of doubles, and one at the end of the last period."""
    whole = int(of.time[-1])
    edge = whole - whole % (period or 1) + (period or 1)
    columns = []
    for name, over in zip(COLUMNS[kind], (-1, 0, 0, 0, 0), strict=True):
        values = (
            np.zeros(len(of.time)) if name is None else of.batch.column(name).to_numpy().astype(np.float64)
        )
        columns.append(np.append(values, over))
    columns.append(np.append(of.time.astype(np.float64), edge))
    np.concatenate(columns).astype("<f8").tofile(file)


def agree(name: str, engine: str, ours: Any, file: Path) -> None:
    """An engine has given the rows that the query gives, in any order."""
    times, out = ours
    columns = [np.asarray(times, np.float64), *(_numbers(c) for c in out.columns)]
    wanted = np.stack(columns, axis=1)
    found = np.fromfile(file, "<f8").reshape(-1, wanted.shape[1])
    if wanted.shape != found.shape:
        raise AssertionError(f"{name}: {engine} gives {len(found)} rows, not {len(wanted)}")
    first, second = (some[np.lexsort(np.round(some, 6).T[::-1])] for some in (wanted, found))
    if not np.allclose(first, second):
        raise AssertionError(f"{name}: {engine} gives other answers")


def _numbers(column: pa.Array) -> Any:
    return column.to_numpy(zero_copy_only=False).astype(np.float64)


def version(jars: Path, stem: str) -> str:
    """What an engine's jar says that it is."""
    return next(f.stem.removeprefix(f"{stem}-") for f in jars.glob(f"{stem}-*.jar"))


def ran(engine: str, path: str, folder: Path, repeat: int) -> dict[str, float]:
    """CPU seconds of every query on an engine."""
    given = [word for name in PLAIN for word in (name, name)]
    command = ["java", *JVM, "-cp", path, f"rivals.{CLASSES[engine]}", str(folder), str(repeat), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    if done.returncode:
        raise NotRunError(done.stderr.strip()[-300:])
    words = (line.split() for line in done.stdout.splitlines())
    return {w[0]: int(w[1]) / 1e9 for w in words if len(w) == 2 and w[0] in PLAIN}


def beside(events: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Every query on each engine and on ours, in turn."""
    from benchmarks.qre import QUERIES, case_of, seconds

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            jars = fetched()
            path = compiled(jars, folder / "classes")
        except NotRunError as error:
            yield {"bench": "qre", "case": "jvm", "not_run": str(error)}
            return
        cases = {}
        for name in PLAIN:
            kind, make, every = QUERIES[name]
            cases[name] = case_of(make(), getattr(data, kind)(events), every)
            write(cases[name].of, kind, folder / f"{name}.bin", PERIOD.get(name))
        took: dict[str, dict[str, float]] = {}
        for engine in ENGINES:
            try:
                took[engine] = ran(engine, path, folder, repeat)
                for name in PLAIN:
                    agree(name, engine, cases[name].run(), folder / f"answers-{name}.bin")
            except (NotRunError, subprocess.TimeoutExpired) as error:
                yield {"bench": "qre", "case": engine, "not_run": str(error)}
        versions = {engine: version(jars, stem) for engine, stem in ENGINES.items()}
        for name, case in cases.items():
            case.head(20_000).run()
            ours = min(seconds(case.run) for _ in range(repeat))
            result: dict[str, Any] = {"bench": "qre", "case": f"{name} beside the JVM's", "events": events}
            result["events_per_s"] = round(events / ours)
            result["theirs_per_s"] = {e: round(events / of[name]) for e, of in took.items()}
            result["ratio_to"] = {e: round(of[name] / ours, 1) for e, of in took.items()}
            yield result | {"versions": versions}
