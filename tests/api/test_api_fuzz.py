"""Everything that a user can call, called wrongly: what leaves it is one of our errors, with a remedy."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from api_misuse import arguments, functions, used
from depth import DEPTH

from caesura import CaesuraError

ROUNDS = 2 if DEPTH == 1 else 5 * DEPTH
CALLS = functions()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call writes where it should not is not written here."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.thin(8)
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
