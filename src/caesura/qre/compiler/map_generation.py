"""The specialised kernels of a map-collect: one loop for keyed items and, inside it, one over the keys.

Where every synchronisation item brings a map and all begins anew (`iter_last` of a map per period) no state
is shared but the start, so keys need no copies of it: rows at rest hold what folds begin with.
"""

from __future__ import annotations

from caesura.expr import Column
from caesura.qre.compiler import generation, ir
from caesura.qre.compiler.automaton import Move, PatternAutomaton
from caesura.qre.compiler.bytecode import Tables
from caesura.qre.compiler.ir import FALSE, TRUE, Term
from caesura.qre.compiler.merging import does
from caesura.qre.compiler.states import AutomatonState
from caesura.qre.language.items import TICK

DONE, TAKEN, FULL = 0, 1, 2
"""Why a call ended: all read; a key's row is another's; no room for the answers."""
OPEN = """na = np.uint64(meta[0])
r = meta[1]
n = np.uint64(meta[2])
m = meta[3]
t = meta[4]
nt = len(places)
at = np.uint64(lo)
stop = np.uint64(hi)"""
SHUT = """meta[0] = na
meta[1] = r
meta[2] = n
meta[3] = m
meta[4] = t
meta[5] = {why}
return np.int64({at})"""
SEGMENT = """end = stop
if t < nt and places[t] < hi:
    end = np.uint64(places[t])"""
ON_SYNC = """bring = False
if r >= 0:
    r = rate[r, 0]
    bring = r >= 0 and rate[r, 1] > 0
if bring:
    maps[m, 0] = t
    maps[m, 1] = n
    m += 1"""
AGAIN = "again = bring and rate[r, 1] == 2\nstill_active = np.uint64(0)\nfirst = np.int64(0)"
EACH = """k = np.uint64(0)
if j > 0:
    k = np.uint64(active[j - ONE])
s = ri[k, 0]"""
AFTER_SYNC = """if again:
    ri[0, 0] = 0
    r = 0
na = still_active"""


