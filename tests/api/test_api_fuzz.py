"""Everything that a user can call, called wrongly: what leaves it is one of our errors, with a remedy."""

from __future__ import annotations

from random import Random

import pytest
from api_misuse import arguments, functions, used
from depth import DEPTH

from caesura import CaesuraError

ROUNDS = 2 if DEPTH == 1 else 5 * DEPTH
CALLS = functions()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_what_is_called_wrongly_says_so_in_our_words(name: str) -> None:
    for number in range(ROUNDS):
        random = Random(f"{name}/{number}")
        call = CALLS[name]()
        args, more = arguments(call, random)
        try:
            used(call(*args, **more))
        except CaesuraError as error:
            assert error.problem and error.remedy, (name, number)
        except Exception as error:
            told = f"{name} round {number}: {type(error).__name__}: {error}"
            raise AssertionError(told) from error


LARGE = (2**70, -(2**70), 2**63, -(2**63), 2**63 - 1, 2**62, 2**60)


def counted(name: str) -> list[str]:
    """The parameters that take a length of time or a whole number."""
    parameters = inspect.signature(functions()[name]).parameters.values()
    kinds = {p.name: str(p.annotation) for p in parameters}
    return [n for n, kind in kinds.items() if "Duration" in kind or kind.split(" ")[0] == "int"]


@pytest.mark.parametrize("name", [name for name in NAMES if counted(name)])
def test_what_is_beyond_all_time_is_refused_by_name(name: str) -> None:
    for parameter in counted(name):
        for value in LARGE:
            required = [
                p.name for p in inspect.signature(functions()[name]).parameters.values()
                if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.kind is not p.VAR_POSITIONAL
            ]  # fmt: skip
            given = {n: good(n)[0] for n in required} | {parameter: value}
            positional = {n: given.pop(n) for n in list(given) if n in required}
            try:
                for _ in used(bound(functions()[name], positional, given)):
                    pass
            except CaesuraError as error:
                assert error.remedy and "does not understand" not in error.problem, (parameter, value)


def bound(call: Callable[..., Any], positional: dict[str, Any], given: dict[str, Any]) -> Any:
    """Calls with arguments by position where they may only be so."""
    kinds = inspect.signature(call).parameters
    first = [v for n, v in positional.items() if kinds[n].kind is not kinds[n].KEYWORD_ONLY]
    more = {n: v for n, v in positional.items() if kinds[n].kind is kinds[n].KEYWORD_ONLY}
    return call(*first, **more, **given)
