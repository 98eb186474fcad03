"""Regular expressions on text, as Spark's functions have them, in the dialect of RE2.

RE2 has no lookaround and no backreferences, and so needs time in proportion to the text; a pattern that uses
them is refused when the plan is built.

>>> from caesura.expr.nodes import col
>>> plan = RULES["regexp_extract"](col("a").regexp_extract("([a-z]+)-([0-9]+)", 2), [pa.string()])
>>> plan.kernel(pa.array(["ab-12", "ab", None])).to_pylist()
['12', '', None]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _parser as sre  # type: ignore[attr-defined]

import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import ExprError
from caesura.expr.arrays import by_value, where_repeated
from caesura.expr.nodes import Apply
from caesura.expr.rules import Rule, Shared, TypedNode, Types, sharing, want

_STRING = pa.string()
_GROUP = "g"
_ESCAPED = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\((\?P?<\w+>|\?)?", re.DOTALL
)


def groups(pattern: str) -> Iterator[re.Match[str]]:
    """The places where capturing groups open."""
    for found in _ESCAPED.finditer(pattern):
        if found[0] == "(" or (found[1] or "").endswith(">"):
            yield found


def only_group(pattern: str, index: int) -> str:
    """The pattern with one capturing group left, called g; group 0 is the whole match.

    >>> only_group("(a)(?<x>b)[(]", 2), only_group("(a)", 0)
    ('(?:a)(?P<g>b)[(]', '(?P<g>(?:a))')
    """
    parts, at = [], 0
    for number, found in enumerate(groups(pattern), 1):
        parts += [pattern[at : found.start()], f"(?P<{_GROUP}>" if number == index else "(?:"]
        at = found.end()
    made = "".join(parts) + pattern[at:]
    return f"(?P<{_GROUP}>{made})" if index == 0 else made


def check_pattern(node: Apply, pattern: str) -> None:
    """Refuses what RE2 does not understand."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as wrong:
        raise ExprError(
            f"in '{node}': {pattern!r} is no regular expression (RE2): {str(wrong).splitlines()[0]}.",
            remedy="Escape special characters with a backslash, or use .contains, .like.",
        ) from wrong


def may_be_empty(pattern: str) -> bool:
    """Whether a pattern may match a text of no characters, as far as Python can read it."""
    try:
        return bool(sre.parse(pattern).getwidth()[0] == 0)
    except (re.error, OverflowError):
        return False


def _want_text(node: Apply, types: Types) -> None:
    want(node, types, ("string",), "text", remedy="Cast it: .cast('string').")


def _extract(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    pattern, index = node.options
    check_pattern(node, pattern)
    count = sum(1 for _ in groups(pattern))
    if not 0 <= index <= count:
        raise ExprError(
            f"in '{node}': there is no group {index}; the pattern has {count}.",
            remedy="Group 0 is the whole match; put ( ) round the part that is wanted.",
        )
    wanted, empty = only_group(pattern, index), pa.scalar("", _STRING)

    def kernel(array: pa.Array) -> pa.Array:
        found = pc.struct_field(pc.extract_regex(array, wanted), [0])
        return pc.if_else(pc.is_valid(array), pc.fill_null(found, empty), pa.scalar(None, _STRING))

    return TypedNode(_STRING, (_STRING,), where_repeated(kernel))


def rewritten(replacement: str, count: int, node: Apply) -> str:
    r"""A replacement in Java's words (``$1``, ``\$``) in those of RE2.

    >>> rewritten(r"<$1\$>", 1, None)
    '<\\1$>'
    """
    parts, at = [], 0
    while at < len(replacement):
        c = replacement[at]
        if c == "\\" and at + 1 < len(replacement):
            at += 1
            parts.append(replacement[at].replace("\\", "\\\\"))
        elif c == "$":
            digits = re.match(r"[0-9]+", replacement[at + 1 :])
            named = digits[0] if digits else ""
            while len(named) > 1 and int(named) > count:
                named = named[:-1]  # as Java: as many digits as name a group
            if not named or int(named) > min(count, 9):
                raise ExprError(
                    f"in '{node}': the replacement names a group that is not there.",
                    remedy="Write $1 for the first group, \\$ for a dollar; groups go up to $9.",
                )
            parts.append(f"\\{named}")
            at += len(named)
        else:
            parts.append(c.replace("\\", "\\\\"))
        at += 1
    return "".join(parts)


def _replace(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    pattern, replacement = node.options
    check_pattern(node, pattern)
    made = rewritten(replacement, sum(1 for _ in groups(pattern)), node)
    if may_be_empty(pattern):
        # RE2 skips an empty match behind another one, which Java and Python replace too.
        known = re.compile(pattern, re.ASCII)
        python = re.sub(r"\\([0-9])", r"\\g<\1>", made)
        return TypedNode(_STRING, (_STRING,), lambda a: by_value(a, lambda v: known.sub(python, v), _STRING))

    def kernel(array: pa.Array) -> pa.Array:
        return pc.replace_substring_regex(array, pattern=pattern, replacement=made)

    return TypedNode(_STRING, (_STRING,), where_repeated(kernel))


def _count(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    (pattern,) = node.options
    check_pattern(node, pattern)
    return TypedNode(
        pa.int32(), (_STRING,), lambda a: pc.count_substring_regex(a, pattern=pattern).cast(pa.int32())
    )


def _ilike(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    (pattern,) = node.options
    return TypedNode(pa.bool_(), (_STRING,), lambda a: pc.match_like(a, pattern, ignore_case=True))


def _split(node: Apply, types: Types) -> TypedNode:
    _want_text(node, types)
    pattern, limit = node.options
    check_pattern(node, pattern)
    if may_be_empty(pattern):
        raise ExprError(
            f"in '{node}': {pattern!r} matches between any two characters.",
            remedy="Split at a text that is there, for example ','; in a regular expression, '[, ]+'.",
        )
    most = limit - 1 if limit > 0 else None
    whole = pa.list_(_STRING)

    def pieces(array: pa.Array) -> pa.Array:
        if re.escape(pattern) == pattern:
            return pc.split_pattern(array, pattern, max_splits=most)
        return pc.split_pattern_regex(array, pattern, max_splits=most)

    return sharing(whole, (_STRING,), Shared(("split", pattern, limit), pieces, lambda made: made))


RULES: dict[str, Rule] = {
    "regexp_extract": _extract,
    "regexp_replace": _replace,
    "regexp_count": _count,
    "ilike": _ilike,
    "split": _split,
}
