"""Moves as three-address code, for the kernel that runs every query from tables.

Values live in two scratch arrays, one of whole numbers and one of doubles: constants first, then the
key's registers, then the item's columns, then what is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from caesura.kernels.hashing import I64
from caesura.qre.automaton import START, Automaton, Move
from caesura.qre.fragments import STORE
from caesura.qre.ir import Term

OPS = (
    "copy_i",
    "copy_f",
    "i2f",
    "add_i",
    "sub_i",
    "mul_i",
    "rem_i",
    "neg_i",
    "abs_i",
    "eq_i",
    "lt_i",
    "not",
    "and",
    "or",
    "select_i",
    "add_f",
    "sub_f",
    "mul_f",
    "div",
    "rem_f",
    "neg_f",
    "abs_f",
    "eq_f",
    "lt_f",
    "select_f",
    "sqrt",
    "exp",
    "ring",
    "store",
)
CODE = {name: number for number, name in enumerate(OPS)}


@dataclass
class Tables:
    """Everything that the table-driven kernel reads of a query."""

    consts_i: I64
    consts_f: np.ndarray[tuple[int], np.dtype[np.float64]]
    registers_i: list[str]
    registers_f: list[str]
    columns_i: list[int]
    columns_f: list[int]
    code: I64
    """Rows of (op, target, a, b, c)."""
    moves: I64
    """Rows of (target position, first instruction, one past the last)."""
    index: I64
    """index[position, letter] and the entry behind it: a range of moves."""
    outputs: I64
    """Per position (first instruction, one past the last), or (-1, -1): not accepting."""
    out_places: I64
    """Per scalar of the value (place, kind: 0 whole, 1 double, place of its flag)."""
    scratch: int
    positions: list[int] = field(default_factory=list)


class _Coder:
    def __init__(self, auto: Automaton) -> None:
        self.auto = auto
        self.code: list[tuple[int, int, int, int, int]] = []
        self.consts: dict[str, dict[float, int]] = {"i": {0: 0, 1: 1}, "f": {0.0: 0}}
        self.registers = {k: [r for r, kind in auto.registers.items() if kind == k] for k in ("i", "f")}
        self.columns: dict[str, dict[int, int]] = {"i": {}, "f": {}}
        for term in _all_terms(auto):
            self._collect(term)
        sizes = [len(self.consts[k]) + len(self.registers[k]) + len(self.columns[k]) for k in ("i", "f")]
        self.outputs = max((len(words) for words in auto.last.values()), default=0)
        self.out = max(sizes)
        self.first = self.out + 2 * self.outputs
        self.most = self.first

    def _collect(self, term: Term) -> None:
        if term.op == "const":
            self.consts[term.kind].setdefault(term.payload, len(self.consts[term.kind]))
        if term.op == "item":
            self.columns[term.kind].setdefault(term.payload, len(self.columns[term.kind]))
        for a in term.args:
            self._collect(a)

    def register(self, position: int, slot: str, kind: str) -> int:
        return len(self.consts[kind]) + self.registers[kind].index(self.auto.register(position, slot))

    def place(self, term: Term, position: int, fresh: dict[Term, int]) -> int:
        """Where a term's value lies; emits what computes it."""
        if term.op == "const":
            return self.consts[term.kind][term.payload]
        if term.op == "slot":
            return self.register(position, term.payload, term.kind)
        if term.op == "item":
            base = len(self.consts[term.kind]) + len(self.registers[term.kind])
            return base + self.columns[term.kind][term.payload]
        if term not in fresh:
            args = [self.place(a, position, fresh) for a in term.args]
            fresh[term] = self.first + len(fresh)
            self.most = max(self.most, fresh[term] + 1)
            self.emit(_opcode(term), fresh[term], args, self._ring(term))
        return fresh[term]

    def _ring(self, term: Term) -> int:
        names = [r.name for r in self.auto.rings]
        return names.index(term.payload) if term.op in ("ring", "store") else 0

    def emit(self, op: str, target: int, args: list[int], ring: int = 0) -> None:
        a, b, c = [*args, 0, 0, 0][:3]
        if op in ("ring", "store"):
            c = ring
        self.code.append((CODE[op], target, a, b, c))

    def move(self, move: Move) -> tuple[int, int]:
        """The instructions of a move: compute everything, then write registers."""
        begin = len(self.code)
        fresh: dict[Term, int] = {}
        writes: list[tuple[str, int, int]] = []
        need = self.auto.need[move.target]
        for slot in sorted(need | set(move.put)):
            if slot.startswith(STORE):
                self.place(move.put[slot], move.source, fresh)
                continue
            kind = self.auto.kinds[slot]
            term = move.put.get(slot, Term("slot", kind, payload=slot))  # type: ignore[arg-type]
            source = self.place(term, move.source, fresh)
            target = self.register(move.target, slot, kind)
            if source != target:
                safe = self.first + len(fresh)
                fresh[Term("copy", kind, payload=slot)] = safe  # type: ignore[arg-type]
                self.most = max(self.most, safe + 1)
                self.emit(f"copy_{kind}", safe, [source])
                writes.append((f"copy_{kind}", target, safe))
        for op, target, source in writes:
            self.emit(op, target, [source])
        return begin, len(self.code)

    def output(self, position: int) -> tuple[int, int]:
        begin = len(self.code)
        fresh: dict[Term, int] = {}
        for i, word in enumerate(self.auto.last[position]):
            self.emit(f"copy_{word.term.kind}", self.out + 2 * i, [self.place(word.term, position, fresh)])
            self.emit("copy_i", self.out + 2 * i + 1, [self.place(word.there, position, fresh)])
        return begin, len(self.code)


