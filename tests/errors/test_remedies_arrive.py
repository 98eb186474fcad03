"""Who does what a diagnostic says arrives."""

from __future__ import annotations

import re

import pytest

import caesura as cz
from caesura import Expr, Stream, col, lit, matched
from caesura.errors import CaesuraError


def rows() -> Stream:
    return cz.from_rows([{"ts": n, "till": n + 2, "v": n * 7 % 5} for n in range(9)], time="ts", end="till")


READ = {
    "the start": (col("V.ts"), col("V.ts")),
    "the end": (col("V.till"), col("V.till")),
    "the first start": (matched.first("V.ts"), matched.first("V.ts")),
    "the latest end": (lit(1) * cz.max("V.till"), lit(1) * cz.max("V.till")),
    "start()": (cz.start(), col("at")),
    "end()": (cz.end(), col("at")),
    "what lies between": (col("V.v") + (cz.end() - cz.start()), col("V.v") + col("at")),
}
"""What is written at first, and what the remedy says to read instead."""


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("place", ["measures", "define"])
def test_a_time_that_a_match_reads_can_be_read_as_the_remedy_says(name: str, place: str) -> None:
    wrong, right = READ[name]

    def matches(stream: Stream, value: object) -> Stream:
        if place == "measures":
            return stream.match_rows("A V+", measures={"t": value})
        assert isinstance(value, Expr)
        return stream.match_rows("A V+", define={"V": value >= 0}, measures={"n": cz.count()})

    with pytest.raises(CaesuraError) as caught:
        matches(rows(), wrong)
    written = re.search(r"\.with_columns\((\w+)=cz\.(start|end)\(\)\)", caught.value.remedy)
    assert written, caught.value.remedy
    kept = rows().with_columns(**{written[1]: getattr(cz, written[2])()})
    assert matches(kept, right).run().table().num_rows > 0
