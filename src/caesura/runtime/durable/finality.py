"""Refuses a saved query of which only final rows are wanted, and whose sources never make one final.

What is read once is all there when it ends, and its end makes every row final. A folder, a topic or a table
that a saved query reads may grow until the next start: its end promises nothing. Where nothing else does
either, such a query would write nothing for ever, and not say so.
"""

from __future__ import annotations

from collections.abc import Mapping

from caesura.contracts.analysis import Analysis, Assumptions
from caesura.errors import PlanError
from caesura.io.sources.source import Source
from caesura.plan import Node, walk
from caesura.runtime.durable.corrections import form_of


def refuse_never_final(outputs: Mapping[str, Node]) -> None:
    """Refuses outputs of final rows that nothing promises to be final."""
    for node in outputs.values():
        if form_of(node) != "final":
            continue
        silent = [source for source in walk(node) if isinstance(source, Source) and _promises_nothing(source)]
        if silent and Analysis(node).run(Assumptions())[-1].scheme.kind == "none":
            source = silent[0]
            raise PlanError(
                f"no row ever becomes final: '{source.step}' promises nothing, and may have grown when the "
                "query is started again, so its end promises nothing either.",
                remedy="Say how far it has come where it is read, as in punctuate=cz.delay('5m'); or that "
                "what is there is all, punctuate=cz.at_end(closes=True): what comes later is late then; or "
                "take output='changes'.",
            ).at(source.step, source.place)


def _promises_nothing(source: Source) -> bool:
    """Whether neither its policy nor what lies between its rows says how far it has come."""
    policy, reader = source.policy, source.reader
    grows = not (reader.in_memory or reader.complete)
    return grows and policy.gives == "nothing" and policy.closes is None and not reader.punctuates
