"""Specialised kernels: the automaton written out as Python source and compiled for one query.

Predicates are decided in a tree of comparisons, states are branches, registers are array cells. The
source is kept in a cache folder, so that the machine code survives the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from caesura.expr import Column
from caesura.kernels import interpreted
from caesura.kernels.written import run_of
from caesura.qre.compiler import ir
from caesura.qre.compiler.automaton import Move, PatternAutomaton
from caesura.qre.compiler.bytecode import Tables
from caesura.qre.compiler.columns import PageColumns
from caesura.qre.compiler.ir import TRUE, Term
from caesura.qre.compiler.lowering import flattened
from caesura.qre.compiler.packing import Scalars
from caesura.qre.compiler.source_terms import CALLED, COUNTED, FORMS, TRUTHS, WHOLE, float_compare, literal
from caesura.qre.compiler.states import AutomatonState
from caesura.qre.compiler.threads import STORE
from caesura.qre.language.whole_numbers import STAMP

MAX_BRANCHES = 4000
Array = np.ndarray[Any, Any]


class Writer:
    """Lines of source with indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def block(self, head: str) -> None:
        self.put(head)
        self.depth += 1


class Form(NamedTuple):
    """Which of a query's kernels: rows by the keys' low bits, and for pages whose columns have no nulls."""

    direct: bool = False
    dense: bool = False


PLAIN = Form()
HEAD = f"""# {STAMP}
from math import sqrt

import numpy as np

from caesura.qre.language.whole_numbers import {", ".join(CALLED)}

ONE = np.uint64(1)
"""
FIND = """key = by[i - begin]
k = np.uint64(key) & mask
if keys[k] != key:
    if ri[k, 0] != 0:
        meta[0] = n
        return np.int64(i)
    keys[k] = key
s = ri[k, 0]"""
"""A whole-number key's row is its low bits; a row at rest may change hands, any other ends the call."""


