"""Queries as text, and where in the text each part stands.

>>> from caesura.expr import col
>>> from caesura.qre.language.build import atom, iter_
>>> shown(iter_(atom(col("k") == 1), 0, col("acc") + 1))
'iter(atom(k = 1), 0, acc + 1)'
"""

from __future__ import annotations

from caesura.qre.language import query as q

WIDTH = 100


class _Writer:
    def __init__(self) -> None:
        self.text = ""
        self.spans: dict[q.Query, tuple[int, int]] = {}

    def put(self, *parts: object) -> None:
        for part in parts:
            if isinstance(part, q.Query):
                begin = len(self.text)
                self.query(part)
                self.spans.setdefault(part, (begin, len(self.text)))
            else:
                self.text += str(part)

    def listed(self, parts: list[tuple[str, q.Query]]) -> None:
        for i, (name, part) in enumerate(parts):
            self.put(", " if i else "", "" if name.startswith("_") else f"{name}=", part)

    def query(self, query: q.Query) -> None:
        match query:
            case q.Atom():
                self.put("atom(", query.predicate, ")" if query.op is None else f", {query.op})")
            case q.Value():
                self.put("value(", query.op, ")")
            case q.Split(parts=(q.Split(), *_)) if len(repeated(query)) > 3:
                self.put("iter_n(", query.parts[1], ", ", len(repeated(query)), ", ", query.op, ")")
            case q.Split() | q.Combine():
                single = isinstance(query, q.Combine) and len(query.parts) == 1
                self.put("apply(" if single else "split(" if isinstance(query, q.Split) else "combine(")
                self.listed(list(zip(query.names, query.parts, strict=True)))
                self.put(", ", query.op, ")")
            case q.Iter(fold=None):
                self.put("iter(", query.body, ", ", query.init, ", ", query.op, ")")
            case q.Iter():
                self.put("iter(", query.body, ", ", query.fold, ")")
            case q.Or():
                self.put("or_(")
                self.listed([("_", p) for p in query.parts])
                self.put(")")
            case q.MapCollect():
                keys = ", ".join(str(e) for _, e in query.by)
                self.put("map_collect(", query.sync, ", ", keys, ", ", query.body, ")")
            case q.SlidingWindow():
                self.put("wnd(", query.body, ", ", query.size, ", ", query.fold, ")")
            case q.Partition():
                self.put("partition(", query.body, ", by ", ", ".join(str(e) for _, e in query.by), ")")
            case q.Pipe():
                self.put(query.first, " >> ", query.second)


def repeated(query: q.Split) -> list[q.Split]:
    """The splits of an `iter_n`: one body again and again, behind a value."""
    nodes = q.spine(query)
    same = all(len(n.parts) == 2 and n.parts[1] is query.parts[1] and n.op is query.op for n in nodes)
    return nodes if same and isinstance(nodes[0].parts[0], q.Value) else []


def shown(query: q.Query) -> str:
    """A query on one line."""
    writer = _Writer()
    writer.put(query)
    return writer.text


def underlined(query: q.Query, part: q.Query) -> str:
    """A query on one line, and one of its parts underlined on the next; long ones are cut."""
    writer = _Writer()
    writer.put(query)
    begin, end = writer.spans.get(part, (0, len(writer.text)))
    text = writer.text
    if len(text) > WIDTH:
        left = max(0, min(begin - 20, len(text) - WIDTH))
        right = min(len(text), left + WIDTH)
        text = ("…" if left else "") + text[left:right] + ("…" if right < len(text) else "")
        shift = left - (1 if left else 0)
        begin, end = begin - shift, min(end - shift, len(text))
    return f"  {text}\n  {' ' * begin}{'^' * max(1, end - begin)}"
