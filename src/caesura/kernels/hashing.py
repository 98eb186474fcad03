"""A 128-bit identity per row: equal rows get equal identities, whatever page they came in.

An identity is a chain of keyed hashes: the two halves that a row has so far are the key with which its
next column is hashed, and what comes out are its new halves. The chain begins with a secret, so nobody
who only supplies rows can aim at an identity. Each link is SipHash with one round for a word and three
at the end, its last state folded to 128 bits. Null equals null, and no other value.

>>> import numpy as np
>>> h1, h2 = np.full(2, 5, np.uint64), np.full(2, 6, np.uint64)
>>> mix_words(np.array([7, 7], np.uint64), np.zeros(0, np.bool_), h1, h2)
>>> bool(h1[0] == h1[1]), bool(h1[0] == h2[0])
(True, False)
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
Four = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

BEGIN0 = np.uint64(0x736F6D6570736575)
BEGIN1 = np.uint64(0x646F72616E646F6D)
BEGIN2 = np.uint64(0x6C7967656E657261)
BEGIN3 = np.uint64(0x7465646279746573)
"""The constants that SipHash starts from."""
VALUE = np.uint64(0xFF)
NULL = np.uint64(0xEE)
"""How the hash of a value ends, and that of a null."""
BITS = np.uint64(64)
R13, R16, R17, R21, R32 = (np.uint64(n) for n in (13, 16, 17, 21, 32))
NOTHING = np.uint64(0)
ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT, SIXTEEN = (np.uint64(n) for n in (*range(1, 9), 16))


def frozen(values: Any) -> Any:
    """The array, read-only: Arrow's memory is, and a kernel is compiled once per kind of array."""
    if not values.flags.writeable:
        return values
    view = values.view()
    view.flags.writeable = False
    return view


@kernel
def sip_round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> Four:
    """One round of SipHash."""
    a += b
    c += d
    b = ((b << R13) | (b >> (BITS - R13))) ^ a
    d = ((d << R16) | (d >> (BITS - R16))) ^ c
    a = ((a << R32) | (a >> (BITS - R32))) + d
    c += b
    b = ((b << R17) | (b >> (BITS - R17))) ^ c
    d = ((d << R21) | (d >> (BITS - R21))) ^ a
    c = (c << R32) | (c >> (BITS - R32))
    return a, b, c, d


@kernel
def sip_end(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, end: np.uint64) -> Four:
    """The last three rounds."""
    a, b, c, d = sip_round(a, b, c ^ end, d)
    a, b, c, d = sip_round(a, b, c, d)
    return sip_round(a, b, c, d)


