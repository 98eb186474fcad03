"""`join`: pairs of events with equal keys, alive together; and its outer, semi and anti forms.

     1   9 | k=7 a |                      3   9 | 7 a x | +        inner: lifetimes intersect
     3  12 | k=7 x |    join on k   ->    1   3 | 7 a null | +     left, too: where nothing matches

Laws: a null key matches nothing. `left`, `right`, `full`, `semi` and `anti` say per event of the
preserved side on which maximal intervals it is matched or not. State goes when the other side's
punctuation, by time or by key, shows that nothing can meet it any more.
"""

from caesura.ops.join.node import How, Join

__all__ = ["How", "Join"]