def _opcode(term: Term) -> str:
    if term.op in ("i2f", "not", "and", "or", "div", "sqrt", "exp", "ring", "store"):
        return term.op
    kind = term.args[-1].kind if term.op in ("eq", "lt") else term.kind
    return f"{term.op}_{kind}"


def _all_terms(auto: Automaton) -> list[Term]:
    terms = [t for some in auto.moves.values() for m in some for t in m.put.values()]
    return terms + [t for words in auto.last.values() for w in words for t in (w.term, w.there)]


def tables(auto: Automaton) -> Tables:
    """The automaton as arrays."""
    coder = _Coder(auto)
    order = sorted(auto.masks)
    number = {p: i for i, p in enumerate(order)} | {START: len(order)}
    letters = len(auto.alphabet.minterms)
    index = np.zeros((len(order) + 1, letters + 1), np.int64)
    moves: list[tuple[int, int, int]] = []
    for p in [*order, START]:
        coded = [(auto.masks[m.target], number[m.target], *coder.move(m)) for m in auto.moves.get(p, [])]
        for c in range(letters):
            index[number[p], c] = len(moves)
            moves += [(t, a, b) for mask, t, a, b in coded if mask >> c & 1]
        index[number[p], letters] = len(moves)
    outputs = np.full((len(order), 2), -1, np.int64)
    for p in auto.last:
        if p in number:
            outputs[number[p]] = coder.output(p)
    kinds = next(([w.term.kind for w in words] for words in auto.last.values()), [])
    places = [(coder.out + 2 * i, int(k == "f"), coder.out + 2 * i + 1) for i, k in enumerate(kinds)]
    return Tables(
        np.array(list(coder.consts["i"]), np.int64),
        np.array(list(coder.consts["f"]), np.float64),
        coder.registers["i"],
        coder.registers["f"],
        list(coder.columns["i"]),
        list(coder.columns["f"]),
        np.array(coder.code, np.int64).reshape(-1, 5),
        np.array(moves, np.int64).reshape(-1, 3),
        index,
        outputs,
        np.array(places, np.int64).reshape(-1, 3),
        coder.most + 1,
        order,
    )
