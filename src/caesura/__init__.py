"""Caesura: streams of events with lifetimes, corrections and punctuation.

>>> import caesura as cz
>>> from caesura import col
>>> rows = [{"ts": t, "seg": 1, "mph": v} for t, v in ((3, 62.0), (8, 48.0), (12, 9.0))]
>>> readings = cz.from_rows(rows, time="ts")
>>> print(readings.group_by("seg").tumbling(10).agg(mph=cz.avg("mph"), n=cz.count()).run())
 LE  RE | seg mph  n |
  0  10 | 1   55.0 2 | +
 10  20 | 1   9.0  1 | +
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caesura.api import (
        Result,
        Stream,
        arc,
        automaton,
        fixpoint,
        from_arrow,
        from_cdf,
        from_items,
        from_pandas,
        from_rows,
        from_spark,
        greatest,
        input_stream,
        least,
        read,
        session,
        subscribe,
        table,
    )
    from caesura.api.matching import matched
    from caesura.api.pipeline import Pipeline, from_claimed, pipeline
    from caesura.consistency import Claim, Level, Prefix, draining, heeding, synchronised, tokens
    from caesura.consistency.claimed import read_claimed
    from caesura.errors import CaesuraError, DataError, ExprError, PatternError, PlanError, StreamError
    from caesura.events import History, draw, parse
    from caesura.expr import Expr, col, end, functions, left, lit, right, set_of, start, udf, when
    from caesura.expr.functions import expr
    from caesura.io import (
        at_end,
        avro,
        delay,
        every,
        heartbeat,
        imported,
        in_data,
        ingestion_time,
        json,
        protobuf,
        registry,
    )
    from caesura.io.sinks.tables import delta, duckdb, iceberg, parquet, postgres
    from caesura.logs import set_log_level
    from caesura.ops.aggregate.kinds import (
        all,
        any,
        approx_count_distinct,
        avg,
        bool_and,
        bool_or,
        collect,
        collect_list,
        collect_set,
        corr,
        count,
        count_distinct,
        covar_pop,
        covar_samp,
        first,
        last,
        listagg,
        max,
        max_by,
        median,
        median_absolute_deviation,
        min,
        min_by,
        mode,
        percentile,
        quantile,
        some,
        stddev,
        string_agg,
        sum,
        top_k,
        variance,
    )
    from caesura.ops.archive import Archive
    from caesura.ops.over import first_value, lag, lead
    from caesura.plan.step_log import note
    from caesura.punctuation import INFINITY, Pattern, Punctuation, cti, definite
    from caesura.runtime.graph.progress_meter import ProgressMeter
    from caesura.runtime.graph.utility import Utility
    from caesura.runtime.sinks.kafka import kafka
    from caesura.sql.query import sql
    from caesura.sql.script import Script, script
    from caesura.udm import Event, Window, uda, udo
    from caesura.udm import find as udm

ROOMS = {
    "caesura.api": "Result Stream arc automaton from_arrow from_cdf from_items from_pandas from_rows "
    "from_spark greatest input_stream least read session subscribe table",
    "caesura.api.matching": "matched",
    "caesura.api.pipeline": "Pipeline from_claimed pipeline",
    "caesura.consistency": "Claim Level Prefix draining heeding synchronised tokens",
    "caesura.consistency.claimed": "read_claimed",
    "caesura.errors": "CaesuraError DataError ExprError PatternError PlanError StreamError",
    "caesura.events": "History draw parse",
    "caesura.expr": "Expr col end functions left lit right set_of start udf when",
    "caesura.io": "at_end avro delay every heartbeat imported in_data ingestion_time json protobuf registry",
    "caesura.io.sinks.tables": "delta duckdb iceberg parquet postgres",
    "caesura.logs": "set_log_level",
    "caesura.ops.aggregate.kinds": "all any approx_count_distinct avg bool_and bool_or collect "
    "collect_list collect_set corr count count_distinct covar_pop covar_samp first last listagg max "
    "max_by median median_absolute_deviation min min_by mode percentile quantile some stddev "
    "string_agg sum top_k variance",
    "caesura.ops.archive": "Archive",
    "caesura.ops.over": "first_value lag lead",
    "caesura.plan.step_log": "note",
    "caesura.punctuation": "INFINITY Pattern Punctuation cti definite",
    "caesura.runtime.graph.progress_meter": "ProgressMeter",
    "caesura.runtime.graph.utility": "Utility",
    "caesura.runtime.sinks.kafka": "kafka",
    "caesura.sql.query": "sql",
    "caesura.sql.script": "Script script",
    "caesura.udm": "Event Window uda udo",
}
"""Where each name lives. A room is entered when one of its names is first used: importing costs nothing."""
HOMES = {name: room for room, names in ROOMS.items() for name in names.split()}
NAMESAKES = {
    "expr": ("caesura.expr.functions", "expr"),
    "fixpoint": ("caesura.api", "fixpoint"),
    "sql": ("caesura.sql.query", "sql"),
    "udm": ("caesura.udm", "find"),
}
"""Names that a room has too. Python sets a room's name when it is entered, which must not hide ours."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in HOMES:
            raise _unknown(name)
        value = getattr(import_module(HOMES[name]), name)
        globals()[name] = value = _checked(value)
        return value

    def _unknown(name: str) -> AttributeError:
        """The error for a name that is not here, with where it is, or what was meant."""
        from difflib import get_close_matches

        told = f"module 'caesura' has no attribute '{name}'"
        if name.startswith("_"):
            return AttributeError(told)
        from caesura.expr import functions

        if name in functions.__all__:
            return AttributeError(f"{told}; it is a function of columns: caesura.functions.{name}")
        near = get_close_matches(name, __all__, n=1)
        return AttributeError(f"{told}; did you mean '{near[0]}'?" if near else told)

    def _checked(value: Any) -> Any:
        """What users call looks at its arguments first; rooms call each other as they are."""
        from caesura.misuse import checked

        return checked(value) if isinstance(value, FunctionType) else value

    def __dir__() -> list[str]:
        return sorted(__all__)

    class _Package(ModuleType):
        """This package, with the namesakes of rooms as properties that entering a room does not set."""

    def _namesake(room: str, name: str) -> property:
        return property(lambda _: _checked(getattr(import_module(room), name)), lambda _, room: None)

    for _name, _home in NAMESAKES.items():
        setattr(_Package, _name, _namesake(*_home))
    sys.modules[__name__].__class__ = _Package


