"""Kernels written into the kernels that call them: a call counts references to each array it is given.

That costs more than what a small kernel does, and the compiler does not find it out by itself. A kernel
that is written in returns nothing, and is called as a statement, with names and numbers.

>>> source = inlined("def f(a, n):\\n    for i in range(n):\\n        g(a, i)\\n",
...                  {"g": "def g(out, at):\\n    twice = 2 * at\\n    out[at] = twice\\n"})
>>> print(source)
def f(a, n):
    for i in range(n):
        g_twice = 2 * i
        a[i] = g_twice
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Mapping
from types import FunctionType


def inlined(source: str, callees: Mapping[str, str]) -> str:
    """The source of a function with the sources of others in the place of calls to them."""
    tree = _plain(source)
    bodies = {name: _plain(text) for name, text in callees.items()}
    return ast.unparse(_Inline(bodies).visit(tree))


def written_in(function: FunctionType, callees: Mapping[str, FunctionType]) -> FunctionType:
    """A function with calls written in; named by what it says, so that its machine code may be kept."""
    sources = {name: inspect.getsource(f) for name, f in callees.items()}
    text = inlined(inspect.getsource(function), sources)
    scope: dict[str, object] = {}
    for own in (*callees.values(), function):
        scope |= own.__globals__
    place = function.__code__
    exec(compile("\n" * (place.co_firstlineno - 1) + text, place.co_filename, "exec"), scope)
    made = scope[function.__name__]
    assert isinstance(made, FunctionType)
    made.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    made.__module__ = function.__module__
    return made


def _plain(source: str) -> ast.FunctionDef:
    """A function without decorators, annotations and docstring."""
    made = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(made, ast.FunctionDef)
    made.decorator_list, made.returns = [], None
    for arg in made.args.args:
        arg.annotation = None
    if ast.get_docstring(made) is not None:
        made.body = made.body[1:]
    return made


class _Inline(ast.NodeTransformer):
    def __init__(self, bodies: dict[str, ast.FunctionDef]) -> None:
        self.bodies = bodies

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return node
        body = self.bodies.get(call.func.id)
        if body is None:
            return node
        given = dict(zip((a.arg for a in body.args.args), call.args, strict=True))
        if not all(isinstance(a, (ast.Name, ast.Constant)) for a in given.values()):
            raise TypeError(f"'{body.name}' wants names and numbers: {ast.unparse(call)}")
        own = {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        rename = _Rename(given, {name: f"{body.name}_{name}" for name in own})
        copies = [rename.visit(ast.parse(ast.unparse(statement)).body[0]) for statement in body.body]
        return [self.visit(made) for made in copies]


class _Rename(ast.NodeTransformer):
    def __init__(self, given: dict[str, ast.expr], own: dict[str, str]) -> None:
        self.given, self.own = given, own

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.given:
            return self.given[node.id]
        return ast.Name(self.own.get(node.id, node.id), node.ctx)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        raise TypeError("a kernel that is written in returns nothing")
