"""Times, distances and counts as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from caesura.punctuation import INFINITY, MIN_TIME

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCK_FROM = 10**14
"""Ticks from here on are read as microseconds since 1970."""


def moment(ticks: int) -> str:
    """A time for people.

    >>> moment(25), moment(1_700_000_000_000_000), moment(MIN_TIME), moment(INFINITY)
    ('25', '2023-11-14 22:13:20', '-', 'end')
    """
    if ticks == MIN_TIME:
        return "-"
    if ticks >= INFINITY:
        return "end"
    if ticks < CLOCK_FROM:
        return str(ticks)
    return (EPOCH + timedelta(microseconds=ticks)).strftime("%Y-%m-%d %H:%M:%S")


def span(ticks: int | None, latest: int) -> str:
    """A distance in time for people.

    >>> span(7, 100), span(90_500_000, 1_700_000_000_000_000), span(None, 0)
    ('7', '90.5 s', '-')
    """
    if ticks is None:
        return "-"
    return f"{ticks / 1e6:g} s" if latest >= CLOCK_FROM else str(ticks)


def count(number: float) -> str:
    """A number in little room.

    >>> count(0), count(950), count(12_300), count(4_560_000), count(2.5)
    ('0', '950', '12.3 K', '4.56 M', '2.5')
    """
    for unit, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " K")):
        if number >= unit:
            return f"{number / (1e3 if name == ' K' else unit):.3g}{name}"
    return f"{number:,.3g}" if isinstance(number, float) and number < 100 else f"{number:,.0f}"


def size(number: int) -> str:
    """Bytes in little room.

    >>> size(0), size(2048), size(5 << 20)
    ('0 B', '2 KiB', '5 MiB')
    """
    value, units = float(number), ("B", "KiB", "MiB", "GiB")
    for unit in units[:-1]:
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} {units[-1]}"
