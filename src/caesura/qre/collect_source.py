"""The specialised kernels of a map-collect: one loop for keyed items and, inside it, one over the keys.

Where every synchronisation item brings a map and all begins anew (`iter_last` of a map per period) no state
is shared but the start, so keys need no copies of it: rows at rest hold what folds begin with.
"""

from __future__ import annotations

from caesura.expr import Column
from caesura.qre.automaton import Automaton, Move, State
from caesura.qre.bytecode import Tables
from caesura.qre.generation import HEAD, MOST_BRANCHES, Generated, Source, always_there
from caesura.qre.items import TICK
from caesura.qre.merging import does

DONE, TAKEN, FULL = 0, 1, 2
"""Why a call ended: all read; a key's row is another's; no room for the answers."""
KERNELS = """from caesura.kernels import interpreted
from caesura.qre.collect_kernel import adopt as _adopt
from caesura.qre.collect_kernel import settle as _settle

adopt = _adopt.twin if interpreted() else _adopt.compiled()
settle = _settle.twin if interpreted() else _settle.compiled()
"""
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
AFTER_SYNC = """again = bring and rate[r, 1] == 2
na = np.uint64(settle(ri, rf, rings, active, np.int64(na), again))
if again:
    r = 0"""
ADOPT = """if s == -2:
    adopt(ri, rf, rings, k)
    active[na] = k
    na += ONE
    s = ri[k, 0]
if s < 0:
    continue"""


class CollectSource(Source):
    """Writes the loops of one map-collect: the keyed items up to a place, the synchronisation item there.

    Synchronisation items lie in columns of their own (``d0``, ...), one row each or one row for all of
    them; ``gap`` says whether they take a row among the keyed items too.
    """

    def __init__(self, auto: Automaton, t: Tables, letters: int, by_tick: bool, direct: bool) -> None:
        super().__init__(auto, t, keyed=True, once=1, direct=direct)
        self.letters, self.by_tick = letters, by_tick
        self.collecting = False

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
        return "\n".join([HEAD + self._imports(), "", head, *w.lines, ""])

    def _imports(self) -> str:
        return "\n" + KERNELS

    def _suspend(self, why: int, at: str) -> None:
        self.lines(SHUT.format(why=why, at=at))
        self.w.depth -= 1

    def item(self, column: int) -> str:
        what, expr = self.auto.inputs.specs[column]
        if self.by_tick and isinstance(expr, Column) and expr.name == TICK:
            return str(what == "there" or self.collecting)
        return f"d{column}[u]" if self.collecting else f"c{column}[i]"

    def _synchronise(self, letters: list[int]) -> None:
        """One item for all keys; the shared state is row 0."""
        self.lines(ON_SYNC)
        self.w.block("for j in range(-1, np.int64(na)):")
        self.lines(
            "k = np.uint64(0) if j < 0 else np.uint64(active[j])\ns = ri[k, 0]\nif s < 0:\n    continue"
        )
        self._decide(letters, 0)
        self.w.depth -= 1
        self.lines(AFTER_SYNC)

    def _found(self) -> None:
        if self.collecting:
            return
        self._row()
        self.lines("s = ri[k, 0]")
        self.lines(ADOPT)

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

    def _imports(self) -> str:
        return ""

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


def _alike(auto: Automaton, begun: tuple[int, list[Move]], state: State, letter: int) -> bool:
    to, moves = state.moves.get(letter, (-1, []))
    if to != begun[0] or len(moves) != 1 or len(begun[1]) != 1:
        return False
    filled = {s: auto.inits[s] for s in auto.need[moves[0].source] if s in auto.inits}
    return does(auto, moves[0], filled) == does(auto, begun[1][0], {})


def padding(auto: Automaton, t: Tables) -> list[tuple[str, int, float | int]]:
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
    auto: Automaton, t: Tables, letters: int, *, tumbling: bool, by_tick: bool
) -> Generated | None:
    """The specialised kernels of a map-collect; None when their source would be too long."""
    if auto.refolds or sum(len(s.moves) for s in auto.states) > MOST_BRANCHES:
        return None

    def source(direct: bool) -> Source:
        if direct and tumbling:
            return TumblingSource(auto, t, letters, by_tick, direct)
        return CollectSource(auto, t, letters, by_tick, direct)

    return Generated(auto, always_there(auto), source)


__all__ = ["DONE", "FULL", "TAKEN", "generated_collect", "padding"]
