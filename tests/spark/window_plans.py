"""Windows, clippings, stamps and kinds of modules, pairwise, in one plan; and the examples of the paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import caesura as cz

ROOT = Path(__file__).parents[2]
for place in (ROOT / "tests" / "udm", ROOT / "examples" / "streaminsight"):
    sys.path.append(str(place))

import figures  # noqa: E402
from udm_law_cases import pairwise_sample  # noqa: E402
from udm_modules import MODULES  # noqa: E402

from caesura.events import History  # noqa: E402
from caesura.testing import parse  # noqa: E402

FRAMES: dict[str, Any] = {
    "tumbling": lambda s: s.tumbling(15, offset=-1),
    "hopping": lambda s: s.hopping(12, every=8, offset=1),
    "gaps": lambda s: s.hopping(5, every=9),
    "snapshot": lambda s: s.snapshot(),
    "start2": lambda s: s.count_by_start(2),
    "end2": lambda s: s.count_by_end(2),
    "session": lambda s: s.session(4),
    "limited": lambda s: s.session(6, longest=20),
}


def window_plans(folder: Path) -> dict[str, cz.Stream]:
    """Every pair of choices that can occur together, over events that are corrected."""
    loads = cz.read.parquet(
        folder / "changes", time="le", end="re", new_end="new", kind="sign", punctuate=cz.delay(20)
    )
    out: dict[str, cz.Stream] = {}
    for case in pairwise_sample():
        module, frame, clip, stamp = case.name.split("-")
        use = MODULES[module]("load")
        windows = FRAMES[frame](loads.group_by("seg"))
        over = windows.agg if use.module.kind == "uda" else windows.apply
        given = {"w": use} if use.module.kind == "uda" else {}
        out[case.name] = over(*(() if given else (use,)), **given, clip=clip, stamp=stamp)
    return out


def example_plans() -> dict[str, cz.Stream]:
    """The paper's figures, over their drawn inputs."""
    inputs: dict[str, cz.Stream] = {}
    for figure in figures.FIGURES:
        names = figure.schema.names
        history = History.of(parse(figure.drawn, figure.schema), figure.schema)
        rows = [
            {"from": le, "to": re, **dict(zip(names, payload, strict=True))}
            for le, re, _, payload in history.page.rows()
        ]
        inputs.setdefault(figure.drawn, cz.from_rows(rows, time="from", end="to"))
    return {figure.title: figure.query(inputs[figure.drawn]) for figure in figures.FIGURES}