class KernelSource:
    """Writes the loop of one automaton."""

    def __init__(
        self,
        auto: PatternAutomaton,
        t: Tables,
        keyed: bool,
        only: Term | None = None,
        once: int = 0,
        form: Form = PLAIN,
    ) -> None:
        self.auto, self.t, self.keyed, self.only = auto, t, keyed, only
        self.once = once
        self.direct, self.dense = form
        self._simplified: dict[tuple[bool, Term], Term] = {}
        self.collecting = False
        self.sure, self.firm = always_there(auto), always_fits(auto)
        self.w = Writer()

    def text(self) -> str:
        """The whole source of the kernel function."""
        w = self.w
        w.put("n = np.uint64(meta[0])")
        if self.direct:
            w.put("mask = np.uint64(len(keys) - 1)")
        self._hoist()
        w.block("for i in range(np.uint64(lo), np.uint64(hi)):")
        if self.only is not None:
            w.block(f"if not {self.term(self.only, 0)}:")
            w.put("continue")
            w.depth -= 1
        if not self.keyed:
            w.block("if s < 0:")
            w.put("break")
            w.depth -= 1
        self._decide(list(range(len(self.auto.alphabet.minterms))), 0)
        w.depth -= 1
        self._unhoist()
        w.put("meta[0] = n")
        w.put("return hi")
        head = f"def run(lo, hi, begin, by, keys, ri, rf, rings, meta, left{self._outs()}{self._columns()}):"
        return "\n".join([HEAD, "", head, *w.lines, ""])

    def _columns(self) -> str:
        return "".join(f", c{j}" for j in range(len(self.auto.inputs.specs)))

    def _outs(self) -> str:
        """Where answers go: rows, each scalar and, if that may be, whether it is there, or beyond 64 bits."""
        flags = [f"p{j}" for j, sure in enumerate(self.sure) if not sure]
        flags += [f"q{j}" for j, firm in enumerate(self.firm) if not firm]
        return "".join(f", {name}" for name in ["out_row", *(f"o{j}" for j in range(len(self.sure))), *flags])

    def lines(self, text: str) -> None:
        """Several lines at the present depth."""
        for line in text.splitlines():
            self.w.put(line)

    def _found(self) -> None:
        """The row of the item's key and its state."""
        if not self.keyed:
            return
        self.lines(FIND if self.direct else "k = np.uint64(by[i - begin])\ns = ri[k, 0]")
        if self.once:
            self.w.block("if s < 0:")
            self.w.put("continue")
            self.w.depth -= 1

    # Registers.

    def _names(self) -> list[tuple[str, str]]:
        t = self.t
        whole = [(f"i{j}", f"ri[{{}}, {j + 1}]") for j in range(len(t.registers_i))]
        return whole + [(f"f{j}", f"rf[{{}}, {j}]") for j in range(len(t.registers_f))]

    def _hoist(self) -> None:
        if self.keyed:
            return
        self.w.put("s = ri[0, 0]")
        for local, cell in self._names():
            self.w.put(f"{local} = {cell.format(0)}")

    def _unhoist(self) -> None:
        if self.keyed:
            return
        self.w.put("ri[0, 0] = s")
        for local, cell in self._names():
            self.w.put(f"{cell.format(0)} = {local}")

    def register(self, position: int, slot: str) -> str:
        name, kind = self.auto.register(position, slot), self.auto.kinds[slot]
        place = (self.t.registers_i if kind == "i" else self.t.registers_f).index(name)
        if not self.keyed:
            return f"{kind}{place}"
        return f"ri[k, {place + 1}]" if kind == "i" else f"rf[k, {place}]"

    def term(self, t: Term, position: int) -> str:
        """A term as Python source."""
        t = self.simple(t)
        match t.op:
            case "const":
                return literal(t.payload)
            case "slot":
                return self.register(position, t.payload)
            case "item":
                return self.item(t.payload)
        counted = t.op in COUNTED
        a = [self.whole(x, position) if counted else self.term(x, position) for x in t.args]
        ring = [r.name for r in self.auto.rings].index(t.payload) if t.op in ("ring", "store") else 0
        where = f"rings[{ring}, {'k' if self.keyed else 0}, {a[0]}]"
        if t.op == "ring":
            return f"int({where})"
        if t.op == "store":
            return f"{where} = {a[1]}"
        if t.op in ("eq", "lt") and t.args[0].kind == "f":
            return float_compare(t.op, a, t.args)
        forms = WHOLE if t.kind == "i" and t.op in WHOLE else FORMS
        return forms[t.op].format(*a)

    def simple(self, t: Term) -> Term:
        """A term with what is known of the item at hand."""
        key = (self.collecting, t)
        if key not in self._simplified:
            self._simplified[key] = ir.substitute(t, self.known)
        return self._simplified[key]

    def known(self, t: Term) -> Term | None:
        """What a column of the item at hand is, if that is known."""
        if t.op != "item" or not self.dense:
            return None
        what, expr = self.auto.inputs.specs[t.payload]
        return TRUE if what == "there" and isinstance(expr, Column) else None

    def item(self, column: int) -> str:
        """A column of the item at hand."""
        return f"c{column}[i]"

    def whole(self, t: Term, position: int) -> str:
        """A term as a number, where truth values and narrow columns will not do."""
        t = self.simple(t)
        text = self.term(t, position)
        return f"int({text})" if t.kind == "i" and t.op in TRUTHS else text

    # Control.

    def _decide(self, candidates: list[int], predicate: int) -> None:
        """A tree over the predicates; each leaf is one letter."""
        minterms = self.auto.alphabet.minterms
        while len(candidates) > 1:
            yes = [c for c in candidates if minterms[c].truth >> predicate & 1]
            no = [c for c in candidates if c not in yes]
            if yes and no:
                break
            predicate += 1
        if len({self._behaviour(c) for c in candidates}) == 1:
            self._letter(candidates[0])
            return
        test = self.simple(self.auto.inputs.truth(self.auto.alphabet.exprs[predicate]))
        if test.op == "const":
            self._decide(yes if test.payload else no, predicate + 1)
            return
        self.w.block(f"if {self.term(test, 0)}:")
        self._decide(yes, predicate + 1)
        self.w.depth -= 1
        self.w.block("else:")
        self._decide(no, predicate + 1)
        self.w.depth -= 1

    def _behaviour(self, letter: int) -> Any:
        return tuple(
            (state.moves[letter][0], tuple(state.moves[letter][1])) if letter in state.moves else None
            for state in self.auto.states
        )

    def _letter(self, letter: int) -> None:
        """What each state does on a letter; a state that has no move leaves the language."""
        w = self.w
        self._found()
        able = [(n, s) for n, s in enumerate(self.auto.states) if letter in s.moves]
        for place, (number, state) in enumerate(able):
            w.block(f"{'el' if place else ''}if s == {number}:")
            self._step(number, state, letter)
            w.depth -= 1
        if not able:
            self._leave()
        elif len(able) < len(self.auto.states):
            w.block("else:")
            self._leave()
            w.depth -= 1

    def _leave(self) -> None:
        self.w.put("left[0] += 1")
        self.w.put("left[left[0]] = i")
        self._go("-1" if self.once else "0")

    def _go(self, state: str) -> None:
        self.w.put(f"ri[k, 0] = {state}" if self.keyed else f"s = {state}")

    def _step(self, number: int, state: AutomatonState, letter: int) -> None:
        to, moves = state.moves[letter]
        before = len(self.w.lines)
        writes: list[tuple[str, str]] = []
        for move in moves:
            self._move(move, writes)
            self._answer(move)
        for place, (_, source) in enumerate(writes):
            if len(writes) > 1:
                self.w.put(f"t{place} = {source}")
        for place, (target, source) in enumerate(writes):
            self.w.put(f"{target} = {source if len(writes) == 1 else f't{place}'}")
        self._stores(moves)
        final = self._final(to)
        if final != number:
            self._go(str(final))
        if len(self.w.lines) == before:
            self.w.put("pass")

    def _final(self, to: int) -> int:
        """Where a key stands in the end: at the start when nothing distinguishes it from there."""
        after = self.t.resting[to]
        if after == 2 and self.once == 1:
            return -1
        return 0 if after == 1 or (after == 2 and not self.once) else to

    def _move(self, move: Move, writes: list[tuple[str, str]]) -> None:
        for slot in sorted(self.auto.need[move.target]):
            target = self.register(move.target, slot)
            kind = self.auto.kinds[slot]
            term = move.put.get(slot, Term("slot", kind, payload=slot))  # type: ignore[arg-type]
            source = self.whole(term, move.source)
            if source != target:
                writes.append((target, source))
        for slot, term in move.put.items():
            if slot.startswith(STORE):
                head = self.term(term.args[0], move.source)
                self.w.put(f"h_{term.payload} = {head}")
                self.w.put(f"x_{term.payload} = {self.whole(term.args[1], move.source)}")

    def _stores(self, moves: list[Move]) -> None:
        for move in moves:
            for slot, term in move.put.items():
                if slot.startswith(STORE):
                    ring = [r.name for r in self.auto.rings].index(term.payload)
                    row = "k" if self.keyed else "0"
                    self.w.put(f"rings[{ring}, {row}, h_{term.payload}] = x_{term.payload}")

    def _answer(self, move: Move) -> None:
        """Writes the value, from what the thread held before the move."""
        if not move.accepts:
            return
        self.w.put("out_row[n] = i")
        self._written(move)

    def _written(self, move: Move) -> None:
        for j, word in enumerate(move.answer):
            self.w.put(f"o{j}[n] = {self.term(word.term, move.source)}")
            if not self.sure[j]:
                self.w.put(f"p{j}[n] = {self.term(word.there, move.source)}")
            if not self.firm[j]:
                self.w.put(f"q{j}[n] = {self.term(word.over, move.source)} != 0")
        self.w.put("n += ONE")


