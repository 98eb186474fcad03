"""The kernel that runs any compiled query from its tables: letter, state, moves, registers.

One row of registers per key; `registers_i[k, 0]` is the key's state, behind it lie its whole numbers,
and its doubles lie in `registers_f`. The loop stops early when an answer would not fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caesura.kernels import kernel, small_kernel
from caesura.qre.language.whole_numbers import (
    added,
    borrowed,
    both,
    carried,
    less,
    multiplied,
    rest_of,
    size_of,
    spoilt,
    taken,
    too_large,
)

Array = Any


@small_kernel
def interpret(
    code: Array,
    begin: int,
    end: int,
    si: Array,
    sf: Array,
    ri: Array,
    rf: Array,
    rings: Array,
    real: Array,
    k: int,
    log: Array,
    log_i: Array,
    log_f: Array,
    cursor: Array,
) -> None:
    """Runs instructions on the scratch arrays; puts go to the key's registers.

    What is worked out later is logged as (operation, row, first argument), its arguments apart; ``cursor``
    holds (logged, arguments, row, number of the first logged).
    """
    at = begin
    stop = end
    back = -1
    while at < stop or back >= 0:
        if at >= stop:
            at = back
            stop = end
            back = -1
            continue
        op = code[at, 0]
        to = code[at, 1]
        a = code[at, 2]
        b = code[at, 3]
        c = code[at, 4]
        if op == 0:
            si[to] = si[a]
        elif op == 1:
            sf[to] = sf[a]
        elif op == 2:
            sf[to] = float(si[a])
        elif op == 3:
            si[to] = added(si[a], si[b])
        elif op == 4:
            si[to] = taken(si[a], si[b])
        elif op == 5:
            si[to] = multiplied(si[a], si[b])
        elif op == 6:
            si[to] = rest_of(si[a], si[b])
        elif op == 7:
            si[to] = taken(0, si[a])
        elif op == 8:
            si[to] = size_of(si[a])
        elif op == 9:
            si[to] = 1 if si[a] == si[b] else 0
        elif op == 10:
            si[to] = 1 if si[a] < si[b] else 0
        elif op == 11:
            si[to] = 0 if si[a] != 0 else 1
        elif op == 12:
            si[to] = 1 if si[a] != 0 and si[b] != 0 else 0
        elif op == 13:
            si[to] = 1 if si[a] != 0 or si[b] != 0 else 0
        elif op == 14:
            si[to] = si[b] if si[a] != 0 else si[c]
        elif op == 15:
            sf[to] = sf[a] + sf[b]
        elif op == 16:
            sf[to] = sf[a] - sf[b]
        elif op == 17:
            sf[to] = sf[a] * sf[b]
        elif op == 18:
            sf[to] = sf[a] / sf[b] if sf[b] != 0.0 else 0.0
        elif op == 19:
            sf[to] = np.fmod(sf[a], sf[b]) if sf[b] != 0.0 else 0.0
        elif op == 20:
            sf[to] = -sf[a]
        elif op == 21:
            sf[to] = abs(sf[a])
        elif op == 22:
            si[to] = 1 if sf[a] == sf[b] or (sf[a] != sf[a] and sf[b] != sf[b]) else 0
        elif op == 23:
            si[to] = 1 if sf[a] < sf[b] or (sf[b] != sf[b] and sf[a] == sf[a]) else 0
        elif op == 24:
            sf[to] = sf[b] if si[a] != 0 else sf[c]
        elif op == 25:
            sf[to] = np.sqrt(sf[a]) if sf[a] >= 0.0 else np.nan
        elif op == 26:
            sf[to] = np.exp(sf[a])
        elif op == 27:
            si[to] = rings[c, k, si[a]]
        elif op == 28:
            rings[c, k, si[to]] = si[a]
        elif op == 29:
            ri[k, to + 1] = si[a]
        elif op == 30:
            rf[k, to] = sf[a]
        elif op == 31:
            log_i[cursor[1]] = si[a]
            cursor[1] += 1
        elif op == 32:
            log_f[cursor[1]] = sf[a]
            cursor[1] += 1
        elif op == 33:
            log[cursor[0], 0] = a
            log[cursor[0], 1] = cursor[2]
            log[cursor[0], 2] = cursor[1] - b
            si[to] = cursor[3] + cursor[0]
            cursor[0] += 1
        elif op == 34:
            sf[to] = real[c, k, si[a]]
        elif op == 35:
            real[c, k, si[to]] = sf[a]
        elif op == 38:
            for j in range(rings.shape[2]):
                rings[to, k, j] = rings[a, k, j]
        elif op == 39:
            back = at + 1
            at = to - 1
            stop = a
        elif op == 40:
            si[to] = carried(si[a], si[b])
        elif op == 41:
            si[to] = borrowed(si[a], si[b])
        elif op == 42:
            si[to] = too_large(si[a], si[b])
        elif op == 43:
            si[to] = both(si[a], si[b], si[c])
        elif op == 44:
            si[to] = less(si[a], si[b], si[c])
        elif op == 45:
            si[to] = spoilt(si[a], si[b], si[c])
        elif op == 36 or si[a] == 0:
            at = to - 1
        at += 1


@small_kernel
def fill(nci: int, ncf: int, si: Array, sf: Array, ri: Array, rf: Array, k: int) -> None:
    """Copies a key's registers into the scratch arrays, behind the constants."""
    for j in range(ri.shape[1] - 1):
        si[nci + j] = ri[k, 1 + j]
    for j in range(rf.shape[1]):
        sf[ncf + j] = rf[k, j]


