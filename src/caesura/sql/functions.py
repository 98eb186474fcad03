"""Functions of users in a query: udfs in expressions, udas among aggregates, functions of streams in FROM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from caesura.api.stream import Stream
from caesura.errors import PlanError
from caesura.misuse import shown
from caesura.udm import Module, find, names

META = "function"


class UserFunction:
    """A function on its way through copies of a query, always the same."""

    def __init__(self, call: Callable[..., Any], *, aggregates: bool) -> None:
        self.call = call
        self.aggregates = aggregates

    def __deepcopy__(self, memo: object) -> UserFunction:
        return self


def with_functions(tree: exp.Query, functions: Mapping[str, Any]) -> exp.Query:
    """A query each of whose calls knows the function that it is of, where that is a user's."""
    known = {name.lower(): one for name, one in functions.items()}
    registered = {name.lower(): name for name in names()}
    for node in tree.find_all(exp.Anonymous):
        name = node.name.lower()
        if name in known:
            node.meta[META] = _wrapped(name, known[name])
        elif name in registered and find(registered[name]).kind == "uda":
            node.meta[META] = _wrapped(name, find(registered[name]))
    return tree


def _wrapped(name: str, given: Any) -> UserFunction:
    if isinstance(given, Module) and given.kind == "uda":
        return UserFunction(given, aggregates=True)
    if isinstance(given, Module) or not callable(given):
        raise PlanError(
            f"'{name}' is {shown(given)}, which no query can call.",
            remedy="Give a udf, a uda, or a function of a stream: "
            f"{name}=lambda s: s.tumbling('1m').apply(module).",
        )
    return UserFunction(given, aggregates=False)


def user_function(node: exp.Expr) -> UserFunction | None:
    """The user's function that a call is of."""
    found = node.meta.get(META) if isinstance(node, exp.Anonymous) else None
    return found if isinstance(found, UserFunction) else None


def called_on_streams(function: UserFunction, name: str, streams: list[Stream]) -> Stream:
    """What a function of streams gives; refuses what is none."""
    made = function.call(*streams)
    if not isinstance(made, Stream):
        raise PlanError(
            f"{name}(...) gave {type(made).__name__}, and in FROM a stream is wanted.",
            remedy="Let it return the stream.",
        )
    return made