class CollectSource(generation.KernelSource):
    """Writes the loops of one map-collect: the keyed items up to a place, the synchronisation item there.

    Synchronisation items lie in columns of their own (``d0``, ...), one row each or one row for all of
    them; ``gap`` says whether they take a row among the keyed items too.
    """

    def __init__(
        self, auto: PatternAutomaton, t: Tables, letters: int, by_tick: bool, form: generation.Form
    ) -> None:
        super().__init__(auto, t, keyed=True, once=1, form=form)
        self.letters, self.by_tick = letters, by_tick
        self.common = _held_in_common(auto, t, letters)

    def text(self) -> str:
        w = self.w
        self.lines(OPEN)
        if self.direct:
            w.put("mask = np.uint64(len(keys) - 2)")
        every = range(len(self.auto.alphabet.minterms))
        w.block("while True:")
        self.lines(SEGMENT)
        w.block("for i in range(at, end):")
        self._decide([c for c in every if not self.letters >> c & 1], 0)
        w.depth -= 1
        self.lines("at = end\nif t >= nt or places[t] >= limit:\n    break")
        w.block("if n + na > np.uint64(len(out_row)):")
        self._suspend(FULL, "at")
        self.lines("u = t * step")
        self.collecting = True
        self._synchronise([c for c in every if self.letters >> c & 1])
        self.collecting = False
        self.lines("t += 1\nat += gap")
        w.depth -= 1
        self.lines(SHUT.format(why=DONE, at="hi"))
        state = "keys, ri, rf, rings, rate, active, meta, maps"
        sync = "".join(f", d{j}" for j in range(len(self.auto.inputs.specs)))
        given = f"places, step, gap{self._outs()}{self._columns()}{sync}"
        head = f"def run(lo, hi, limit, begin, by, {state}, {given}):"
        return "\n".join([generation.HEAD, "", head, *w.lines, ""])

    def _suspend(self, why: int, at: str) -> None:
        self.lines(SHUT.format(why=why, at=at))
        self.w.depth -= 1

    def known(self, t: Term) -> Term | None:
        """A tick has no columns but TICK."""
        if t.op != "item":
            return None
        what, expr = self.auto.inputs.specs[t.payload]
        if not self.by_tick or not isinstance(expr, Column):
            return super().known(t)
        if expr.name == TICK:
            return TRUE if what == "there" or self.collecting else FALSE
        if not self.collecting or what not in ("there", "value"):
            return super().known(t)
        return FALSE if what == "there" else ir.const(0 if t.kind == "i" else 0.0)

    def item(self, column: int) -> str:
        return f"d{column}[u]" if self.collecting else f"c{column}[i]"

    def _synchronise(self, letters: list[int]) -> None:
        """One item for all keys, first for the state that they share, which is row 0."""
        w = self.w
        self.lines(ON_SYNC)
        self.lines(AGAIN)
        w.block("for j in range(np.uint64(0), na + ONE):")
        self.lines(EACH)
        w.block("if s >= 0:")
        self._decide(letters, 0)
        w.depth -= 1
        self.lines("s = ri[k, 0]\nif j == 0:\n    first = s\n    continue")
        w.block("if again:")
        w.put("ri[k, 0] = -2")
        w.depth -= 1
        w.block(f"elif s == first and (s <= 0 or ({self._as_shared()})):")
        w.put("ri[k, 0] = -2")
        w.depth -= 1
        w.block("else:")
        self.lines("active[still_active] = k\nstill_active += ONE")
        w.depth -= 2
        self.lines(AFTER_SYNC)

    def _as_shared(self) -> str:
        """Whether a key holds what the shared state holds."""
        cells, rings = self.common
        alike = [f"{cell.format('k')} == {cell.format('0')}" for cell in cells]
        alike += [f"(rings[{ring}, k, :] == rings[{ring}, 0, :]).all()" for ring in rings]
        return " and ".join(alike) or "True"

    def _found(self) -> None:
        if self.collecting:
            return
        self._row()
        self.lines("s = ri[k, 0]")
        self.w.block("if s == -2:")
        self._adopt()
        self.w.depth -= 1
        self.lines("if s < 0:\n    continue")

    def _adopt(self) -> None:
        """Gives a key its own copy of the shared state.

        Written out: as a function it would count references to its arrays, which costs more than the copy.
        """
        cells, rings = self.common
        self.lines("s = ri[0, 0]\nri[k, 0] = s\nactive[na] = k\nna += ONE")
        for cell in cells:
            self.w.put(f"{cell.format('k')} = {cell.format('0')}")
        for ring in rings:
            self.lines(f"for q in range(rings.shape[2]):\n    rings[{ring}, k, q] = rings[{ring}, 0, q]")

    def _row(self) -> None:
        if not self.direct:
            self.w.put("k = np.uint64(by[i - begin])")
            return
        self.lines("key = by[i - begin]\nk = (np.uint64(key) & mask) + ONE")
        self.w.block("if keys[k] != key:")
        self.w.block("if ri[k, 0] != -2:")
        self._suspend(TAKEN, "i")
        self.w.put("keys[k] = key")
        self.w.depth -= 1

    def _leave(self) -> None:
        self._go("-1")

    def _final(self, to: int) -> int:
        return to

    def _answer(self, move: Move) -> None:
        if not self.collecting or not move.accepts:
            return
        self.w.block("if bring and k > 0:")
        self._entry(move)
        self.w.depth -= 1

    def _entry(self, move: Move) -> None:
        self.w.put(f"out_row[n] = {'keys[k]' if self.direct else 'k'}")
        self._written(move)


