"""The kernel of an automaton, written out for it: states and letters are branches, registers arrays.

The source is kept in a cache folder, so that the machine code survives the process; with
``CAESURA_KERNELS=python`` the same source runs as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Apply, Cast, Column, Constant, Expr, attributes
from caesura.expr.rewrite import strip
from caesura.fixpoint.automaton.arcs import Arc, Automaton, split
from caesura.fixpoint.automaton.letters import asked_by, firing, predicates
from caesura.kernels import interpreted
from caesura.kernels.written import run_of

LETTER_BITS = 7
"""Up to so many tests of an item each way to answer them is a branch; with more, each arc asks its own."""
_FORMS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "negate": "(-{0})",
    "abs": "abs({0})",
    "greatest": "max({0}, {1})",
    "least": "min({0}, {1})",
    "equal": "({0} == {1})",
    "not_equal": "({0} != {1})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "and": "({0} and {1})",
    "or": "({0} or {1})",
    "not": "(not {0})",
    "between": "({1} <= {0} <= {2})",
}


def value(expr: Expr, names: Mapping[str, str]) -> str:
    """An expression over numbers as Python source."""
    match strip(expr):
        case Column(name=name):
            return names[name]
        case Constant(value=bool() as v):
            return str(v)
        case Constant(value=int() | float() as v):
            return repr(v)
        case Cast(arg=arg, type=t) if pa.types.is_floating(t):
            return f"float({value(arg, names)})"
        case Cast(arg=arg, type=t) if pa.types.is_int64(t):
            return f"int({value(arg, names)})"
        case Apply(name=name, args=args) if name in _FORMS and len(args) <= 3:
            return _FORMS[name].format(*(value(a, names) for a in args))
    raise PlanError(
        f"'{expr}' is more than an automaton does with its registers.",
        remedy="Use +, -, *, abs, greatest, least and comparisons; compute the rest in a column before.",
    )


def item_columns(auto: Automaton) -> list[str]:
    """The columns of an item whose values go into registers or are compared with them."""
    read: dict[str, None] = {}
    for arc in auto.arcs:
        for expr in (*split(arc, auto.registers)[1], *arc.changes.values()):
            read.update(dict.fromkeys(sorted(attributes(expr) - set(auto.registers))))
    return list(read)


def source(auto: Automaton) -> str:
    """The whole text of the kernel."""
    tests, columns, names = predicates(auto), item_columns(auto), list(auto.registers)
    types = auto.register_types()
    arrays = [f"c{j}" for j in range(len(columns))]
    runs = [f"{side}{k}" for side in "ab" for k in range(len(names))]
    outs = [f"o{k}" for k in range(len(names))]
    head = ["first", "le", "letter", "within", "group", "now", "kept", "count", *arrays, "whose"]
    head += ["si", "bi", "li", *(f"i{k}" for k in range(len(names)))]
    head += ["sa", "ba", "la", "sb", "bb", "lb", *runs]
    head += ["gk", "sk", "bk", "lk", *(f"k{k}" for k in range(len(names)))]
    head += ["o_row", "o_state", "o_begin", "o_length", *outs]
    lines = [f"def run({', '.join(head)}):", "    made = 0", "    i = first", "    while i < len(le):"]
    forks = _forks(auto, tests)
    lines += _next_group(len(names))
    lines += [
        f"        if made + {forks} * (count + 1) > len(o_row) or {forks} * (count + 1) > len(sa):",
        "            break",
        f"        x = {'letter[i]' if is_narrow(tests) else 'i'}",
        "        t = le[i]",
        "        sa[count] = 0",
        "        ba[count] = t",
        "        la[count] = 0",
    ]
    lines += [f"        a{k}[count] = {_first(auto, n, types)}" for k, n in enumerate(names)]
    lines += [
        "        alive = 0",
        "        for r in range(count + 1):",
        "            if ba[r] + within <= t:",
    ]
    lines.append("                continue")
    lines += [f"            r{k} = a{k}[r]" for k in range(len(names))]
    lines += (_by_letter if is_narrow(tests) else _by_test)(auto, tests, columns, names, forks)
    if forks > 1:
        lines += ["        sa, sb = sb, sa", "        ba, bb = bb, ba", "        la, lb = lb, la"]
        lines += [f"        a{k}, b{k} = b{k}, a{k}" for k in range(len(names))]
    lines += ["        count = alive", "        i += 1"]
    odd = "(i - first) % 2" if forks > 1 else "0"
    lines += [f"    return i, count, made, {odd}, now, kept", ""]
    return "\n".join(lines)


def _next_group(registers: int) -> list[str]:
    """Where the items of another group begin: the runs of the last one are put away, its own are taken up."""
    put = [("gk", "now"), *((f"{x}k", f"{x}a[r]") for x in "sbl")]
    put += [(f"k{k}", f"a{k}[r]") for k in range(registers)]
    take = [(f"{x}a", f"{x}i") for x in "sbl"] + [(f"a{k}", f"i{k}") for k in range(registers)]
    return [
        "        g = group[i]",
        "        if g != now:",
        "            if kept + count > len(sk):",
        "                break",
        "            for r in range(count):",
        *(f"                {array}[kept + r] = {value}" for array, value in put),
        "            kept += count",
        "            count = 0",
        "            now = -1",
        "            begins = whose[g]",
        "            more = whose[g + 1] - begins",
        "            if more > len(sa):",
        "                break",
        "            for r in range(more):",
        *(f"                {array}[r] = {held}[begins + r]" for array, held in take),
        "            count = more",
        "            now = g",
    ]


def is_narrow(tests: Sequence[Expr]) -> bool:
    """Whether all answers to the tests of an item are few enough for a branch each."""
    return len(tests) <= LETTER_BITS


def _by_letter(
    auto: Automaton, tests: Sequence[Expr], columns: list[str], names: list[str], forks: int
) -> list[str]:
    """A branch for each state and each way in which the tests of an item can come out."""
    letters = 1 << len(tests)
    lines, word = [f"            at = sa[r] * {letters} + x"], "if"
    for number, state in enumerate(auto.states):
        for letter in range(letters):
            arcs = [arc for arc in firing(auto, tests, letter) if arc.source == state]
            if arcs:
                lines.append(f"            {word} at == {number * letters + letter}:")
                word = "elif"
                for arc in arcs:
                    lines += _taken(auto, arc, columns, names, "b" if forks > 1 else "a")
    return lines


def _by_test(
    auto: Automaton, tests: Sequence[Expr], columns: list[str], names: list[str], forks: int
) -> list[str]:
    """A branch for each state, in which each arc asks for its own tests: letter[j, i] is that of test j."""
    lines, word = ["            at = sa[r]"], "if"
    for number, state in enumerate(auto.states):
        arcs = [arc for arc in auto.arcs if arc.source == state]
        if arcs:
            lines.append(f"            {word} at == {number}:")
            word = "elif"
            for arc in arcs:
                asked = [f"letter[{j}, i] != 0" for j in asked_by(auto, tests, arc)]
                lines += _taken(auto, arc, columns, names, "b" if forks > 1 else "a", asked)
    return lines


def _first(auto: Automaton, name: str, types: Mapping[str, pa.DataType]) -> str:
    v = auto.registers[name]
    return repr(float(v)) if types[name] == pa.float64() else repr(int(v))


def _forks(auto: Automaton, tests: Sequence[Expr]) -> int:
    """The most arcs that one item may take from one state."""
    if not is_narrow(tests):
        return max(1, *(sum(arc.source == s for arc in auto.arcs) for s in auto.states))
    every = [firing(auto, tests, letter) for letter in range(1 << len(tests))]
    return max(1, *(sum(a.source == s for a in arcs) for arcs in every for s in auto.states))


def _taken(
    auto: Automaton,
    arc: Arc,
    columns: list[str],
    names: list[str],
    into: str,
    asked: Sequence[str] = (),
) -> list[str]:
    """The lines that take an arc, and write the match that it makes; ``asked`` is asked of the item.

    Where a run goes at most one way it is written in place: never behind the one that is read.
    """
    seen = {n: f"r{k}" for k, n in enumerate(names)} | {c: f"c{j}[i]" for j, c in enumerate(columns)}
    tests = [*asked, *(value(t, seen) for t in split(arc, auto.registers)[1])]
    pad = " " * 16
    lines = [f"{pad}if {' and '.join(tests) or 'True'}:"]
    pad += "    "
    number = auto.states.index(arc.target)
    lines += [f"{pad}started = ba[r]", f"{pad}steps = la[r] + 1"]
    lines += [
        f"{pad}s{into}[alive] = {number}",
        f"{pad}b{into}[alive] = started",
        f"{pad}l{into}[alive] = steps",
    ]
    for k, name in enumerate(names):
        lines.append(f"{pad}n{k} = {value(arc.changes[name], seen) if name in arc.changes else f'r{k}'}")
        lines.append(f"{pad}{into}{k}[alive] = n{k}")
    if auto.accept is None or arc.target in auto.accept:
        after = {n: f"n{k}" for k, n in enumerate(names)}
        test = "True" if auto.accept is None else value(auto.accept[arc.target], after)
        lines.append(f"{pad}if {test}:")
        inner = pad + "    "
        lines += [f"{inner}o_row[made] = i", f"{inner}o_state[made] = {number}"]
        lines += [f"{inner}o_begin[made] = started", f"{inner}o_length[made] = steps"]
        lines += [f"{inner}o{k}[made] = n{k}" for k in range(len(names))]
        lines.append(f"{inner}made += 1")
    return [*lines, f"{pad}alive += 1"]


_READY: dict[tuple[str, bool], Any] = {}


def made(text: str, *, machine: bool) -> Any:
    """The function of a source, as machine code or, its twin, as plain Python; once per process."""
    key = (text, machine and not interpreted())
    if key not in _READY:
        _READY[key] = run_of("automaton", text, machine=key[1])
    return _READY[key]