@kernel
def sip_word(k1: np.uint64, k2: np.uint64, word: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The hash of one word under a key."""
    a, b, c, d = sip_round(k1 ^ BEGIN0, k2 ^ BEGIN1, k1 ^ BEGIN2, k2 ^ BEGIN3 ^ word)
    a, b, c, d = sip_end(a ^ word, b, c, d, end)
    return a ^ b, c ^ d


@kernel
def sip_pair(k1: np.uint64, k2: np.uint64, first: np.uint64, then: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The hash of two words under a key."""
    a, b, c, d = sip_round(k1 ^ BEGIN0, k2 ^ BEGIN1, k1 ^ BEGIN2, k2 ^ BEGIN3 ^ first)
    a, b, c, d = sip_round(a ^ first, b, c, d ^ then)
    a, b, c, d = sip_end(a ^ then, b, c, d, VALUE)
    return a ^ b, c ^ d


@kernel
def mix_words(words: U64, valid: Mask, h1: U64, h2: U64) -> None:
    """Folds one 64-bit column into the identities; an empty ``valid`` means no nulls."""
    if len(valid) == 0:
        for i in range(len(words)):
            h1[i], h2[i] = sip_word(h1[i], h2[i], words[i], VALUE)
        return
    for i in range(len(words)):
        if valid[i]:
            h1[i], h2[i] = sip_word(h1[i], h2[i], words[i], VALUE)
        else:
            h1[i], h2[i] = sip_word(h1[i], h2[i], NOTHING, NULL)


@kernel
def mix_two(first: I64, then: I64, k1: np.uint64, k2: np.uint64, h1: U64, h2: U64) -> None:
    """The identities of two columns of whole numbers, begun with a key."""
    for i in range(len(first)):
        a, b = sip_word(k1, k2, np.uint64(first[i]), VALUE)
        h1[i], h2[i] = sip_word(a, b, np.uint64(then[i]), VALUE)


@kernel
def mix_rows(words: I64, rows: I64, h1: U64, h2: U64) -> None:
    """Folds some rows of a column of whole numbers of any width, without nulls, into their identities."""
    for i in range(len(rows)):
        h1[i], h2[i] = sip_word(h1[i], h2[i], np.uint64(np.int64(words[rows[i]])), VALUE)


@kernel
def mix_bytes(offsets: I64, data: U8, valid: Mask, h1: U64, h2: U64) -> None:
    """Folds one column of strings or bytes into the identities; the last word is the size."""
    nulls = len(valid) > 0
    for i in range(len(offsets) - 1):
        if nulls and not valid[i]:
            h1[i], h2[i] = sip_word(h1[i], h2[i], NOTHING, NULL)
            continue
        a, b, c, d = h1[i] ^ BEGIN0, h2[i] ^ BEGIN1, h1[i] ^ BEGIN2, h2[i] ^ BEGIN3
        at = np.uint64(offsets[i])
        stop = np.uint64(offsets[i + 1])
        while (
            at + EIGHT <= stop
        ):  # in a form that the compiler makes one load of: `at` has no sign to look at
            low = np.uint64(data[at]) | np.uint64(data[at + ONE]) << EIGHT
            low |= np.uint64(data[at + TWO]) << SIXTEEN | np.uint64(data[at + THREE]) << np.uint64(24)
            high = np.uint64(data[at + FOUR]) | np.uint64(data[at + FIVE]) << EIGHT
            high |= np.uint64(data[at + SIX]) << SIXTEEN | np.uint64(data[at + SEVEN]) << np.uint64(24)
            word = low | high << np.uint64(32)
            a, b, c, d = sip_round(a, b, c, d ^ word)
            a ^= word
            at += EIGHT
        if at < stop:
            word = NOTHING
            shift = NOTHING
            while at < stop:
                word |= np.uint64(data[at]) << shift
                shift += EIGHT
                at += ONE
            a, b, c, d = sip_round(a, b, c, d ^ word)
            a ^= word
        word = np.uint64(offsets[i + 1] - offsets[i])
        a, b, c, d = sip_round(a, b, c, d ^ word)
        a, b, c, d = sip_end(a ^ word, b, c, d, VALUE)
        h1[i] = a ^ b
        h2[i] = c ^ d


@kernel
def mix_lists(offsets: I64, e1: U64, e2: U64, valid: Mask, h1: U64, h2: U64) -> None:
    """Folds one column of lists into the identities: the hashes of the elements, then their number."""
    nulls = len(valid) > 0
    for i in range(len(offsets) - 1):
        if nulls and not valid[i]:
            h1[i], h2[i] = sip_word(h1[i], h2[i], NOTHING, NULL)
            continue
        a, b, c, d = h1[i] ^ BEGIN0, h2[i] ^ BEGIN1, h1[i] ^ BEGIN2, h2[i] ^ BEGIN3
        for at in range(offsets[i], offsets[i + 1]):
            a, b, c, d = sip_round(a, b, c, d ^ e1[at])
            a ^= e1[at]
            a, b, c, d = sip_round(a, b, c, d ^ e2[at])
            a ^= e2[at]
        word = np.uint64(offsets[i + 1] - offsets[i])
        a, b, c, d = sip_round(a, b, c, d ^ word)
        a, b, c, d = sip_end(a ^ word, b, c, d, VALUE)
        h1[i] = a ^ b
        h2[i] = c ^ d


@kernel
def mix_int(h1: U64, h2: U64, rows: I64, values: I64, o1: U64, o2: U64) -> None:
    """The identities of ``rows``, each joined with an integer (a window number, a start)."""
    for i in range(len(rows)):
        r = rows[i]
        o1[i], o2[i] = sip_word(h1[r], h2[r], np.uint64(values[i]), VALUE)


def mixed(ids: tuple[U64, U64], *values: I64, rows: I64 | None = None) -> tuple[U64, U64]:
    """The identities of some rows (by default all), each joined with integers in turn."""
    every = np.arange(len(values[0]))
    h1, h2 = np.empty(len(every), np.uint64), np.empty(len(every), np.uint64)
    mix_int(*ids, every if rows is None else rows, values[0], h1, h2)
    for more in values[1:]:
        mix_int(h1, h2, every, more, h1, h2)
    return h1, h2
