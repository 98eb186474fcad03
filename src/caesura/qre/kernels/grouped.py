"""The table-driven kernel of a map inside a pattern: keys in groups, a group for each thing it is inside of.

A map inside the pattern of a stream has one group; inside another map, or inside a partition, it has one
for each key of that, and one for what keys share that have seen synchronisation items only. What happens
to the keys around it comes as events: an item that one of them reads (after it began anew, if it is
FRESH), a COPY of another group's state, a DROP of all there is. What happens to its own keys
is logged as events for the maps inside it.

The first ``base`` rows of the registers are what the keys of each group share, the others are the keys'.
"""

from __future__ import annotations

from typing import Any

from caesura.kernels import kernel, small_kernel
from caesura.qre.kernels.map import DEAD, SHARED
from caesura.qre.kernels.table import fill, interpret

Array = Any
ITEM, FRESH, COPY, DROP, SKIP = 0, 1, 2, 3, 4
"""What may happen to a group; what is to be skipped does not concern it."""
DONE, NARROW, KEYED, UNSEEN = 0, 1, 2, 3
"""Why a call ended: all read; no room; a group with keys of its own is to be copied; a state is not known."""


@small_kernel
def copy_row(ri: Array, rf: Array, rings: Array, source: int, target: int) -> None:
    """One row's state and registers for another."""
    for j in range(ri.shape[1]):
        ri[target, j] = ri[source, j]
    for j in range(rf.shape[1]):
        rf[target, j] = rf[source, j]
    for r in range(rings.shape[0]):
        for j in range(rings.shape[2]):
            rings[r, target, j] = rings[r, source, j]


@small_kernel
def log_event(inner_events: Array, meta: Array, kind: int, item: int, inner_group: int, more: int) -> None:
    """Writes down what the maps inside have to know."""
    at = meta[2]
    inner_events[at, 0] = kind
    inner_events[at, 1] = item
    inner_events[at, 2] = inner_group
    inner_events[at, 3] = more
    meta[2] = at + 1


