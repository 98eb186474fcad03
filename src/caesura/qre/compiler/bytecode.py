"""Moves as three-address code, for the kernel that runs every query from tables.

Values live in two scratch arrays, one of whole numbers and one of doubles: constants first, then the
key's registers as they were, then the item's columns, then what is computed. `put` writes a register;
what was read before stays as it was, so several threads may move at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from caesura.kernels.hashing import I64
from caesura.qre.compiler import ir
from caesura.qre.compiler.automaton import SPARE, Move, PatternAutomaton
from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import flattened
from caesura.qre.compiler.states import AutomatonState
from caesura.qre.compiler.threads import STORE, Refold

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
    "put_i",
    "put_f",
    "push_i",
    "push_f",
    "make",
    "ring_f",
    "store_f",
    "jump",
    "leave",
    "ring_copy",
    "call",
    "carried",
    "borrowed",
    "too_large",
    "both",
    "less",
    "spoilt",
)
PLAIN = ("i2f", "not", "and", "or", "div", "sqrt", "exp", "store", *OPS[-6:])
"""What has one form only."""
CODE = {name: number for number, name in enumerate(OPS)}
UNKNOWN = -3
"""The next state of a state that is not expanded yet."""


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
    steps: I64
    """Per state and letter: (next state or -1, first instruction, one past the last, whether it answers)."""
    resting: I64
    """Per state 1 if it is as good as the start, 2 if nothing can follow, else 0."""
    out_place: int
    out_kinds: str
    scratch: int
    coder: _Coder = field(repr=False)
    _coded: dict[tuple[Move, ...], tuple[int, int]] = field(default_factory=dict)
    _known: int = 0
    _expanded: int = 0
    _lines: int = 0

    def grow(self, auto: PatternAutomaton) -> None:
        """Writes down the states that were expanded since; rows of others are UNKNOWN."""
        known = len(auto.states)
        self.steps = _longer(self.steps, known, UNKNOWN)
        self.resting = _longer(self.resting, known, 0)
        for number in range(self._known, known):
            state = auto.states[number]
            self.resting[number] = 1 if state.resting else 0 if state.ahead else 2
        self._known = known
        for number in auto.making.expanded[self._expanded :]:
            self._write(number, auto.states[number])
        self._expanded = len(auto.making.expanded)
        done, wanted = self._lines, len(self.coder.code)
        self.code = _longer(self.code, wanted, 0)
        self.code[done:wanted] = np.array(self.coder.code[done:], np.int64).reshape(-1, 5)
        self._lines = wanted
        self.scratch = self.coder.last_used + 1

    def _write(self, number: int, state: AutomatonState) -> None:
        self.steps[number] = 0
        self.steps[number, :, 0] = -1
        for c, (to, some) in state.moves.items():
            key = tuple(some)
            if key not in self._coded:
                apart = self.coder.auto.grows and not self.coder.auto.parted
                self._coded[key] = (self.coder.calls if apart else self.coder.step)(some)
            self.steps[number, c] = (to, *self._coded[key], int(any(m.accepts for m in some)))


class _Coder:
    def __init__(self, auto: PatternAutomaton) -> None:
        self.auto = auto
        self.code: list[tuple[int, int, int, int, int]] = []
        self.consts: dict[str, dict[float, int]] = {"i": {0: 0, 1: 1}, "f": {0.0: 0}}
        self.registers = {k: [r for r, kind in auto.registers.items() if kind == k] for k in ("i", "f")}
        self._places = {k: {r: j for j, r in enumerate(some)} for k, some in self.registers.items()}
        self.columns: dict[str, dict[int, int]] = {"i": {}, "f": {}}
        for term in _all_terms(auto):
            self._collect(term)
        sizes = [len(self.consts[k]) + len(self.registers[k]) + len(self.columns[k]) for k in ("i", "f")]
        self.outputs = max((len(words) for words in auto.last.values()), default=0)
        self.out = max(sizes)
        self.first = self.out + 3 * self.outputs
        self.last_used = self.first
        self.used = 0
        self.locals: dict[str, int] = {}
        self.written: dict[Move, tuple[int, int]] = {}
        self._names = {r.name: j for j, r in enumerate(auto.rings)}
        for j, ring in reversed(list(enumerate(auto.rings))):
            self._names[ring.name.split("@")[0]] = j

    def _collect(self, term: Term) -> None:
        if term.op == "const":
            self.consts[term.kind].setdefault(term.payload, len(self.consts[term.kind]))
        if term.op == "item":
            self.columns[term.kind].setdefault(term.payload, len(self.columns[term.kind]))
        for a in term.args:
            self._collect(a)

    def register(self, position: int, slot: str, kind: str) -> int:
        return len(self.consts[kind]) + self._places[kind][self.auto.register(position, slot)]

    def place(self, term: Term, fresh: dict[Term, int]) -> int:
        """Where a term's value lies; emits what computes it."""
        if term.op == "const":
            return self.consts[term.kind][term.payload]
        if term.op == "local":
            return self.locals[term.payload]
        if term.op == "at":
            position, slot = term.payload
            return self.register(position, slot, term.kind)
        if term.op == "item":
            base = len(self.consts[term.kind]) + len(self.registers[term.kind])
            return base + self.columns[term.kind][term.payload]
        if term not in fresh:
            args = [self.place(a, fresh) for a in term.args]
            if term.op in ("defer", "collect"):
                return self._deferred(term, args, fresh)
            if term.op == "refold":
                self._refolded(term, args, fresh)
                return fresh[term]
            fresh[term] = self._room()
            ring = self.ring(*term.payload) if term.op == "ring" else 0
            self.emit(_opcode(term), fresh[term], args, ring)
        return fresh[term]

    def _deferred(self, term: Term, args: list[int], fresh: dict[Term, int]) -> int:
        """Writes down what is to be worked out later, and of what; a map is of nothing but its row."""
        for a, place in zip(term.args, args, strict=True):
            self.emit(f"push_{a.kind}", 0, [place])
        fresh[term] = self._room()
        number = term.payload if term.op == "defer" else -1 - term.payload
        self.emit("make", fresh[term], [number, len(args)])
        return fresh[term]

    def _room(self) -> int:
        """A place for a value that is worked out in this step."""
        self.used += 1
        self.last_used = max(self.last_used, self.first + self.used)
        return self.first + self.used - 1

    def _refolded(self, term: Term, args: list[int], fresh: dict[Term, int]) -> None:
        """A loop over a window's values, oldest first, and once more for the one that has come."""
        number, _, position = term.payload
        spec = self.auto.refolds[number]
        head, held = term.args[:2]
        size, zero = ir.const(spec.size), ir.const(0)
        count = ir.select(ir.eq(held, size), ir.const(spec.size - 1), held)
        first = ir.sub(head, count)
        left, at = self._room(), self._room()
        self.emit("copy_i", left, [self.place(count, fresh)])
        self.emit(
            "copy_i", at, [self.place(ir.select(ir.lt(first, zero), ir.add(first, size), first), fresh)]
        )
        for j, start in enumerate(spec.init):
            known = Term("refold", start.kind, term.args, (number, j, position))
            fresh[known] = self.locals[f"a{j}"] = self._room()
            self.emit(f"copy_{start.kind}", fresh[known], [self.place(start, fresh)])
        for j in range(len(args) - 2):
            self.locals[f"x{j}"] = self._room()
        top = len(self.code)
        self.emit("leave", 0, [left])
        for j, name in enumerate(n for pair in spec.rings for n in pair):
            op = "ring_f" if term.args[2 + j].kind == "f" else "ring"
            self.emit(op, self.locals[f"x{j}"], [at], self.ring(name, position))
        self._once(spec)
        self.emit("add_i", at, [at, self.consts["i"][1]])
        wrapped = Term("local", "i", payload="at")
        self.locals["at"] = at
        self.emit("copy_i", at, [self.place(ir.select(ir.eq(wrapped, size), zero, wrapped), {})])
        self.emit("sub_i", left, [left, self.consts["i"][1]])
        self.emit("jump", top, [])
        self.code[top] = (CODE["leave"], len(self.code), left, 0, 0)
        for j, place in enumerate(args[2:]):
            self.emit(f"copy_{term.args[2 + j].kind}", self.locals[f"x{j}"], [place])
        self._once(spec)

    def _once(self, spec: Refold) -> None:
        """One value into the fold."""
        fresh: dict[Term, int] = {}
        places = [self.place(t, fresh) for t in spec.step]
        stored = [self._room() for _ in places]
        for into, place, t in zip(stored, places, spec.step, strict=True):
            self.emit(f"copy_{t.kind}", into, [place])
        for j, (place, t) in enumerate(zip(stored, spec.step, strict=True)):
            self.emit(f"copy_{t.kind}", self.locals[f"a{j}"], [place])

    def ring(self, name: str, position: int) -> int:
        """The number of a ring; of a thread that is not in the window any will do."""
        return self._names.get(f"{name}@{position}", self._names[name])

    def _kept(self, term: Term, position: int) -> bool:
        """Whether a thread at a position is in the window that is written to."""
        name = term.payload if term.op == "store" else self.auto.stacks[term.payload].rings[0][0]
        return name not in self.auto.parted or f"{name}@{position}" in self._names

    def _turned_over(self, term: Term, places: list[int], position: int) -> None:
        """If the second says so: every value from the newest to the oldest is joined with all newer ones."""
        spec = self.auto.stacks[term.payload]
        one, rings = self.consts["i"][1], [self.ring(n, position) for pair in spec.rings for n in pair]
        ops = ["ring_f" if t.kind == "f" else "ring" for t in spec.join]
        at, left = self._room(), self._room()
        skip = len(self.code)
        self.emit("leave", 0, [places[1]])
        self.emit("copy_i", at, [places[0]])
        self.emit("copy_i", left, [self.consts["i"][spec.size - 2]])
        for j, (op, ring) in enumerate(zip(ops, rings, strict=True)):
            self.locals[f"a{j}"], self.locals[f"b{j}"] = self._room(), self._room()
            self.emit(op, self.locals[f"b{j}"], [at], ring)
        top = len(self.code)
        self.emit("leave", 0, [left])
        self.locals["at"] = at
        before, zero = Term("local", "i", payload="at"), ir.const(0)
        last = ir.const(spec.size - 1)
        back = ir.select(ir.eq(before, zero), last, ir.sub(before, ir.const(1)))
        self.emit("copy_i", at, [self.place(back, {})])
        for j, (op, ring) in enumerate(zip(ops, rings, strict=True)):
            self.emit(op, self.locals[f"a{j}"], [at], ring)
        fresh: dict[Term, int] = {}
        made = [self.place(t, fresh) for t in spec.join]
        for t, place, ring in zip(spec.join, made, rings, strict=True):
            self.emit("store_f" if t.kind == "f" else "store", at, [place + (ring << 32)])
        for j, (op, ring) in enumerate(zip(ops, rings, strict=True)):
            self.emit(op, self.locals[f"b{j}"], [at], ring)
        self.emit("sub_i", left, [left, one])
        self.emit("jump", top, [])
        self.code[top] = (CODE["leave"], len(self.code), left, 0, 0)
        self.code[skip] = (CODE["leave"], len(self.code), places[1], 0, 0)

    def _carried(self, moves: list[Move]) -> None:
        """The windows that threads are in go with them, all at once; one ring is for what is on its way."""
        todo: list[tuple[int, int]] = []
        for move in moves:
            for name in sorted(self.auto.parted):
                pair = [self._names.get(f"{name}@{p}", -1) for p in (move.source, move.target)]
                if min(pair) >= 0 and pair[0] != pair[1]:
                    todo.append((pair[0], pair[1]))
        while todo:
            free = next((c for c in todo if all(c[1] != other[0] for other in todo)), None)
            if free is not None:
                self.emit("ring_copy", free[1], [free[0]])
                todo.remove(free)
                continue
            spare, busy = self._names[SPARE], todo[0][1]
            self.emit("ring_copy", spare, [busy])
            todo = [(spare if a == busy else a, b) for a, b in todo]

    def emit(self, op: str, target: int, args: list[int], ring: int = 0) -> None:
        a, b, c = [*args, 0, 0, 0][:3]
        if op in ("ring", "ring_f"):
            c = ring
        if op in ("store", "store_f"):
            a, c = args[0] & 0xFFFFFFFF, args[0] >> 32
        self.code.append((CODE[op], target, a, b, c))

    def calls(self, moves: list[Move]) -> tuple[int, int]:
        """As `step`, by the code of each move, which is written once; what threads read is not written to."""
        for move in moves:
            if move not in self.written:
                self.written[move] = self.step([move])
        begin = len(self.code)
        for move in moves:
            first, last = self.written[move]
            self.emit("call", first, [last])
        return begin, len(self.code)

    def step(self, moves: list[Move]) -> tuple[int, int]:
        """The instructions of several threads' moves and of the answer: compute everything, then write."""
        begin = len(self.code)
        self.used = 0
        fresh: dict[Term, int] = {}
        writes: list[tuple[str, int, int]] = []
        turns: list[tuple[Term, list[int], int]] = []
        for move in moves:
            writes += self._moved(move, fresh)
            for term in (t for t in move.put.values() if t.op == "turn" and self._kept(t, move.target)):
                turns.append((term, [self.place(_at(a, move.source), fresh) for a in term.args], move.target))
            if move.accepts:
                self._answered(move, fresh)
        self._carried(moves)
        for op, target, source in writes:
            self.emit(op, target, [source])
        for turn in turns:
            self._turned_over(*turn)
        return begin, len(self.code)

    def _moved(self, move: Move, fresh: dict[Term, int]) -> list[tuple[str, int, int]]:
        writes: list[tuple[str, int, int]] = []
        for slot in sorted(self.auto.need[move.target]):
            kind = self.auto.kinds[slot]
            term = move.put.get(slot, Term("slot", kind, payload=slot))  # type: ignore[arg-type]
            source = self.place(_at(term, move.source), fresh)
            target = self.register(move.target, slot, kind)
            if source != target:
                writes.append((f"put_{kind}", target - len(self.consts[kind]), source))
        for slot, term in move.put.items():
            if slot.startswith(STORE) and term.op == "store" and self._kept(term, move.target):
                head, x = (self.place(_at(a, move.source), fresh) for a in term.args)
                op = "store_f" if term.kind == "f" else "store"
                writes.append((op, head, x + (self.ring(term.payload, move.target) << 32)))
        return writes

    def _answered(self, move: Move, fresh: dict[Term, int]) -> None:
        """The value after a move, in terms of what was before it."""
        for i, word in enumerate(move.answer):
            for j, term in enumerate(word.terms):
                now = _at(term, move.source)
                self.emit(f"copy_{now.kind}", self.out + 3 * i + j, [self.place(now, fresh)])


