"""Automata with registers: ``stream.match(cz.automaton([cz.arc(...), ...], {"m": 0}, within=30))``.

>>> import caesura as cz
>>> from caesura import col
>>> rows = [{"ts": t, "up": u} for t, u in ((1, 0), (2, 0), (3, 1), (4, 1))]
>>> falls, rises = col("up") == 0, (col("up") == 1) & (col("m") > 0)
>>> valley = cz.automaton(
...     [
...         cz.arc("S", "fall", falls, m=col("m") + 1),
...         cz.arc("fall", "fall", falls, m=col("m") + 1),
...         cz.arc("fall", "rise", rises, m=col("m") - 1),
...         cz.arc("rise", "rise", rises, m=col("m") - 1),
...     ],
...     {"m": 0},
...     within=30,
...     accept={"rise": col("m") == 0},
... )
>>> print(cz.from_rows(rows, time="ts").match(valley).run())
 LE  RE | begin length state m |
  3  32 | 2     2      rise  0 | +
  4  31 | 1     4      rise  0 | +
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from caesura.errors import PlanError
from caesura.expr import Expr, as_expr, lit
from caesura.fixpoint.automaton import Arc, Automaton
from caesura.plan import Duration, here

Ends = str | Sequence[str] | Mapping[str, Expr]


def arc(source: str, target: str, when: Expr | bool = True, /, **changes: object) -> Arc:
    """A move of an automaton from state to state.

    Parameters
    ----------
    source
        The state that it leaves.
    target
        The state that it enters.
    when
        A test of an event and the registers; the move is made where it is true.
    **changes
        What registers become: ``m=col("m") + 1``.

    Returns
    -------
    Arc
        What `cz.automaton` takes.

    See Also
    --------
    automaton : an automaton with registers.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col
    >>> cz.arc("S", "fall", col("up") == 0, m=col("m") + 1).target
    'fall'
    """
    return Arc(source, target, as_expr(when), {name: as_expr(v) for name, v in changes.items()})


def automaton(
    transitions: Iterable[Arc],
    registers: Mapping[str, int | float] | None = None,
    within: Duration = 0,
    *,
    start: str = "S",
    accept: Ends | None = None,
) -> Automaton:
    """An automaton with registers for ``stream.match``: from every event a run begins.

    Parameters
    ----------
    transitions
        Its arcs, made by `cz.arc`.
    registers
        The registers with their first values.
    within
        The time that a run may take.
    start
        The state in which a run begins.
    accept
        The states in which a match is complete, perhaps with a test of the registers: a name, several, or a
        mapping to tests. Then complete matches come out; without it all partial ones do too.

    Returns
    -------
    Automaton
        What ``stream.match`` takes. A match has the columns ``begin``, ``length``, ``state`` and the
        registers.

    Notes
    -----
    Promises: on time, what its input promises. State: the runs that are open, until ``within`` frees them.
    Feedback: stopped at its output. Spark: in one bucket; over each group, in buckets by the keys.

    See Also
    --------
    Stream.match : patterns with values, and automata.
    api.Grouped.match : over each group alone.
    arc : a move of an automaton.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col
    >>> rows = [{"ts": t, "up": u} for t, u in ((1, 0), (2, 0), (3, 1), (4, 1))]
    >>> falls, rises = col("up") == 0, (col("up") == 1) & (col("m") > 0)
    >>> valley = cz.automaton(
    ...     [
    ...         cz.arc("S", "fall", falls, m=col("m") + 1),
    ...         cz.arc("fall", "fall", falls, m=col("m") + 1),
    ...         cz.arc("fall", "rise", rises, m=col("m") - 1),
    ...         cz.arc("rise", "rise", rises, m=col("m") - 1),
    ...     ],
    ...     {"m": 0},
    ...     within=30,
    ...     accept={"rise": col("m") == 0},
    ... )
    >>> print(cz.from_rows(rows, time="ts").match(valley).run())
     LE  RE | begin length state m |
      3  32 | 2     2      rise  0 | +
      4  31 | 1     4      rise  0 | +
    """
    arcs = tuple(transitions)
    wrong = [a for a in arcs if not isinstance(a, Arc)]
    if wrong:
        error = PlanError(f"{wrong[0]!r} is no arc.", remedy="Write cz.arc(source, target, when, ...).")
        raise error.at("automaton", here())
    ends: Mapping[str, Expr] | None = None
    if isinstance(accept, Mapping):
        ends = {state: as_expr(test) for state, test in accept.items()}
    elif accept is not None:
        ends = dict.fromkeys([accept] if isinstance(accept, str) else accept, lit(True))
    return Automaton(arcs, dict(registers or {}), within, start, ends)
