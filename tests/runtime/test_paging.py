"""State beyond a budget of memory lies on the disk, mapped or read, and no result tells the difference."""

from __future__ import annotations

import gc
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError, StreamError
from caesura.events import History
from caesura.events.paging import HeldArray, StatePages, memory_size, refuse_full
from caesura.events.referred import ReferredStore
from caesura.events.rows import RowState

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string()), ("list", pa.list_(pa.int64()))])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "kill", "compact", "save"]), st.integers(0, 7)), max_size=30
)


def batch(first: int, count: int) -> pa.RecordBatch:
    numbers = list(range(first, first + count))
    texts = [None if n % 5 == 0 else f"text {n}" * (n % 4) for n in numbers]
    return pa.record_batch([numbers, texts, [[n] * (n % 3) for n in numbers]], schema=SCHEMA)


@pytest.mark.parametrize("mapped", [True, False])
@given(CHANGES)
def test_rows_on_the_disk_are_those_in_memory(mapped: bool, changes: list[tuple[str, int]]) -> None:
    """Whatever is added, let go, moved together, saved and read again."""
    plain, paged = (RowState({"le": np.int64}, SCHEMA, store=ReferredStore) for _ in range(2))
    pages = StatePages(40, mapped=mapped, smallest=0)
    paged.page_to(pages)
    saved: list[dict[str, bytes]] = [{}, {}]
    for what, number in changes:
        for rows, chunks in zip((plain, paged), saved, strict=True):
            if what == "add":
                rows.append({"le": np.arange(number)}, batch(rows.size, number))
            elif what == "kill":
                rows.kill(np.flatnonzero(rows.alive)[:number])
            elif what == "compact":
                rows.compact()
            else:
                for name, data in rows.snapshot().items():
                    chunks.pop(name, None)
                    chunks |= {} if data is None else {name: data}
                rows.restore(chunks)
    live = [rows.payload.take(np.flatnonzero(rows.alive)) for rows in (plain, paged)]
    assert live[0].equals(live[1])


def _sides(count: int) -> list[Stream]:
    rng = np.random.default_rng(count)
    rows = [
        [
            {"t": int(t), "key": int(k), side: None if k % 7 == 0 else f"{side} {i}" * int(k % 5)}
            for i, (t, k) in enumerate(
                zip(np.sort(rng.integers(0, 40, count)), rng.integers(0, 12, count), strict=True)
            )
        ]
        for side in ("left", "right")
    ]
    return [
        cz.from_rows(some, time="t", punctuate=cz.delay(2), batch_size=9, name=name).set_duration(8)
        for some, name in zip(rows, ("left", "right"), strict=True)
    ]


def _plans() -> dict[str, Stream]:
    left, right = _sides(120)
    return {
        "inner": left.join(right, on="key"),
        "outer": left.join(right, on="key", how="full"),
        "anti": left.join(right, on="key", how="anti"),
        "corrected": left.join(right.group_by("key").totals(right=cz.max("right")), on="key"),
        "by text": left.join(right.select(other="key", left="right"), on="left"),
        "latest": left.latest("key"),
    }


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", ["inner", "outer", "anti", "corrected", "by text", "latest"])
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("output", ["changes", "final"])
def test_a_query_gives_what_it_gives_in_memory(name: str, mapped: bool, output: Any) -> None:
    stream = _plans()[name]
    query = stream.query(output=output)
    pages = StatePages(0, mapped=mapped, smallest=0)
    query._page_to(pages)
    query.run()
    assert History.of(query.take("out"), stream.schema) == stream.run(output=output).history
    assert pages.written > 0


def test_it_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    stream = _plans()["inner"]
    whole = stream.run().history
    first = stream.query(state_memory=0)
    for _ in range(15):
        first.step()
    second = stream.query(state_memory="1 kB")
    second.restore({n: d for n, d in first.snapshot().items() if d is not None})
    second.run()
    assert History.of([*first.take("out"), *second.take("out")], stream.schema) == whole


def test_files_go_with_what_they_hold() -> None:
    pages = StatePages(0, mapped=False, smallest=0)
    held = HeldArray(pa.array(["text"] * 100))
    pages.watch([held])
    folder = pages._folder
    assert folder is not None and len(list(folder.iterdir())) == 1
    assert folder.stat().st_mode & 0o077 == 0
    del held
    gc.collect()
    assert list(folder.iterdir()) == []
    del pages
    gc.collect()
    assert not folder.exists()