@kernel
def run_tables(
    size: int,
    slots: Array,
    letters: Array,
    columns_i: Array,
    columns_f: Array,
    consts: Array,
    code: Array,
    steps: Array,
    resting: Array,
    ri: Array,
    rf: Array,
    rings: Array,
    real: Array,
    si: Array,
    sf: Array,
    out_place: int,
    out_row: Array,
    out_i: Array,
    out_f: Array,
    left: Array,
    work: Array,
    once: int,
    log: Array,
    log_i: Array,
    log_f: Array,
    cursor: Array,
    trace: Array,
) -> int:
    """Feeds rows, each to its key; gives how many answers were written.

    A key that can never match again begins anew (`once` 0) or stays closed (`once` 1; 2 for a stream
    without keys, which has left the language only when another item comes); `left`
    receives the items that led out of the language: how many, then their rows; `work` the most
    instructions that one item took, and the row reached: short of the last if its state is not known yet;
    `trace`, unless it is empty, the state before each item.
    """
    n = 0
    nci = consts[0]
    ncf = consts[1]
    nri = ri.shape[1] - 1
    nrf = rf.shape[1]
    for i in range(size):
        k = slots[i]
        state = ri[k, 0]
        letter = letters[i]
        if len(trace) > 0:
            trace[i] = state
        if state < 0 or letter < 0:
            continue
        after = steps[state, letter, 0]
        if after == -3:
            work[1] = i
            return n
        if after < 0:
            left[0] += 1
            left[left[0]] = i
            ri[k, 0] = 0 if once == 0 else -1
            continue
        fill(nci, ncf, si, sf, ri, rf, k)
        for j in range(columns_i.shape[0]):
            si[nci + nri + j] = columns_i[j, i]
        for j in range(columns_f.shape[0]):
            sf[ncf + nrf + j] = columns_f[j, i]
        begin = steps[state, letter, 1]
        end = steps[state, letter, 2]
        cursor[2] = i
        interpret(code, begin, end, si, sf, ri, rf, rings, real, k, log, log_i, log_f, cursor)
        work[0] = max(work[0], end - begin)
        if steps[state, letter, 3] == 1:
            out_row[n] = i
            for j in range(out_i.shape[0]):
                out_i[j, n] = si[out_place + j]
                out_f[j, n] = sf[out_place + j]
            n += 1
        ri[k, 0] = after
        if resting[after] == 1 or (resting[after] == 2 and once == 0):
            ri[k, 0] = 0
        elif resting[after] == 2 and once == 1:
            ri[k, 0] = -1
    work[1] = size
    return n
