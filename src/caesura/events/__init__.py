"""Events with lifetimes: pages, identities, weighted rows, histories, drawings.

>>> from caesura.events import History, parse
>>> items = parse('''
...  LE  RE | p  |
...   1  inf | P1 | +
...   1  inf->10 | P1 | -
...   1  10->5 | P1 | -
...   4  9  | P2 | +
... ''')
>>> print(History.of(items, items[0].schema))
 LE  RE | p  |
  1  5  | P1 | +
  4  9  | P2 | +
"""

from caesura.events.columns import ColumnStore
from caesura.events.delta import Deltas, deltas, net_page
from caesura.events.draw import draw, parse
from caesura.events.history import History, Row
from caesura.events.identity import identity
from caesura.events.item import Item, pages
from caesura.events.legal import violations
from caesura.events.page import NO_NEW_END, Page, concat, empty_page, take_rows
from caesura.events.types import check_schema, plain_schema
from caesura.misuse import renamed_members

__all__ = [
    "NO_NEW_END",
    "ColumnStore",
    "Deltas",
    "History",
    "Item",
    "Page",
    "Row",
    "check_schema",
    "concat",
    "deltas",
    "draw",
    "empty_page",
    "identity",
    "net_page",
    "pages",
    "parse",
    "plain_schema",
    "take_rows",
    "violations",
]

__getattr__ = renamed_members(__name__, KEPT="NO_NEW_END")
