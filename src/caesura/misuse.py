"""A public call that is called wrongly says so in our words: which argument, what it got, what it wants.

A function's body refuses what it knows to be wrong, in words of its own. Where a call ends in an error of
Python or Arrow instead, the function's annotations tell which argument it was, and the error leaves as one of
ours, with the other as its cause. Where every argument is what it should be, the error came from within, and
is told as that: with the module of ours that it came from, or the path that the machine refused.

>>> @checked
... def halve(number: int, *, name: str = "") -> float:
...     return number / 2
>>> try:
...     halve(name="seven")
... except PlanError as error:
...     print(error.problem)
...     print(error.remedy)
halve(...) missing a required argument: 'number'.
It is called as halve(number, *, name='').
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

import pyarrow as pa

from caesura.errors import (
    CaesuraError,
    PlanError,
    StreamError,
    failure,
    first_words,
    here,
    looked_up,
    our_module,
    users_line,
)

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
FOREIGN = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    OSError,
    MemoryError,
    RuntimeError,
    StopIteration,
    pa.ArrowException,
)
"""Errors that say nothing of the user's call."""
WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None"}
MARK = "__checks_its_arguments__"
_HINTS: dict[Callable[..., Any], dict[str, Any]] = {}
"""The types of arguments of functions that were looked at before."""


