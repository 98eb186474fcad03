"""Texts that begin alike are a stretch of the order of texts, so patterns can name them.

A regular expression that is tied to the beginning is a set of such stretches where it lists what texts begin
with; any other one is no set of values that could be told.

>>> print(prefix("ab"))
['ab'..'ac')
>>> print(matching(r"^(eu|us)-\\d"), matching("^x$"))
None 'x'
>>> print(matching("^(eu|us)-"))
['eu-'..'eu.') or ['us-'..'us.')
"""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from caesura.punctuation.values import NOT_NULL, Values, between, ge, one_of, union_of

MAX_TEXTS = 256
"""So many beginnings a regular expression may list."""
LAST = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


def prefix(text: str) -> Values:
    """All texts that begin so."""
    above = _above(text)
    if text == "":
        return NOT_NULL
    return ge(text) if above is None else between(text, above, closed="left")


def _above(text: str) -> str | None:
    """The least text that is greater than all that begin so; None where there is none."""
    while text and ord(text[-1]) == LAST:
        text = text[:-1]
    if not text:
        return None
    code = ord(text[-1]) + 1
    return text[:-1] + chr(SURROGATES.stop if code in SURROGATES else code)


def matching(regex: str) -> Values | None:
    """The texts in which a regular expression is found; None where they are no few stretches."""
    try:
        read = parser.parse(regex)
    except re.error:
        return None
    if read.state.flags & ~re.UNICODE:  # letters of either case, lines of their own
        return None
    parsed = list(read)
    if not parsed or parsed[0] not in ((codes.AT, codes.AT_BEGINNING), (codes.AT, codes.AT_BEGINNING_STRING)):
        return None
    whole = parsed[-1] in ((codes.AT, codes.AT_END), (codes.AT, codes.AT_END_STRING))
    body = parsed[1:-1] if whole else parsed[1:]
    texts = _texts(body[:-1] if not whole and body and _anything(body[-1]) else body)
    if texts is None:
        return None
    return one_of(texts) if whole else union_of(prefix(text) for text in texts)


def like(pattern: str) -> Values | None:
    """The texts that a LIKE with no more than a last % means; None for any other."""
    body = pattern[:-1] if pattern.endswith("%") else pattern
    if any(sign in body for sign in "%_\\"):
        return None
    return one_of([body]) if body == pattern else prefix(body)


def _anything(part: Any) -> bool:
    code, value = part
    return code is codes.MAX_REPEAT and value[0] == 0 and list(value[2]) == [(codes.ANY, None)]


def _texts(parts: Any) -> list[str] | None:
    """All texts that a sequence of letters, sets of them and choices spells."""
    made = [""]
    for code, value in parts:
        some = _choices(code, value)
        if some is None or len(made) * len(some) > MAX_TEXTS:
            return None
        made = [one + other for one in made for other in some]
    return made


def _choices(code: Any, value: Any) -> list[str] | None:
    if code is codes.LITERAL:
        return [chr(value)]
    if code is codes.SUBPATTERN and not value[1] and not value[2]:  # without flags of its own
        return _texts(value[3])
    if code is codes.BRANCH:
        spelled = [_texts(branch) for branch in value[1]]
        return None if any(s is None for s in spelled) else [t for s in spelled for t in s or ()]
    if code is codes.IN and all(c in (codes.LITERAL, codes.RANGE) for c, _ in value):
        spans = [(v, v) if c is codes.LITERAL else v for c, v in value]
        if sum(high - low + 1 for low, high in spans) <= MAX_TEXTS:
            return [chr(n) for low, high in spans for n in range(low, high + 1)]
    return None
