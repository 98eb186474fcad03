"""Plans with modules run in processes that have never seen the modules' package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from caesura.errors import StreamError

pytest.importorskip("pyspark")
from pyspark import cloudpickle

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "streaminsight"
WORKER = """
import sys, pickle
from caesura.runtime import Query
from caesura.events import History, Page
for node, items in pickle.loads(sys.stdin.buffer.read()):
    query = Query({"out": node})
    for item in items:
        query.feed("in", item)
        query.run()
    out = query.take("out")
    assert all(p.schema == node.schema for p in out if isinstance(p, Page)), node.schema
    print(repr(History.of(out, node.schema)))
"""


def test_every_figure_comes_out_the_same_in_a_process_without_its_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import figures

    import caesura as cz
    from caesura.events import parse
    from caesura.ops.input import Input
    from caesura.udm import homes

    shown = figures.FIGURES[-6:]
    plans = []
    for figure in shown:
        node = figure.query(cz.Stream(Input(label="in", payload=figure.schema))).node
        for home in homes(node):
            cloudpickle.register_pickle_by_value(home)
        plans.append((node, parse(figure.drawn, figure.schema)))
    done = subprocess.run(
        [sys.executable, "-c", WORKER],
        input=cloudpickle.dumps(plans),
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == "".join(f"{figures.answer(figure)}\n" for figure in shown)


def test_a_module_of_a_missing_package_says_what_to_ship() -> None:
    from caesura.udm.shipping import arrive

    with pytest.raises(StreamError, match="ship the package 'prices' to the executors"):
        arrive("uda", "median", "prices.robust", "median")
