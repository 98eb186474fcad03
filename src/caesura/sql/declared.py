"""What a script declares, as the calls that a user would write: sources, tables, sinks, functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from caesura import io
from caesura.api.sources import read
from caesura.api.stream import Stream
from caesura.api.tables import table as table_of
from caesura.errors import PlanError, closest
from caesura.expr import start
from caesura.expr.types import as_type
from caesura.io.sinks import tables
from caesura.io.sinks.protocol import Sink
from caesura.io.sources.read import Events
from caesura.runtime.sinks.kafka import kafka
from caesura.runtime.sinks.named import as_sink
from caesura.sql.statements import CreateFunction, CreateSink, CreateStream, CreateTable

KEYED = ("kafka", "delta", "iceberg", "postgres", "debezium")
"""Readers that give the current row of every key by themselves."""
CODECS: dict[str, Callable[..., Any]] = {"json": io.json, "avro": io.avro, "protobuf": io.protobuf}


def stream_of(declared: CreateStream) -> Stream:
    """CREATE STREAM as a stream: how it is read, then how long its rows live."""
    options: dict[str, Any] = dict(declared.options)
    if str(options.get("time", "")).lower() == "ingestion_time":
        options["time"] = io.ingestion_time()
    if declared.delay is not None:
        options["punctuate"] = io.delay(declared.delay)
    if declared.format in KEYED and declared.key:
        options["key"] = list(declared.key)
    made = _read(declared, _schema(declared.columns), options)
    return _living(made, declared)


def _read(declared: CreateStream, schema: pa.Schema | None, options: dict[str, Any]) -> Stream:
    reader = getattr(read, declared.format)
    first: tuple[Any, ...] = (declared.place,)
    options.setdefault("name", declared.name)
    match declared.format:
        case "kafka":
            first = (declared.place, _needed(options, "topic", declared))
            options["value"] = _codec(options, schema, declared)
        case "postgres":
            first = (declared.place, _needed(options, "table", declared))
        case "debezium":
            if "topic" in options:
                first, options["servers"] = (), declared.place
            options["schema"] = schema
        case "iceberg" | "delta":
            _no_columns(declared)
        case _:
            options["schema"] = schema
    _refuse_unknown(reader, options, declared.name)
    if "time" not in options and "time" in _names(reader) and not (declared.format in KEYED and declared.key):
        raise PlanError(
            f"'{declared.name}' does not say which column its time is.",
            remedy=f"Write CREATE STREAM {declared.name} FROM {declared.format} '...' (TIME ts).",
        )
    made: Stream = reader(*first, **options)
    return made


def _living(stream: Stream, declared: CreateStream) -> Stream:
    """How long rows live: they stay, unless the statement or the data says otherwise."""
    if declared.key:
        if declared.format in KEYED:
            return stream
        time = str(declared.options["time"])
        return stream.with_columns({time: start()}).latest(list(declared.key))
    if any(name in declared.options for name in ("end", "kind", "new_end", "shape")):
        if declared.lifetime != "default":
            raise PlanError(
                f"'{declared.name}' has its lifetimes in its data, and LIFETIME says others.",
                remedy="Leave LIFETIME out, and rows live until END; or END, and they live as LIFETIME says.",
            )
        return stream
    match declared.lifetime:
        case "point":
            return stream
        case "default" | "forever":
            return stream.forever()
        case length:
            return stream.set_duration(length)


def static_table(declared: CreateTable) -> Stream:
    """CREATE TABLE as rows that always hold."""
    options: dict[str, Any] = {
        "format": declared.format,
        "schema": _schema(declared.columns),
        **declared.options,
    }
    _refuse_unknown(table_of, options, declared.name)
    return table_of(declared.place, name=declared.name, **options)


def sink_of(declared: CreateSink) -> Sink:
    """CREATE SINK as a sink."""
    options: dict[str, Any] = dict(declared.options)
    match declared.format:
        case "console":
            return as_sink("console", "script")
        case "parquet":
            _refuse_unknown(lambda path: path, options, declared.name)
            return as_sink(declared.place, "script")
        case "kafka":
            topic = _needed(options, "topic", declared)
            if declared.key:
                options |= {"key": list(declared.key), "records": "upserts"}
            form = options.pop("format", None)
            if form not in (None, "json"):
                options["value"] = _codec({"format": form}, None, declared)
            _refuse_unknown(kafka, options, declared.name)
            return kafka(declared.place, topic, **options)
        case form:
            make = getattr(tables, "parquet" if form == "table" else form)
            _refuse_unknown(make, options, declared.name)
            return make(declared.place, **options)  # type: ignore[no-any-return]


def function_of(declared: CreateFunction) -> Any:
    """CREATE FUNCTION as what a module has under a name: a udf, a uda, or a function of streams."""
    module, _, name = declared.target.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PlanError(
            f"there is no '{declared.target}' in Python: {error}.",
            remedy="Write CREATE FUNCTION name AS 'module.function', of a module that can be imported.",
        ) from None


def _codec(options: dict[str, Any], schema: pa.Schema | None, declared: CreateStream | CreateSink) -> Any:
    form = str(options.pop("format", "json")).lower()
    if form not in CODECS:
        raise PlanError(f"there is no format '{form}' of records.", remedy=closest(form, CODECS))
    taken = {n: options.pop(n) for n in list(options) if n in _names(CODECS[form])}
    if schema is not None:
        taken["schema"] = schema
    elif form == "json" and isinstance(declared, CreateStream):
        raise PlanError(
            f"'{declared.name}' does not say which columns its records have.",
            remedy=f"Write CREATE STREAM {declared.name} (item BIGINT, ...) FROM kafka ...",
        )
    return CODECS[form](**taken)


def _schema(columns: Sequence[tuple[str, str]]) -> pa.Schema | None:
    return pa.schema([(name, _type(written)) for name, written in columns]) if columns else None


def _type(written: str) -> pa.DataType:
    """A type as SQL writes it: VARCHAR is a text, and the digits of TIMESTAMP(3) do not matter."""
    plain = re.sub(r"(?i)^(timestamp\w*)\s*\([0-9]\)$", r"\1", written.strip())
    return pa.string() if re.fullmatch(r"(?i)(var)?char(\([0-9]+\))?|text", plain) else as_type(plain)


def _no_columns(declared: CreateStream) -> None:
    if declared.columns:
        raise PlanError(
            f"the columns of '{declared.name}' are those of its table.",
            remedy="Leave the list of columns out.",
        )


def _needed(options: dict[str, Any], name: str, declared: CreateStream | CreateSink) -> str:
    if name not in options:
        raise PlanError(
            f"'{declared.name}' does not say which {name}.", remedy=f"Write ({name.upper()} '...') behind it."
        )
    return str(options.pop(name))


def _names(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in list(parameters)[1:] if p.kind in named]  # the first is where it lies
    gathers = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    return [*names, *(Events.__annotations__ if gathers else ())]


def _refuse_unknown(function: Callable[..., Any], options: Mapping[str, Any], name: str) -> None:
    known = _names(function)
    for option in options:
        if option not in known:
            raise PlanError(f"'{name}' has no option {option.upper()}.", remedy=closest(option, known))
