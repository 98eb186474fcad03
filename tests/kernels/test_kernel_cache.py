"""Machine code on disk is taken only if it was made from the same texts and can be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from caesura.kernels.cache import digest, keyed
from caesura.ops.ordered import find_edges


def held(load: Any) -> Any:
    return SimpleNamespace(
        _cache=SimpleNamespace(_cache_file=SimpleNamespace(_version="1", _load_index=load))
    )


def unreadable() -> dict[str, str]:
    raise AttributeError("Can't get attribute 'Run'")


def test_what_names_a_class_that_is_no_more_counts_as_nothing() -> None:
    machine = held(unreadable)
    keyed(machine, ["caesura.kernels.sums"])
    assert machine._cache._cache_file._load_index() == {}


def test_other_failures_are_not_hidden() -> None:
    def broken() -> dict[str, str]:
        raise PermissionError

    machine = held(broken)
    keyed(machine, ["caesura.kernels.sums"])
    with pytest.raises(PermissionError):
        machine._cache._cache_file._load_index()


def test_the_texts_of_called_kernels_count() -> None:
    from caesura.events.delta import pair_changes
    from caesura.ops.top.sweep import follow_first

    assert follow_first._modules() == {"caesura.ops.top.sweep"}
    assert find_edges._modules() == {"caesura.ops.ordered"}
    assert pair_changes._modules() == {"caesura.events.delta"}
    machine = held(dict)
    keyed(machine, find_edges._modules())
    assert machine._cache._cache_file._version == f"1 {digest(['caesura.ops.ordered'])}"


def test_numba_keeps_its_files_as_we_think() -> None:
    machine: Any = find_edges.compiled()
    assert digest(["caesura.ops.ordered"]) in machine._cache._cache_file._version
