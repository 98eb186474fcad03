"""A 128-bit identity per row: equal rows get equal identities, whatever page they came in.

Null equals null, NaN equals NaN, and -0.0 equals 0.0. Two different rows collide with a chance of
about 2**-128 per pair, which the engine takes as never.

>>> import numpy as np
>>> h1, h2 = np.zeros(2, np.uint64), np.zeros(2, np.uint64)
>>> mix_words(np.array([7, 7], np.uint64), np.zeros(0, np.bool_), np.uint64(1), h1, h2)
>>> bool(h1[0] == h1[1])
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from caesura.kernels import kernel

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

M1 = np.uint64(0xFF51AFD7ED558CCD)
M2 = np.uint64(0xC4CEB9FE1A85EC53)
M3 = np.uint64(0x9E3779B97F4A7C15)
M4 = np.uint64(0xBF58476D1CE4E5B9)
NULL_WORD = np.uint64(0x6E756C6C6E756C6C)
S33 = np.uint64(33)
S29 = np.uint64(29)
S32 = np.uint64(32)


def frozen(values: Any) -> Any:
    """The array, read-only: Arrow's memory is, and a kernel is compiled once per kind of array."""
    view = values.view()
    view.flags.writeable = False
    return view


@kernel
def scramble(x: np.uint64) -> np.uint64:
    """The 64-bit finaliser of MurmurHash3: a bijection."""
    x = (x ^ (x >> S33)) * M1
    x = (x ^ (x >> S33)) * M2
    return x ^ (x >> S33)


@kernel
def mix_words(words: U64, valid: Mask, salt: np.uint64, h1: U64, h2: U64) -> None:
    """Folds one 64-bit column into the identities; an empty ``valid`` means no nulls."""
    nulls = len(valid) > 0
    for i in range(len(words)):
        w = words[i]
        s = salt
        if nulls and not valid[i]:
            w = NULL_WORD
            s = salt ^ M4
        h1[i] = scramble(h1[i] * M3 + w + s)
        h2[i] = scramble((h2[i] ^ w) * M4 + s + M3)


@kernel
def mix_rows(words: I64, rows: I64, salt: np.uint64, h1: U64, h2: U64) -> None:
    """Folds some rows of a column of whole numbers of any width, without nulls, into their identities."""
    for i in range(len(rows)):
        w = np.uint64(np.int64(words[rows[i]]))
        h1[i] = scramble(h1[i] * M3 + w + salt)
        h2[i] = scramble((h2[i] ^ w) * M4 + salt + M3)


@kernel
def mix_bytes(offsets: I64, data: U8, valid: Mask, salt: np.uint64, h1: U64, h2: U64) -> None:
    """Folds one column of strings or bytes into the identities."""
    nulls = len(valid) > 0
    for i in range(len(offsets) - 1):
        a = salt
        b = salt ^ M3
        if nulls and not valid[i]:
            a = NULL_WORD
            b = salt ^ M4
        else:
            word = np.uint64(0)
            size = offsets[i + 1] - offsets[i]
            filled = 0
            for j in range(offsets[i], offsets[i + 1]):
                word |= np.uint64(data[j]) << np.uint64(8 * filled)
                filled += 1
                if filled == 8:
                    a = scramble(a * M3 + word)
                    b = (b ^ word) * M4
                    b ^= b >> S32
                    word = np.uint64(0)
                    filled = 0
            a = scramble(a * M3 + word + np.uint64(size))
            b = scramble((b ^ word) * M4 + np.uint64(size))
        h1[i] = scramble(h1[i] * M3 + a + salt)
        h2[i] = scramble((h2[i] ^ b) * M4 + salt + M3)


@kernel
def mix_int(h1: U64, h2: U64, rows: I64, values: I64, o1: U64, o2: U64) -> None:
    """The identities of ``rows``, each joined with an integer (a window number, a start)."""
    for i in range(len(rows)):
        r = rows[i]
        w = np.uint64(values[i])
        o1[i] = scramble(h1[r] + w * M3)
        o2[i] = scramble((h2[r] ^ w) * M4)
