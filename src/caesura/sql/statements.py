"""A script as statements: sources, tables, views, sinks and functions that it declares, and what it asks for.

>>> [one] = statements("CREATE STREAM bids FROM parquet 'bids' (TIME ts DELAY INTERVAL '30' SECOND)")
>>> one.name, one.format, one.options["time"], one.lifetime
('bids', 'parquet', 'ts', 'default')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from caesura.plan import Duration
from caesura.sql.text import QueryDialect, QueryText, not_read, query_text
from caesura.sql.tokens import Value, Words

Asked = Literal["select", "explain", "check", "preview"]
Intention = Literal["assume", "desire", "demand"]
READERS = ("PARQUET", "CSV", "JSON", "KAFKA", "DELTA", "ICEBERG", "POSTGRES", "DEBEZIUM")
TABLES = ("PARQUET", "CSV", "JSON")
SINKS = ("PARQUET", "TABLE", "DELTA", "ICEBERG", "DUCKDB", "POSTGRES", "KAFKA", "CONSOLE")


@dataclass(frozen=True)
class DeclaredPlace:
    """What lies at a place: its name, its format, where it is, and how it is read or written."""

    name: str
    format: str
    place: str
    line: int
    columns: tuple[tuple[str, str], ...] = ()
    """Their names, and their types as written."""
    options: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateTable(DeclaredPlace):
    """CREATE TABLE name (columns) FROM format 'place' (options): rows without times."""


@dataclass(frozen=True)
class CreateStream(DeclaredPlace):
    """CREATE STREAM name (columns) FROM format 'place' (options) LIFETIME ... | KEY (...)."""

    delay: Duration | None = None
    lifetime: Duration | Literal["default", "forever", "point"] = "default"
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateSink(DeclaredPlace):
    """CREATE SINK name TO format 'place' (options) KEY (...)."""

    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateView:
    """CREATE VIEW name AS query."""

    name: str
    query: QueryText
    line: int


@dataclass(frozen=True)
class CreateFunction:
    """CREATE FUNCTION name AS 'module.name'."""

    name: str
    target: str
    line: int


@dataclass(frozen=True)
class InsertInto:
    """INSERT INTO sink query."""

    sink: str
    query: QueryText
    line: int


@dataclass(frozen=True)
class Ask:
    """A query by itself, or what EXPLAIN, CHECK and PREVIEW say of one."""

    what: Asked
    query: QueryText
    line: int


@dataclass(frozen=True)
class Give:
    """ASSUME, DESIRE or DEMAND name WHERE condition: feedback to what a view or sink is computed by."""

    intention: Intention
    target: str
    where: exp.Expr | None
    line: int


@dataclass(frozen=True)
class SetOption:
    """SET name = value."""

    name: str
    value: Value
    line: int


@dataclass(frozen=True)
class Drop:
    """DROP VIEW [IF EXISTS] name, and the first half of CREATE OR REPLACE."""

    name: str
    line: int
    may_lack: bool = False


Statement = (
    CreateStream
    | CreateTable
    | CreateSink
    | CreateView
    | CreateFunction
    | InsertInto
    | Ask
    | Give
    | SetOption
    | Drop
)


def statements(text: str) -> list[Statement]:
    """All statements of a script, in order."""
    try:
        tokens = QueryDialect().tokenize(text)
    except TokenError as error:
        raise not_read(error, text) from None
    made, part = [], list[Token]()
    for token in [*tokens, None]:
        if token is not None and token.token_type != TokenType.SEMICOLON:
            part.append(token)
        elif part:
            made += _statements(part, text)
            part = []
    return made


def _statements(part: list[Token], text: str) -> list[Statement]:
    """One statement; of CREATE OR REPLACE two."""
    if not Words(part, text).sees("CREATE", "OR", "REPLACE"):
        return [_statement(Words(part, text))]
    made = _statement(Words([part[0], *part[3:]], text))
    return [Drop(made.name, made.line, may_lack=True), made] if hasattr(made, "name") else [made]


def _statement(words: Words) -> Statement:
    line = int(words.tokens[0].line)
    for begins, read in _READ:
        if words.take(*begins):
            made = read(words, line)
            if not words.done:
                raise words.wrong("the statement ends before this", "Put a semicolon between statements.")
            return made
    if words.sees("SELECT") or words.sees("WITH") or words.sees("(") or words.sees("VALUES"):
        return Ask("select", _query(words), line)
    if words.take("CREATE"):
        words.one_of([begins[1] for begins, _ in _READ if begins[0] == "CREATE"], "thing to CREATE")
    words.one_of(["SELECT", *dict.fromkeys(begins[0] for begins, _ in _READ)], "statement")
    raise words.wrong("this is no statement")  # INSERT by itself


def _create_stream(words: Words, line: int) -> CreateStream:
    declared = _place(words, "the stream", "FROM", READERS, "source")
    delay = declared["options"].pop("delay", None)
    lifetime: Duration | Literal["default", "forever", "point"] = "default"
    key: tuple[str, ...] = ()
    if words.take("LIFETIME"):
        if words.take("FOR"):
            lifetime = words.length()
        else:
            lifetime = "forever" if words.one_of(("FOREVER", "POINT"), "lifetime") == "FOREVER" else "point"
    elif words.take("KEY"):
        key = words.names("a column")
    return CreateStream(**declared, line=line, delay=delay, lifetime=lifetime, key=key)


def _create_table(words: Words, line: int) -> CreateTable:
    return CreateTable(**_place(words, "the table", "FROM", TABLES, "format of a table"), line=line)


def _create_sink(words: Words, line: int) -> CreateSink:
    declared = _place(words, "the sink", "TO", SINKS, "sink")
    return CreateSink(**declared, line=line, key=words.names("a column") if words.take("KEY") else ())


def _place(words: Words, what: str, between: str, formats: Sequence[str], called: str) -> dict[str, Any]:
    """name (columns) FROM format 'place' (options); a sink has TO, and no columns."""
    name = words.name(what)
    columns = _columns(words) if between == "FROM" else ()
    words.need(between)
    form = words.one_of(formats, called).lower()
    place = "" if form == "console" else words.string("where it lies")
    return {"name": name, "format": form, "place": place, "columns": columns, "options": _options(words)}


def _create_view(words: Words, line: int) -> CreateView:
    name = words.name("the view")
    words.need("AS")
    return CreateView(name, _query(words), line)


def _create_function(words: Words, line: int) -> CreateFunction:
    name = words.name("the function")
    words.need("AS")
    target = words.string("where it is, as 'module.function'")
    words.take("LANGUAGE", "PYTHON")
    return CreateFunction(name, target, line)


def _insert(words: Words, line: int) -> InsertInto:
    return InsertInto(words.name("a sink"), _query(words), line)


def _ask(what: Asked) -> Callable[[Words, int], Ask]:
    return lambda words, line: Ask(what, _query(words), line)


def _give(intention: Intention) -> Callable[[Words, int], Give]:
    def read(words: Words, line: int) -> Give:
        target = words.name("a view or a sink")
        if intention == "demand" and words.done:
            return Give(intention, target, None, line)
        words.need("WHERE")
        tokens, words.at = words.rest, len(words.tokens)
        try:
            [where] = QueryDialect().parser().parse_into(exp.Condition, tokens, words.text)
        except (ParseError, ValueError) as error:
            raise not_read(error, words.text) from None
        return Give(intention, target, where, line)

    return read


def _drop(words: Words, line: int) -> Drop:
    words.one_of([begins[1] for begins, _ in _READ if begins[0] == "CREATE"], "thing to DROP")
    may_lack = words.take("IF", "EXISTS")
    return Drop(words.name("what is dropped"), line, may_lack)


def _set(words: Words, line: int) -> SetOption:
    name = words.name("a setting").lower()
    words.need("=")
    return SetOption(name, words.value(), line)


_READ: tuple[tuple[tuple[str, ...], Callable[[Words, int], Statement]], ...] = (
    (("CREATE", "STREAM"), _create_stream),
    (("CREATE", "TABLE"), _create_table),
    (("CREATE", "SINK"), _create_sink),
    (("CREATE", "VIEW"), _create_view),
    (("CREATE", "FUNCTION"), _create_function),
    (("DROP",), _drop),
    (("INSERT", "INTO"), _insert),
    (("EXPLAIN",), _ask("explain")),
    (("CHECK",), _ask("check")),
    (("PREVIEW",), _ask("preview")),
    (("ASSUME",), _give("assume")),
    (("DESIRE",), _give("desire")),
    (("DEMAND",), _give("demand")),
    (("SET",), _set),
)


def _query(words: Words) -> QueryText:
    """The rest of a statement, which is a query; a name alone is all that it holds."""
    tokens, words.at = words.rest, len(words.tokens)
    return query_text(tokens, words.text)


def _columns(words: Words) -> tuple[tuple[str, str], ...]:
    """(name TYPE, ...), if it is there."""
    if not words.take("("):
        return ()
    found = []
    while True:
        name, start, depth = words.name("a column"), words.at, 0
        while not words.done and (depth or not (words.sees(",") or words.sees(")"))):
            depth += (words.sees("(") or words.sees("<")) - (words.sees(")") or words.sees(">"))
            words.at += 1
        if start == words.at:
            raise words.wrong(f"expected the type of '{name}'", "Write (item BIGINT, price DOUBLE).")
        found.append((name, words.source(start)))
        if not words.take(","):
            words.need(")")
            return tuple(found)


def _options(words: Words) -> dict[str, Value]:
    """(TIME ts DELAY INTERVAL '30' SECOND, UNTIL latest), if it is there."""
    made: dict[str, Value] = {}
    if not words.take("("):
        return made
    while not words.take(")"):
        name = words.name("an option").lower()
        words.take("=")
        made[name] = words.length() if name == "delay" else words.value()
        words.take(",")
    return made
