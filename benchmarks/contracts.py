"""How long contracts take before a query runs: accordances over many offerings, verdicts on large plans.

Many operators with ten contracts each, every one with two inputs from the five before it; and chains of
steps, some unsafe, for which remedies are looked for.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from random import Random

import caesura as cz
from benchmarks.report import Report
from caesura import Stream, col
from caesura.contracts import Contract, Link, Scheme, Template, accordance


def offerings(operators: int, random: Random) -> tuple[dict[str, list[Contract]], list[Link]]:
    """Nine contracts that keep a scheme, one of which all have, and one that changes it."""
    pairs = (dict(zip("ab", pair, strict=True)) for pair in product("+#-", repeat=2))
    schemes = [Scheme.of(Template.over(["a", "b"], **marks)) for marks in pairs]
    offered: dict[str, list[Contract]] = {}
    links: list[Link] = []
    for i in range(operators):
        kept = [*random.sample(schemes, 8), schemes[0]]
        one, two, out = (random.choice(schemes) for _ in range(3))
        turned = Contract((one, two), (out,))
        offered[f"op{i}"] = [*(Contract((s, s), (s,)) for s in kept), turned]
        links += [Link(f"op{random.randrange(max(0, i - 5), i)}", f"op{i}", port=p) for p in (0, 1) if i]
    return offered, links


def chain(steps: int, *, safe: bool) -> Stream:
    """A source, then filters and windows in turn; unsafe with groups over all time at the end."""
    stream = cz.from_rows([{"ts": 1, "id": 7, "v": 1}], time="ts", punctuate=cz.delay(5))
    for i in range(steps // 2):
        stream = stream.where(col("v") >= i).group_by("id").tumbling(i + 1).agg(v=cz.count())
    return stream if safe else stream.group_by("id").totals(n=cz.count())


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="contracts")
    parser.add_argument("--json", action="store_true")
    report = Report("contracts", parser.parse_args(argv).json)
    for operators in (50, 200, 800):
        offered, links = offerings(operators, Random(operators))
        begin = time.process_time()
        found = accordance(offered, links)
        took = time.process_time() - begin
        report.add(f"accordance of {operators} operators", found=found is not None, cpu_s=round(took, 3))
    for steps, safe in product((20, 200), (True, False)):
        stream = chain(steps, safe=safe)
        begin = time.process_time()
        verdict = stream.check()
        took = time.process_time() - begin
        report.add(f"verdict on {steps} steps", safe=verdict.safe, cpu_s=round(took, 3))