def _at(term: Term, position: int) -> Term:
    """A term whose slots are those of one position."""
    if term.op == "slot":
        return Term("at", term.kind, payload=(position, term.payload))
    if not term.args:
        return term
    if term.op in ("ring", "refold"):
        inner = tuple(_at(a, position) for a in term.args)
        where = (term.payload, position) if term.op == "ring" else (*term.payload, position)
        return Term(term.op, term.kind, inner, where)
    return Term(term.op, term.kind, tuple(_at(a, position) for a in term.args), term.payload)


def _opcode(term: Term) -> str:
    if term.op == "ring":
        return "ring_f" if term.kind == "f" else "ring"
    if term.op in PLAIN:
        return term.op
    kind = term.args[-1].kind if term.op in ("eq", "lt") else term.kind
    return f"{term.op}_{kind}"


def _all_terms(auto: PatternAutomaton) -> list[Term]:
    terms = [t for some in auto.moves.values() for m in some for t in m.put.values()]
    for spec in auto.refolds:
        terms += [*spec.init, *spec.step, ir.const(spec.size), ir.const(spec.size - 1)]
    for stack in auto.stacks:
        terms += [*stack.join, ir.const(stack.size - 1), ir.const(stack.size - 2)]
    return terms + [t for some in auto.moves.values() for m in some for w in m.answer for t in w.terms]


def _longer(held: I64, rows: int, rest: int) -> I64:
    """An array with at least so many rows: as many, at first, and then by doubling."""
    if rows <= len(held):
        return held
    out = np.full((rows if len(held) == 0 else 2 * rows, *held.shape[1:]), rest, np.int64)
    out[: len(held)] = held
    return out


def tables(auto: PatternAutomaton) -> Tables:
    """The automaton as arrays."""
    coder = _Coder(auto)
    made = Tables(
        np.array(list(coder.consts["i"]), np.int64),
        np.array(list(coder.consts["f"]), np.float64),
        coder.registers["i"],
        coder.registers["f"],
        list(coder.columns["i"]),
        list(coder.columns["f"]),
        np.zeros((0, 5), np.int64),
        np.zeros((0, len(auto.alphabet.minterms) + 1, 4), np.int64),  # the last letter leads nowhere
        np.zeros(0, np.int64),
        coder.out,
        "".join(kind for _, kind, _ in flattened(auto.type)),
        0,
        coder,
    )
    made.grow(auto)
    return made
