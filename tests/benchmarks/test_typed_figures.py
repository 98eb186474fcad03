"""No page says a measured figure by itself: what was measured stands in a place that records fill."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.figures import HOME, PLACE, pages

PAGES = [*pages(), HOME / "CHANGELOG.md", HOME / "CONTRIBUTING.md"]
NUMBER = r"\d[\d.,]*"
OTHERS = "Spark|DuckDB|Polars|Flink|RxJava|Esper"
MEASURED = {
    "rate": rf"{NUMBER} ?(K|M|thousand|million)? ?((events|rows|bids|items|steps)(/s| a second)|[KM]?/s\b)",
    "ratio": rf"{NUMBER} times ({OTHERS}|as (much|fast|long|slow)|the (CPU|time|same|speed))",
    "share": rf"{NUMBER} of ({OTHERS})",
    "short time": rf"{NUMBER} ?(ns|µs|us|ms)\b",
    "CPU": rf"{NUMBER} ?(s|seconds|minutes) of CPU",
    "difference": rf"{NUMBER} ?% (less|more|slower|faster|dearer|cheaper)\b",
    "memory": rf"{NUMBER} ?[KMG]B of (memory|state)",
}
EXEMPT = {
    ("consistency.md", "after 50 ms of the clock"): "a setting",
    ("feedback.md", '`budget="20ms"`'): "a setting",
    ("cluster.md", "10 million events a second"): "what a simulation is asked for",
    ("consistency.md", '`cz.tokens(latency="200ms")`'): "a setting",
    ("0017-sources-and-sinks.md", "asked again after 50 ms"): "a setting",
    ("0028-state-in-files.md", "a restart on Spark with 500 MB of state"): "what a benchmark is asked for",
}
"""Pages and words around a figure that is no measurement, with the reason."""


def prose(text: str) -> str:
    """A page without its places and its code, which run in tests of their own."""
    text = PLACE.sub("", text)
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def typed(name: str, text: str) -> list[str]:
    """The measured figures in a page's prose, with their lines."""
    found = []
    for line in prose(text).splitlines():
        for words in (words for page, words in EXEMPT if page == name):
            line = line.replace(words, "")
        found += [
            f"{kind}: {match[0]} in: {line.strip()[:120]}"
            for kind, pattern in MEASURED.items()
            for match in re.finditer(pattern, line)
        ]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(HOME)))
def test_no_page_says_a_measured_figure_that_no_record_holds(page: Path) -> None:
    assert typed(page.name, page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "Y1 does 148 M events/s",
        "at 16 K rows/s",
        "| N1 | 2.5 M/s |",
        "1.28 times Spark's own",
        "7.7 times as much",
        "some 5 µs a page",
        "takes 350 ms",
        "two epochs, 3.4 s of CPU",
        "27 % less (39 before)",
        "263 MB of memory",
    ],
)
def test_the_search_finds_each_kind_of_figure(line: str) -> None:
    assert typed("x.md", line)
    assert not typed("x.md", f"<!-- table: x -->\n{line}\n<!-- end of table -->")


def test_every_exemption_is_needed() -> None:
    texts = {page.name: page.read_text("utf-8") for page in PAGES}
    assert [key for key in EXEMPT if key[1] not in texts[key[0]]] == []
