"""The specialised kernel of a map-collect: one loop for keyed items and, inside it, one over the keys."""

from __future__ import annotations

from caesura.qre.automaton import Automaton, Move
from caesura.qre.bytecode import Tables
from caesura.qre.generation import MOST_BRANCHES, Generated, Source, compiled
from caesura.qre.ir import Term

HEAD = """from math import exp, fmod, sqrt

from caesura.kernels import interpreted
from caesura.qre.collect_kernel import adopt as _adopt
from caesura.qre.collect_kernel import settle as _settle

adopt = _adopt.twin if interpreted() else _adopt.compiled()
settle = _settle.twin if interpreted() else _settle.compiled()


def run(begin, lo, hi, slots, ri, rf, rings, rate, active, meta, out_slot, out_i, out_f, maps{tail}):
    na = meta[0]
    r = meta[1]
    n = meta[2]
    m = meta[3]
"""
ON_SYNC = """if n + na > len(out_slot) or m >= len(maps):
    meta[0] = na
    meta[1] = r
    meta[2] = n
    meta[3] = m
    return i
bring = False
if r >= 0:
    r = rate[r, 0]
    bring = r >= 0 and rate[r, 1] > 0
if bring:
    maps[m, 0] = i
    maps[m, 1] = n
    m += 1"""
AFTER_SYNC = """again = bring and rate[r, 1] == 2
na = settle(ri, rf, rings, active, na, again)
if again:
    r = 0"""
ON_KEY = """k = slots[i - begin]
s = ri[k, 0]
if s == -2:
    adopt(ri, rf, rings, k)
    active[na] = k
    na += 1
    s = ri[k, 0]
if s < 0:
    continue"""


class CollectSource(Source):
    """Writes the loops of one map-collect."""

    def __init__(self, auto: Automaton, t: Tables, sync: Term, letters: int) -> None:
        super().__init__(auto, t, keyed=True, once=1)
        self.sync, self.letters = sync, letters
        self.collecting = False

    def text(self) -> str:
        w = self.w
        every = range(len(self.auto.alphabet.minterms))
        w.block("for i in range(lo, hi):")
        w.block(f"if {self.term(self.sync, 0)}:")
        self._lines(ON_SYNC)
        w.block("for j in range(-1, na):")
        self._lines("k = 0 if j < 0 else active[j]\ns = ri[k, 0]\nif s < 0:\n    continue")
        self.collecting = True
        self._decide([c for c in every if self.letters >> c & 1], 0)
        w.depth -= 1
        self._lines(AFTER_SYNC)
        w.depth -= 1
        w.block("else:")
        self._lines(ON_KEY)
        self.collecting = False
        self._decide([c for c in every if not self.letters >> c & 1], 0)
        w.depth -= 2
        self._lines("meta[0] = na\nmeta[1] = r\nmeta[2] = n\nmeta[3] = m\nreturn hi")
        names = "".join(f", c{j}" for j in range(len(self.auto.inputs.specs)))
        return HEAD.format(tail=names) + "\n".join([*w.lines, ""])

    def _lines(self, text: str) -> None:
        for line in text.splitlines():
            self.w.put(line)

    def _leave(self) -> None:
        self._go("-1")

    def _final(self, to: int) -> int:
        return to

    def _answer(self, move: Move) -> None:
        if not self.collecting or move.target not in self.auto.last:
            return
        self.w.block("if bring and k > 0:")
        self.w.put("out_slot[n] = k")
        for j, word in enumerate(move.answer):
            into = "out_f" if word.term.kind == "f" else "out_i"
            self.w.put(f"{into}[{2 * j}, n] = {self.term(word.term, move.source)}")
            self.w.put(f"out_i[{2 * j + 1}, n] = {self.term(word.there, move.source)}")
        self.w.put("n += 1")
        self.w.depth -= 1


def generated_collect(auto: Automaton, t: Tables, sync: Term, letters: int) -> Generated | None:
    """The specialised kernel of a map-collect; None when its source would be too long."""
    if sum(len(s.moves) for s in auto.states) > MOST_BRANCHES:
        return None
    return Generated(auto, t, True, compiled(CollectSource(auto, t, sync, letters).text()))
