"""The table-driven kernel of map_collect: keyed items go to one key, synchronisation items to all.

Row 0 of the registers is the state that all keys share that have seen synchronisation items only;
a key in that state has -2 as its state number and takes a copy when its first own item comes.
"""

from __future__ import annotations

from typing import Any

from caesura.kernels import kernel, small_kernel
from caesura.qre.kernels.table import fill, interpret

Array = Any
SHARED = -2
DEAD = -1


@small_kernel
def adopt(ri: Array, rf: Array, rings: Array, k: int) -> None:
    """Gives a key its own copy of the shared state."""
    for j in range(ri.shape[1]):
        ri[k, j] = ri[0, j]
    for j in range(rf.shape[1]):
        rf[k, j] = rf[0, j]
    for r in range(rings.shape[0]):
        for j in range(rings.shape[2]):
            rings[r, k, j] = rings[r, 0, j]


@kernel
def settle(ri: Array, rf: Array, rings: Array, active: Array, count: int, again: bool) -> int:
    """After a synchronisation item: keys that are as the shared state join it; all do, to begin ``again``.

    Where no thread has read anything, no register counts.
    """
    first = ri[0, 0]
    still_active = 0
    for j in range(count):
        k = active[j]
        same = again or ri[k, 0] == first
        if same and not again and first > 0:
            for c in range(ri.shape[1]):
                same = same and ri[k, c] == ri[0, c]
            for c in range(rf.shape[1]):
                same = same and rf[k, c] == rf[0, c]
            for r in range(rings.shape[0]):
                for c in range(rings.shape[2]):
                    same = same and rings[r, k, c] == rings[r, 0, c]
        if same:
            ri[k, 0] = SHARED
        else:
            active[still_active] = k
            still_active += 1
    if again:
        ri[0, 0] = 0
    return still_active


@kernel
def run_collect(
    lo: int,
    hi: int,
    slots: Array,
    letters: Array,
    synced: Array,
    columns_i: Array,
    columns_f: Array,
    consts: Array,
    code: Array,
    steps: Array,
    ri: Array,
    rf: Array,
    rings: Array,
    real: Array,
    si: Array,
    sf: Array,
    out_place: int,
    rate: Array,
    active: Array,
    meta: Array,
    out_row: Array,
    out_slot: Array,
    out_i: Array,
    out_f: Array,
    maps: Array,
    none: Array,
    nothing: Array,
) -> int:
    """Feeds rows; gives the row reached, which is short of ``hi`` when answers would not fit.

    ``meta`` holds (active keys, rate's state, answers, maps, -, 1 + a state that is not known yet);
    ``maps`` receives (row, first answer).
    """
    nci = consts[0]
    ncf = consts[1]
    nri = ri.shape[1] - 1
    nrf = rf.shape[1]
    no_args = none[0]
    no_cursor = none[1]
    grows = consts[2] > 0
    for i in range(lo, hi):
        sync = synced[i]
        first = slots[i]
        last = first + 1
        bring = False
        if grows:
            for at in range(-1, meta[0] if sync else 0):
                k = 0
                if not sync and ri[first, 0] != SHARED:
                    k = first
                elif at >= 0:
                    k = active[at]
                if ri[k, 0] >= 0 and steps[ri[k, 0], 0, 0] == -3:
                    meta[5] = ri[k, 0] + 1
                    return i
        if sync:
            if meta[2] + meta[0] > len(out_row) or meta[3] >= len(maps):
                return i
            first = -1
            last = meta[0]
            if meta[1] >= 0:
                meta[1] = rate[meta[1], 0]
                bring = meta[1] >= 0 and rate[meta[1], 1] > 0
            if bring:
                maps[meta[3], 0] = i
                maps[meta[3], 1] = meta[2]
                meta[3] += 1
        elif ri[first, 0] == SHARED:
            adopt(ri, rf, rings, first)
            active[meta[0]] = first
            meta[0] += 1
        for j in range(columns_i.shape[0]):
            si[nci + nri + j] = columns_i[j, i]
        for j in range(columns_f.shape[0]):
            sf[ncf + nrf + j] = columns_f[j, i]
        for at in range(first, last):
            k = at
            if sync:
                k = 0 if at < 0 else active[at]
            state = ri[k, 0]
            if state < 0:
                continue
            letter = letters[i]
            after = steps[state, letter, 0]
            if after < 0:
                ri[k, 0] = DEAD
                continue
            fill(nci, ncf, si, sf, ri, rf, k)
            begin = steps[state, letter, 1]
            end = steps[state, letter, 2]
            interpret(code, begin, end, si, sf, ri, rf, rings, real, k, none, no_args, nothing, no_cursor)
            ri[k, 0] = after
            if bring and k > 0 and steps[state, letter, 3] == 1:
                n = meta[2]
                out_row[n] = i
                out_slot[n] = k
                for j in range(out_i.shape[0]):
                    out_i[j, n] = si[out_place + j]
                    out_f[j, n] = sf[out_place + j]
                meta[2] = n + 1
        if sync:
            again = bring and rate[meta[1], 1] == 2
            meta[0] = settle(ri, rf, rings, active, meta[0], again)
            if again:
                meta[1] = 0
    return hi
