"""Each left event with the one right event of its key that starts nearest before or after it: `join_asof`."""

from caesura.ops.asof.node import DIRECTIONS, AsOf, Direction

__all__ = ["DIRECTIONS", "AsOf", "Direction"]
