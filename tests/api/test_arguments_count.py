"""No argument of a public call is without effect: it is read, and a word that it does not know is refused."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FunctionType, UnionType
from typing import Any

import pyarrow as pa
import pytest
from api_misuse import FOLDER, functions, good, stream, used
from public_calls import public_functions

import caesura as cz
from caesura import CaesuraError, col
from caesura.misuse import _hints

NONSENSE = "nonsense"
PUBLIC = public_functions()
CONTRACTS = (
    "caesura.plan.node.Node.",
    "caesura.io.sinks.protocol.",
    "caesura.qre.",
    "caesura.runtime.sinks.",
)
"""What others implement: a default need not read what it is given."""
SPARK_CALLS_THEM = ("caesura.spark.host.listening.",)


def parameters(function: FunctionType) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def test_every_argument_of_a_public_call_is_read_in_its_body() -> None:
    looked_at, unread = 0, []
    for name, function in PUBLIC.items():
        if name.startswith((*CONTRACTS, *SPARK_CALLS_THEM)):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError):
            continue  # made by a decorator: there is no text of it
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        looked_at += len(parameters(function))
        unread += [f"{name}({one})" for one in parameters(function) if one not in read]
    assert unread == [] and looked_at > 1200


def words(hint: Any) -> tuple[str, ...]:
    """The words of a closed set; none where anything else may be given as text too."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return tuple(part for part in parts if isinstance(part, str))
    if origin in (typing.Union, UnionType):
        return () if str in parts else tuple(word for part in parts for word in words(part))
    return ()


def closed() -> dict[str, tuple[str, str]]:
    """Calls and their arguments that know some words alone, each function once."""
    found: dict[str, tuple[str, str]] = {}
    for name, make in sorted(functions().items()):
        function = make()
        plain = inspect.unwrap(getattr(function, "__func__", function))
        hints = _hints(plain) if isinstance(plain, FunctionType) else {}
        for one, hint in hints.items():
            if one != "return" and words(hint):
                found.setdefault(f"{plain.__module__}.{plain.__qualname__}.{one}", (name, one))
    return found


BEHIND_A_BROKER = ("read.kafka_changes.late", "read.debezium.late")
"""What is looked at where the source is made, as of every other source, once its broker has answered."""
CLOSED = {label: call for label, call in closed().items() if not label.endswith(BEHIND_A_BROKER)}


def tried(name: str, argument: str, seed: int) -> str:
    """What a call with a word that it does not know says; nothing where it takes it."""
    call, random = functions()[name](), Random(f"{name}/{argument}/{seed}")
    args: list[Any] = []
    more: dict[str, Any] = {argument: NONSENSE}
    for parameter in inspect.signature(call).parameters.values():
        if parameter.name == argument or parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.VAR_KEYWORD:
            continue
        chosen = random.choice(good(parameter.name))
        if parameter.kind is parameter.KEYWORD_ONLY:
            more[parameter.name] = chosen
        else:
            args.append(chosen)
    return said(lambda: used(call(*args, **more)))


def said(call: Callable[[], Any]) -> str:
    """What a call is refused with; nothing where it is not."""
    try:
        call()
    except CaesuraError as error:
        return f"{error.problem} {error.remedy}"
    return ""


SCHEMA = pa.schema([("id", pa.int64())])
CDF = pa.table({"id": [1], "_change_type": ["insert"], "_commit_version": [1], "_commit_timestamp": [1]})
CSV = {"time": "id", "schema": SCHEMA}


def kafka(**more: Any) -> Any:
    return cz.read.kafka("127.0.0.1:1", "t", value=cz.json(SCHEMA), time="id", timeout="10ms", **more)


def debezium(**more: Any) -> Any:
    return cz.read.debezium(servers="127.0.0.1:1", topic="t", key="id", schema=SCHEMA, timeout="10ms", **more)


def windows() -> Any:
    return stream().tumbling(5)


def file(ending: str, text: str) -> Path:
    path = FOLDER / f"rows.{ending}"
    path.write_text(text)
    return path


def spread(values: list[float]) -> float:
    return max(values) - min(values)


def module() -> Any:
    return cz.udo(returns={"x": "double"})(spread)