@kernel
def run_grouped(
    lo: int,
    hi: int,
    kinds: Array,
    items: Array,
    groups: Array,
    slots: Array,
    starts: Array,
    wants: Array,
    letters: Array,
    synced: Array,
    columns_i: Array,
    columns_f: Array,
    consts: Array,
    code: Array,
    steps: Array,
    restart: Array,
    void: int,
    base: int,
    ri: Array,
    rf: Array,
    rings: Array,
    real: Array,
    si: Array,
    sf: Array,
    out_place: int,
    first_key: Array,
    next_key: Array,
    key_count: Array,
    meta: Array,
    out_slot: Array,
    out_i: Array,
    out_f: Array,
    maps: Array,
    inner_events: Array,
    log: Array,
    log_i: Array,
    log_f: Array,
    cursor: Array,
) -> int:
    """Feeds events; gives the one reached. ``slots`` are keys' numbers, or the group that is copied.

    ``meta`` holds (answers, maps, inner_events, why it ended, the state that is not known); ``maps`` receives
    (event, first answer). ``void`` is the state without threads. A group's keys are a list: ``first_key``,
    then ``next_key``; ``key_count`` is its length.
    """
    nci = consts[0]
    ncf = consts[1]
    nri = ri.shape[1] - 1
    nrf = rf.shape[1]
    deep = len(inner_events) > 0
    grows = consts[2] > 0
    meta[3] = DONE
    for e in range(lo, hi):
        kind = kinds[e]
        if kind == SKIP:
            continue
        g = groups[e]
        i = items[e]
        room = key_count[g] + 2
        if meta[0] + room > len(out_slot) or (deep and meta[2] + 4 * room > len(inner_events)):
            meta[3] = NARROW
            return e
        whole = 2 * g
        if kind != ITEM:
            n = first_key[g]
            while n >= 0:
                ri[base + n, 0] = SHARED
                if deep:
                    inner_group = 2 * n + 1
                    log_event(inner_events, meta, 3, 0, inner_group, 0)
                n = next_key[n]
            first_key[g] = -1
            key_count[g] = 0
            ri[g, 0] = DEAD
            if deep:
                log_event(inner_events, meta, 3, 0, whole, 0)
        if kind == DROP:
            continue
        if kind == COPY:
            s = slots[e]
            copy_row(ri, rf, rings, s, g)
            if deep:
                source = 2 * s
                log_event(inner_events, meta, 2, 0, whole, source)
            if first_key[s] >= 0:
                meta[3] = KEYED
                return e
            continue
        if grows:
            n = first_key[g]
            k = g
            if not synced[i] and not starts[e]:
                n = -1
            while True:
                if ri[k, 0] >= 0 and steps[ri[k, 0], 0, 0] == -3:
                    meta[3] = UNSEEN
                    meta[4] = ri[k, 0]
                    return e
                if n < 0:
                    break
                k = base + n
                n = next_key[n]
            if not synced[i]:
                k = base + slots[e]
                if ri[k, 0] >= 0 and steps[ri[k, 0], 0, 0] == -3:
                    meta[3] = UNSEEN
                    meta[4] = ri[k, 0]
                    return e
        if starts[e]:
            ri[g, 0] = 0 if ri[g, 0] < 0 else restart[ri[g, 0]]
            n = first_key[g]
            while n >= 0:
                k = base + n
                ri[k, 0] = 0 if ri[k, 0] < 0 else restart[ri[k, 0]]
                n = next_key[n]
        bring = wants[e]
        if bring:
            maps[meta[1], 0] = e
            maps[meta[1], 1] = meta[0]
            meta[1] += 1
        sync = synced[i]
        k = g
        n = first_key[g]
        inner_group = whole
        if not sync:
            own = slots[e]
            k = base + own
            n = -1
            inner_group = 2 * own + 1
            if ri[k, 0] == SHARED:
                if ri[g, 0] < 0:
                    continue
                copy_row(ri, rf, rings, g, k)
                next_key[own] = first_key[g]
                first_key[g] = own
                key_count[g] += 1
                if deep:
                    log_event(inner_events, meta, 2, 0, inner_group, whole)
        for j in range(columns_i.shape[0]):
            si[nci + nri + j] = columns_i[j, i]
        for j in range(columns_f.shape[0]):
            sf[ncf + nrf + j] = columns_f[j, i]
        letter = letters[i]
        while True:
            state = ri[k, 0]
            if state >= 0:
                after = steps[state, letter, 0]
                if after >= 0:
                    if deep:
                        cursor[2] = meta[2]
                        log_event(inner_events, meta, 0, i, inner_group, state)
                    fill(nci, ncf, si, sf, ri, rf, k)
                    begin = steps[state, letter, 1]
                    end = steps[state, letter, 2]
                    interpret(code, begin, end, si, sf, ri, rf, rings, real, k, log, log_i, log_f, cursor)
                    if bring and k >= base and steps[state, letter, 3] == 1:
                        at = meta[0]
                        out_slot[at] = k - base
                        for j in range(out_i.shape[0]):
                            out_i[j, at] = si[out_place + j]
                            out_f[j, at] = sf[out_place + j]
                        meta[0] = at + 1
                if after < 0 or after == void:
                    after = DEAD
                    if deep:
                        log_event(inner_events, meta, 3, 0, inner_group, 0)
                ri[k, 0] = after
            if n < 0:
                break
            k = base + n
            inner_group = 2 * n + 1
            n = next_key[n]
        if not sync:
            continue
        first = ri[g, 0]
        n = first_key[g]
        before = -1
        while n >= 0:
            k = base + n
            following = next_key[n]
            same = ri[k, 0] == first and not (deep and first > 0)
            if same and first > 0:
                for c in range(ri.shape[1]):
                    same = same and ri[k, c] == ri[g, c]
                for c in range(rf.shape[1]):
                    same = same and rf[k, c] == rf[g, c]
                for r in range(rings.shape[0]):
                    for c in range(rings.shape[2]):
                        same = same and rings[r, k, c] == rings[r, g, c]
            if same:
                ri[k, 0] = SHARED
                key_count[g] -= 1
                if before < 0:
                    first_key[g] = following
                else:
                    next_key[before] = following
                if deep:
                    inner_group = 2 * n + 1
                    log_event(inner_events, meta, 3, 0, inner_group, 0)
            else:
                before = n
            n = following
    return hi


__all__ = ["COPY", "DONE", "DROP", "FRESH", "ITEM", "KEYED", "NARROW", "SKIP", "UNSEEN", "run_grouped"]