def always_there(auto: PatternAutomaton) -> list[bool]:
    """Per scalar of the value whether it is never null."""
    moves = [m for some in auto.moves.values() for m in some if m.accepts]
    count = len(flattened(auto.type))
    return [all(m.answer[j].there == TRUE for m in moves) for j in range(count)]


def always_fits(auto: PatternAutomaton) -> list[bool]:
    """Per scalar of the value whether it is never beyond 64 bits."""
    moves = [m for some in auto.moves.values() for m in some if m.accepts]
    return [not any(m.answer[j].risky for m in moves) for j in range(len(flattened(auto.type)))]


@dataclass
class Generated:
    """Specialised kernels of one automaton, by form."""

    auto: PatternAutomaton
    sure: list[bool]
    firm: list[bool]
    source: Callable[[Form], KernelSource]
    functions: dict[Form, Any] = field(default_factory=dict)
    texts: dict[Form, str] = field(default_factory=dict)
    _reads: dict[Form, list[bool]] = field(default_factory=dict)

    def form(self, direct: bool, page: PageColumns) -> Form:
        """The form for a page."""
        flags = [e for what, e in self.auto.inputs.specs if what == "there" and isinstance(e, Column)]
        return Form(direct, all(page.column(e).null_count == 0 for e in flags))

    def function(self, form: Form) -> Any:
        """Compiled when first asked for."""
        if form not in self.functions:
            self.functions[form] = compiled(self.text(form))
        return self.functions[form]

    def text(self, form: Form) -> str:
        if form not in self.texts:
            self.texts[form] = self.source(form).text()
        return self.texts[form]

    def reads(self, form: Form) -> list[bool]:
        """Which columns the kernel reads; others need not be made."""
        if form not in self._reads:
            text, count = self.text(form), len(self.auto.inputs.specs)
            self._reads[form] = [f"c{j}[i]" in text or f"d{j}[u]" in text for j in range(count)]
        return self._reads[form]

    def outs(self, rows: int, first: Any = np.int64) -> list[Array]:
        """Room for this many answers: their rows (or keys), scalars, and flags where scalars may be null."""
        kinds = [kind for _, kind, _ in flattened(self.auto.type)]
        values = [np.empty(rows, np.float64 if kind == "f" else np.int64) for kind in kinds]
        flags = (self.sure + self.firm).count(False)
        return [np.empty(rows, first), *values, *(np.empty(rows, np.bool_) for _ in range(flags))]

    def columns(self, outs: list[Array], count: int) -> tuple[Array, Scalars]:
        """The answers that were written: rows, and scalars with their flags (None: all there, all fit)."""
        cut = [o[:count].copy() if 16 * count < len(o) else o[:count] for o in outs]
        flags = iter(cut[1 + len(self.sure) :])
        there = [None if s else next(flags) for s in self.sure]
        over = [None if f else next(flags) for f in self.firm]
        return cut[0], Scalars(cut[1 : 1 + len(self.sure)], there, over)


def generated(
    auto: PatternAutomaton, t: Tables, keyed: bool = True, only: Term | None = None, once: int = 0
) -> Generated | None:
    """The specialised kernels of an automaton; None when their source would be too long, or has loops."""
    branches = sum(len(s.moves) for s in auto.states)
    if branches > MAX_BRANCHES or auto.tabled:
        return None

    def source(form: Form) -> KernelSource:
        return KernelSource(auto, t, keyed, only, once, Form(keyed and form.direct, form.dense))

    return Generated(auto, always_there(auto), always_fits(auto), source)


_READY: dict[tuple[str, bool], Any] = {}


def compiled(source: str) -> Any:
    """The function of a generated source, made once per process; plain Python if kernels are off."""
    key = (source, not interpreted())
    if key not in _READY:
        run = run_of("qre", source, machine=key[1])
        _READY[key] = run if key[1] else _quietly(run)
    return _READY[key]


def _quietly(run: Callable[..., Any]) -> Callable[..., Any]:
    """Plain Python, in which low words are cut off as by the machine."""

    def quiet(*args: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return run(*args)

    return quiet


__all__ = ["Form", "Generated", "KernelSource", "compiled", "generated"]