WITH: dict[str, Callable[[Any], Any]] = {
    "feedback_from.intent": lambda word: stream().feedback_from(stream(), on="id", intent=word),
    "feedback_from.leaving": lambda word: stream().feedback_from(stream(), on="id", leaving=word),
    "impute.per": lambda word: stream().impute("v", spread, budget=2, per=word),
    "join_asof.how": lambda word: stream().join_asof(stream().select("id"), on="id", how=word),
    "Windowed.agg.clip": lambda word: windows().agg(n=cz.uda(spread)("v"), clip=word),
    "Windowed.agg.stamp": lambda word: windows().agg(n=cz.uda(spread)("v"), stamp=word),
    "Windowed.apply.clip": lambda word: windows().apply(
        cz.udo(returns={"x": "double"})(spread)("v"), clip=word
    ),
    "Windowed.apply.stamp": lambda word: windows().apply(
        cz.udo(returns={"x": "double"})(spread)("v"), stamp=word
    ),
    "from_cdf.late": lambda word: cz.from_cdf(CDF, key="id", late=word),
    "input_stream.late": lambda word: cz.input_stream("clicks", SCHEMA, late=word),
    "kafka.records": lambda word: cz.kafka("127.0.0.1:1", "t", records=word),
    "read.csv.on_bad": lambda word: cz.read.csv(file("csv", "id\n1\n"), on_bad=word, **CSV),
    "read.json.on_bad": lambda word: cz.read.json(file("jsonl", '{"id": 1}\n'), on_bad=word, **CSV),
    "read.parquet.on_bad": lambda word: cz.read.parquet(file("parquet", "x"), on_bad=word, **CSV),
    **{
        f"read.kafka.{one}": lambda word, one=one: kafka(**{one: word})
        for one in ("start", "until", "on_gap")
    },
    **{
        f"read.kafka_changes.{one}": lambda word, one=one: cz.read.kafka_changes(
            "127.0.0.1:1", "t", SCHEMA, timeout="10ms", **{one: word}
        )
        for one in ("start", "until", "on_gap")
    },
    **{
        f"read.debezium.{one}": lambda word, one=one: debezium(**{one: word})
        for one in ("start", "until", "on_gap", "time")
    },
    "read.postgres.until": lambda word: cz.read.postgres("host=127.0.0.1 port=1", "t", slot="s", until=word),
    "udf.vectorised": lambda word: cz.udf(spread, returns="double", vectorised=word),
    "script.dialect": lambda word: cz.script("SELECT 1", dialect=word),
    "sql.dialect": lambda word: cz.sql("SELECT * FROM s", dialect=word, s=stream()),
}
"""Calls whose other arguments have to be right before their words are looked at."""


@pytest.mark.thin(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", sorted(CLOSED))
def test_a_word_that_an_argument_does_not_know_is_refused_by_name(label: str) -> None:
    short = next((name for name in WITH if label.endswith(f".{name}")), None)
    if short is not None:
        told = [said(lambda: WITH[short](NONSENSE))]
    else:
        told = [tried(*CLOSED[label], seed) for seed in range(4)]
    assert any(NONSENSE in one for one in told), told


def test_many_words_were_tried() -> None:
    assert len(CLOSED) > 50


UNUSED: dict[str, Callable[[], Any]] = {
    "every": lambda: stream().query(every="5s"),
    "take_over": lambda: stream().query(take_over=True),
    "on_change": lambda: stream().query(on_change="continue"),
    "final_rows": lambda: stream().query(final_rows="keep"),
    "final_rows of no rebuild": lambda: stream().query(checkpoint="state", final_rows="keep"),
    "buckets": lambda: cz.fixpoint(stream(), lambda r: r, progress="probing", buckets="all"),
    "max_bytes": lambda: cz.table("t.csv", reload="5m", max_bytes=5),
    "on_gap": lambda: cz.read.debezium("changes", key="id", on_gap="skip"),
    "pattern": lambda: stream().explain(pattern=col("id") == 1),
    "over": lambda: stream().deadline("5s", clock="1s", over="all"),
    "lives": lambda: stream().match(cz.automaton([cz.arc("S", "S")], within=3), lives="until_next"),
}


@pytest.mark.parametrize("name", sorted(UNUSED))
def test_an_argument_that_would_do_nothing_beside_the_others_is_refused(name: str) -> None:
    with pytest.raises(CaesuraError) as told:
        UNUSED[name]()
    assert name.split(" ")[0] in told.value.problem and told.value.remedy


@pytest.mark.parametrize("call", ["query", "run", "preview", "prepare_upgrade"])
def test_an_output_that_is_none_is_refused_by_every_way_in(call: str, tmp_path: Path) -> None:
    given = {"prepare_upgrade": [tmp_path / "state"], "preview": [3]}.get(call, [])
    if "output" in inspect.signature(getattr(stream(), call)).parameters:
        with pytest.raises(CaesuraError, match="wrong"):
            getattr(stream(), call)(*given, output="wrong")
