"""Numbers and lengths of time beyond all that there is: refused by name, or taken for what they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from api_misuse import functions, good, used
from depth import DEPTH

from caesura import CaesuraError

LARGE = (2**70, -(2**63), 2**62, *((-(2**70), 2**63, 2**63 - 1, 2**60) if DEPTH > 1 else ()))
CALLS = functions()


def counted(call: Callable[..., Any]) -> list[str]:
    """The parameters that take a length of time or a whole number."""
    kinds = {p.name: str(p.annotation) for p in inspect.signature(call).parameters.values()}
    return [n for n, kind in kinds.items() if "Duration" in kind or kind.split(" ")[0] == "int"]


def called(call: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Calls with some arguments, and with good ones for the others that there must be."""
    args, more = [], dict(given)
    if "timeout" in inspect.signature(call).parameters:
        more.setdefault("timeout", "10ms")  # nobody is there to answer
    for p in inspect.signature(call).parameters.values():
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) or (p.default is not p.empty and p.name not in given):
            continue
        value = more.pop(p.name, None) if p.name in given else good(p.name)[0]
        if p.kind is p.KEYWORD_ONLY or p.default is not p.empty:
            more[p.name] = value
        else:
            args.append(value)
    return call(*args, **more)


@pytest.mark.thin(5)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in sorted(CALLS) if counted(CALLS[name]())])
def test_what_is_beyond_all_time_is_refused_by_name(name: str) -> None:
    for parameter in counted(CALLS[name]()):
        for value in LARGE:
            try:
                used(called(CALLS[name](), {parameter: value}))
            except CaesuraError as error:
                assert error.remedy and "does not understand" not in error.problem, (parameter, value)