class TumblingSource(CollectSource):
    """Writes the loops of a map-collect that begins anew at every synchronisation item."""

    def _synchronise(self, letters: list[int]) -> None:
        self.lines("maps[m, 0] = t\nmaps[m, 1] = n\nm += 1")
        self.w.block("for j in range(np.uint64(0), na):")
        self.lines("k = np.uint64(active[j])\ns = ri[k, 0]")
        self._decide(letters, 0)
        self._go("-2")
        for kind, place, value in padding(self.auto, self.t):
            self.w.put(f"r{kind}[k, {place}] = {value!r}")
        self.w.depth -= 1
        self.w.put("na = np.uint64(0)")

    def _found(self) -> None:
        if self.collecting:
            return
        self._row()
        self.lines("s = ri[k, 0]\nactive[na] = k\nna += np.uint64(s == -2)")

    def _letter(self, letter: int) -> None:
        if self.collecting:
            self._bring(letter)
            return
        self._found()
        w = self.w
        able = [(n, s) for n, s in enumerate(self.auto.states) if letter in s.moves]
        alike = self._as_begun(letter)
        first = True
        for number, state in able:
            if number == 0 and alike is not None:
                continue
            test = f"s == {number if number else -2}"
            if number == alike and number < 60:
                test = f"({1 << (number + 2) | 1} >> (s + 2)) & 1"
            elif number == alike:
                test = f"s == -2 or {test}"
            w.block(f"{'' if first else 'el'}if {test}:")
            self._step(-1 if number == alike else number, state, letter)
            w.depth -= 1
            first = False
        if first:
            self._leave()
        elif len(able) < len(self.auto.states):
            w.block("else:")
            self._leave()
            w.depth -= 1

    def _as_begun(self, letter: int) -> int | None:
        """The state that does with a letter what the start does, given what rows at rest hold.

        Which of the two a key is in cannot be foreseen, so one test, of bits, must do for both.
        """
        begun = self.auto.states[0].moves.get(letter)
        for number, state in enumerate(self.auto.states):
            if number and begun and _alike(self.auto, begun, state, letter):
                return number
        return None

    def _bring(self, letter: int) -> None:
        """Answers only: what the item would do to registers is undone at once."""
        first = True
        for number, state in enumerate(self.auto.states):
            accepting = [m for m in state.moves.get(letter, (0, []))[1] if m.accepts]
            if number and accepting:
                self.w.block(f"{'' if first else 'el'}if s == {number}:")
                self._entry(accepting[0])
                self.w.depth -= 1
                first = False


def _alike(auto: PatternAutomaton, begun: tuple[int, list[Move]], state: AutomatonState, letter: int) -> bool:
    to, moves = state.moves.get(letter, (-1, []))
    if to != begun[0] or len(moves) != 1 or len(begun[1]) != 1:
        return False
    filled = {s: auto.inits[s] for s in auto.need[moves[0].source] if s in auto.inits}
    return does(auto, moves[0], filled) == does(auto, begun[1][0], {})


def _held_in_common(auto: PatternAutomaton, t: Tables, letters: int) -> tuple[list[str], list[int]]:
    """The registers and rings that threads may hold which have read synchronisation items only."""
    reached, todo = {0}, [0]
    while todo:
        moves = auto.states[todo.pop()].moves
        for after in {to for letter, (to, _) in moves.items() if letters >> letter & 1} - reached:
            reached.add(after)
            todo.append(after)
    held = {(p, s) for n in reached for p in auto.states[n].positions for s in auto.need[p]}
    names = {auto.register(p, s) for p, s in held}
    cells = [f"ri[{{}}, {j + 1}]" for j, name in enumerate(t.registers_i) if name in names]
    cells += [f"rf[{{}}, {j}]" for j, name in enumerate(t.registers_f) if name in names]
    slots = {s for _, s in held}
    return cells, [j for j, ring in enumerate(auto.rings) if ring.slots & slots]


def padding(auto: PatternAutomaton, t: Tables) -> list[tuple[str, int, float | int]]:
    """What rows at rest hold, as (kind, column, value): what the folds of the pattern begin with."""
    out: list[tuple[str, int, float | int]] = []
    for slot, value in auto.inits.items():
        if auto.shared.get(slot):
            kind = auto.kinds[slot]
            names = t.registers_i if kind == "i" else t.registers_f
            if slot in names:
                out.append((kind, names.index(slot) + (kind == "i"), value.payload))
    return out


def generated_collect(
    auto: PatternAutomaton, t: Tables, letters: int, *, tumbling: bool, by_tick: bool
) -> generation.Generated | None:
    """The specialised kernels of a map-collect; None when their source would be too long."""
    if auto.tabled or sum(len(s.moves) for s in auto.states) > generation.MAX_BRANCHES:
        return None

    def source(form: generation.Form) -> generation.KernelSource:
        if form.direct and tumbling:
            return TumblingSource(auto, t, letters, by_tick, form)
        return CollectSource(auto, t, letters, by_tick, form)

    return generation.Generated(auto, generation.always_there(auto), generation.always_fits(auto), source)


__all__ = ["DONE", "FULL", "TAKEN", "generated_collect", "padding"]