__all__ = [
    "INFINITY",
    "Archive",
    "CaesuraError",
    "Claim",
    "DataError",
    "Event",
    "Expr",
    "ExprError",
    "History",
    "Level",
    "Pattern",
    "PatternError",
    "Pipeline",
    "PlanError",
    "Prefix",
    "ProgressMeter",
    "Punctuation",
    "Result",
    "Script",
    "Stream",
    "StreamError",
    "Utility",
    "Window",
    "all",
    "any",
    "approx_count_distinct",
    "arc",
    "at_end",
    "automaton",
    "avg",
    "avro",
    "bool_and",
    "bool_or",
    "col",
    "collect",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_distinct",
    "covar_pop",
    "covar_samp",
    "cti",
    "definite",
    "delay",
    "delta",
    "draining",
    "draw",
    "duckdb",
    "end",
    "every",
    "expr",
    "first",
    "first_value",
    "fixpoint",
    "from_arrow",
    "from_cdf",
    "from_claimed",
    "from_items",
    "from_pandas",
    "from_rows",
    "from_spark",
    "functions",
    "greatest",
    "heartbeat",
    "heeding",
    "iceberg",
    "imported",
    "in_data",
    "ingestion_time",
    "input_stream",
    "json",
    "kafka",
    "lag",
    "last",
    "lead",
    "least",
    "left",
    "listagg",
    "lit",
    "matched",
    "max",
    "max_by",
    "median",
    "median_absolute_deviation",
    "min",
    "min_by",
    "mode",
    "note",
    "parquet",
    "parse",
    "percentile",
    "pipeline",
    "postgres",
    "protobuf",
    "quantile",
    "read",
    "read_claimed",
    "registry",
    "right",
    "script",
    "session",
    "set_log_level",
    "set_of",
    "some",
    "sql",
    "start",
    "stddev",
    "string_agg",
    "subscribe",
    "sum",
    "synchronised",
    "table",
    "tokens",
    "top_k",
    "uda",
    "udf",
    "udm",
    "udo",
    "variance",
    "when",
]