def checked(function: F) -> F:
    """The function, with foreign errors made ours."""
    if getattr(function, MARK, False):
        return function
    if not inspect.isfunction(function) and not _has_signature(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CaesuraError:
            raise
        except FOREIGN as error:
            if not _ours(error):
                raise
            signature = inspect.signature(function)
            bound = _bound(function, signature, args, kwargs)
            hints = _hints(function)
            looks = () if isinstance(error, OSError | MemoryError) else bound.arguments.items()
            for name, given in looks:
                _look(function, signature, name, given, hints.get(name), error)
            raise _failure(function, error) from error

    setattr(call, MARK, True)
    return typing.cast(F, call)


def _has_signature(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        return False
    return True


def strict(function: F) -> F:
    """The function, with its arguments looked at before it is called: for what is only used much later."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = _bound(function, signature, args, kwargs)
        hints = _hints(function)
        for name, given in bound.arguments.items():
            word = typing.get_origin(hints.get(name)) is Literal and isinstance(given, str)
            if not word:  # the function knows its words, and says more of them
                _look(function, signature, name, given, hints.get(name))
        return function(*args, **kwargs)

    setattr(call, MARK, True)
    return typing.cast(F, call)


def renamed(**names: str) -> Callable[[F], F]:
    """The function under its new parameter names; the old ones, given first, work and warn.

    >>> @renamed(much="count")
    ... def twice(*, count: int) -> int:
    ...     return 2 * count
    >>> with warnings.catch_warnings(record=True) as warned:
    ...     warnings.simplefilter("always")
    ...     twice(much=3), str(warned[0].message)
    (6, 'twice(much=...) is now twice(count=...).')
    """

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in names.items():
                if old in kwargs:
                    name = _name(function)
                    text = f"{name}({old}=...) is now {name}({new}=...)."
                    warnings.warn(text, DeprecationWarning, stacklevel=3)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return typing.cast(F, call)

    return decorated


def renamed_members(module: str, **names: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` for renamed members; the old names, given first, work and warn."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        text = f"{module}.{name} is now {module}.{names[name]}."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return find


def checked_methods(cls: type[T]) -> type[T]:
    """The class, with its public methods checked, and how it is made."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, types.FunctionType):
            setattr(cls, name, checked(member))
        elif isinstance(member, staticmethod):
            setattr(cls, name, staticmethod(checked(member.__func__)))
    return cls


def _bound(
    function: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """The arguments by name; refuses those that the function does not have."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as mismatch:
        raise _refusal(function, str(mismatch), signature) from None


def _ours(error: BaseException) -> bool:
    """Whether an error comes from this package or from what it called, and from no function of the user."""
    return not users_line(error)


def _name(function: Callable[..., Any]) -> str:
    """What users call it; what makes an object is called like its class."""
    if function.__name__ != "__init__":
        return function.__name__
    return function.__qualname__.split(".")[-2]


def _refusal(function: Callable[..., Any], problem: str, signature: inspect.Signature) -> PlanError:
    mine = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    own = [p.replace(annotation=inspect.Parameter.empty) for p in mine]
    called = signature.replace(parameters=own, return_annotation=inspect.Signature.empty)
    name = _name(function)
    return PlanError(
        f"{name}(...) {problem.rstrip('.')}.",
        remedy=f"It is called as {name}{called}.",
        step=name,
        place=here(),
    )


def _failure(function: Callable[..., Any], error: Exception) -> CaesuraError:
    """The error of a call whose arguments are of the right kinds: what failed is within."""
    if isinstance(error, OSError | MemoryError):
        return failure(error).at(_name(function), here())
    where = our_module(error)
    return StreamError(
        f"{_name(function)}(...) fails{f' in {where}' if where else ''}: {first_words(error)}.",
        remedy="Its arguments are of the kinds that it takes, so this is a fault of ours unless one of them "
        "makes no sense; the whole trace is in this error's cause.",
        step=_name(function),
        place=here(),
    )


def _look(
    function: Callable[..., Any],
    signature: inspect.Signature,
    name: str,
    given: Any,
    wanted: Any,
    cause: BaseException | None = None,
) -> None:
    """Raises for an argument that is not what its annotation says."""
    parameter = signature.parameters[name]
    if wanted is None or name == "self" or given is parameter.default:
        return
    each: Mapping[Any, Any] = {"": given}
    if parameter.kind is parameter.VAR_KEYWORD:
        each = given
    elif parameter.kind is parameter.VAR_POSITIONAL:
        each = dict(enumerate(given))
    for label, value in each.items():
        if not fits(value, wanted):
            which = name if label == "" else label if isinstance(label, str) else f"{name}[{label}]"
            problem = f"{_name(function)}({which}=...) is {shown(value)}; wanted {described(wanted)}."
            refusal = _refusal(function, problem, signature)
            raise PlanError(problem, remedy=refusal.remedy, step=refusal.step, place=refusal.place) from cause


def check_word(given: object, words: Sequence[Any], what: str, step: str) -> None:
    """Refuses a word that is none of some, with those there are.

    >>> check_word("inner", ("inner", "left"), "kind of join", "join")
    """
    looked_up(dict.fromkeys(words), given, what, step)


def shown(value: Any) -> str:
    """A value as it is told in a diagnostic."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value that cannot be shown is told by its type
        text = ""
    plain = text if text and len(text) <= 60 and "\n" not in text and " at 0x" not in text else ""
    return plain or named(type(value).__name__)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """What the annotations say; names that only type checkers know are looked up where they are public."""
    if (known_hints := _HINTS.get(function)) is not None:
        return known_hints
    places = {"Stream": "caesura.api.stream", "Expr": "caesura.expr"}
    loaded = {name: sys.modules[place] for name, place in places.items() if place in sys.modules}
    known = {name: getattr(module, name) for name, module in loaded.items()}
    known["pd"] = types.SimpleNamespace(DataFrame=Any)
    known |= {name: _found(name, place) for name, place in function.__globals__.get("ONLY_TYPES", {}).items()}
    found: dict[str, Any] = {}
    for name, text in function.__annotations__.items():
        one = types.SimpleNamespace(__annotations__={name: text})
        try:
            found |= typing.get_type_hints(one, function.__globals__, known)
        except (NameError, TypeError, AttributeError):
            continue
    if len(found) == len(function.__annotations__):  # else a module that is loaded later has the rest
        _HINTS[function] = found
    return found


def _found(name: str, place: str) -> Any:
    """A type by the module that has it, or by its own dotted name where it is called otherwise there."""
    try:
        return getattr(importlib.import_module(place), name)
    except ModuleNotFoundError:
        module, _, own = place.rpartition(".")
        return getattr(importlib.import_module(module), own)


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what an annotation says, as far as that can be seen without taking it apart."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any or isinstance(wanted, TypeVar | str) or origin is typing.Unpack:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return any(value is part or (type(value) is type(part) and value == part) for part in parts)
    if wanted in (int, float):
        numeric = Integral if wanted is int else Real
        return isinstance(value, numeric) and not isinstance(value, bool)
    if wanted is None or wanted is type(None):
        return value is None
    if origin in (Sequence, list, tuple, AbstractSet, set, frozenset) or (
        isinstance(origin, type) and issubclass(origin, typing.Iterable) and not issubclass(origin, Mapping)
    ):
        return _all_fit(value, parts)
    if origin in (dict, Mapping):
        kinds = isinstance(value, Mapping) and len(parts) == 2
        return kinds and all(fits(key, parts[0]) and fits(one, parts[1]) for key, one in value.items())
    if origin is not None:
        return isinstance(value, origin) if isinstance(origin, type) else True
    return isinstance(value, wanted) if isinstance(wanted, type) and not typing.is_typeddict(wanted) else True


def _all_fit(value: Any, parts: tuple[Any, ...]) -> bool:
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return False
    if not isinstance(value, list | tuple | set | frozenset) or not parts or parts[0] in (Any, Ellipsis):
        return True
    return len(parts) > 1 or all(fits(item, parts[0]) for item in value)


def described(wanted: Any) -> str:
    """An annotation in words."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted in WORDS:
        return WORDS[wanted]
    if origin in (typing.Union, types.UnionType):
        words = list(dict.fromkeys(described(part) for part in parts if part is not type(None)))
        return " or ".join([*words, *(["None"] if type(None) in parts else [])])
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin in (Sequence, list, tuple, Iterable):
        return f"a list of {described(parts[0])}s" if parts and parts[0] in WORDS else "a list"
    if origin in (dict, Mapping):
        plain = not parts or parts[1] is Any
        return "a dict by names" if plain else f"a dict with {described(parts[1])} for each name"
    if origin is Callable:
        return "a function"
    name = getattr(wanted, "__name__", str(wanted))
    return {
        "Expr": "an expression such as col('id')",
        "Stream": "a stream",
        "Aggregate": "an aggregate such as cz.count()",
        "Policy": "a policy such as cz.delay('5s')",
    }.get(name, named(name))


def named(kind: str) -> str:
    """A kind of value with its article."""
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