LIMITED = """
import resource, sys
import numpy as np, pyarrow as pa
import caesura as cz
from caesura.events import Page
from caesura.events.paging import StatePages, limited_addresses
rows = [cz.from_rows([{"t": 1, "key": 1, side: "x"}], time="t", name=side) for side in ("left", "right")]
query = rows[0].join(rows[1], on="key").query()
def size():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmSize")).split()[1]) * 1024
join = next(c.operator for c in query.graph.cells if c.label == "join")
names = join.sides[0].schema.names
def page(number, count=20000):
    texts = pa.array(["%01000d" % number] * count)
    columns = {"key": pa.array(np.arange(count) + number * count), "left": texts}
    batch = pa.record_batch([columns[n] for n in names], names=names)
    return Page(np.zeros(count, np.int64), np.full(count, 10**9), batch)
list(join.page(0, page(0)))
resource.setrlimit(resource.RLIMIT_AS, (size() + 400 * 2**20,) * 2)
assert limited_addresses()
if sys.argv[1] == "paged":
    pages = StatePages(50 * 2**20)
    query._page_to(pages)
try:
    for number in range(1, 41):
        list(join.page(0, page(number)))
    right = pa.record_batch([pa.array([25 * 20000]), pa.array(["y"])], names=join.sides[1].schema.names)
    found = list(join.page(1, Page(np.zeros(1, np.int64), np.full(1, 5), right)))
    print("found", found[0].payload["left"].to_pylist()[0][-2:], pages.written > 500 * 2**20)
except MemoryError:
    print("memory ended")
"""


@pytest.mark.parametrize(("how", "says"), [("paged", "found 25 True"), ("plain", "memory ended")])
def test_under_a_limit_of_addresses_a_join_of_twice_its_size_works(how: str, says: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, how], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == says, done.stderr[-2000:]


CONFINED = """
import sys
import numpy as np, pyarrow as pa
import caesura as cz
from caesura import Stream
from caesura.io import Reader, Source
from caesura.io.ingress.shape import Shape
from caesura.plan import Raw
class Wide(Reader):
    schema = pa.schema([("t", pa.int64()), ("key", pa.int64()), ("text", pa.string())])
    key = "wide"
    def read(self, offsets):
        for n in range(40):
            keys = np.arange(20000) + 20000 * n
            columns = [np.zeros(20000, int), keys, ["%01000d" % n] * 20000]
            yield Raw(0, 20000 * n, pa.record_batch(columns, self.schema))
    def describe(self):
        return "wide rows"
wide = Stream(Source(reader=Wide(), shape=Shape.of(time="t"), policy=cz.delay(9), name="wide"))
one = cz.from_rows([{"t": 0, "key": 25 * 20000, "name": "y"}], time="t", punctuate=cz.delay(9, closes=False))
met = wide.set_duration(100).join(one.set_duration(100), on="key")
query = met.query(state_memory="50 MB" if sys.argv[1] == "paged" else None)
query.run()
print(query.table().column("text").to_pylist()[0][-2:])
"""


@contextmanager
def confined(size: int) -> Iterator[Path]:
    """A group of processes that may take so many bytes of memory, where this machine lets one be made."""
    old = Path("/sys/fs/cgroup/memory")
    root, name = (old, "memory.limit_in_bytes") if old.is_dir() else (old.parent, "memory.max")
    group = root / f"caesura-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
        (group / name).write_text(str(size))
    except OSError as error:
        pytest.skip(f"not run: no group of processes can be made here: {error}")
    try:
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


@pytest.mark.parametrize(
    ("how", "says"), [("paged", "25"), ("plain", "MB that it may: its state is too large")]
)
def test_in_a_group_of_limited_memory_a_join_of_twice_its_size_works(how: str, says: str) -> None:
    with confined(500 * 2**20) as procs:
        command = ["sh", "-c", f'echo $$ > {procs} && exec "$@"', "sh", sys.executable, "-c", CONFINED, how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert says in done.stdout + done.stderr, done.stderr[-2000:]


def test_a_process_stops_before_its_memory_ends() -> None:
    refuse_full(None, 10**15)
    refuse_full(10**9, 8 * 10**8)
    with pytest.raises(StreamError, match="takes 950 MB of the 1000 MB that it may"):
        refuse_full(10**9, 95 * 10**7)


@pytest.mark.parametrize("given_", ["much", "-1", -1, True, "1 b", 2.5])
def test_what_is_no_size_is_refused(given_: Any) -> None:
    with pytest.raises(CaesuraError, match="is no size of memory"):
        memory_size(given_)
