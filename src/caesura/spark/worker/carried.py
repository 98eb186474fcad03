"""State that goes on under another plan: chunks get the names that steps have there, when they are read next.

State lies under the fingerprints of steps. A bucket that got no rows since keeps the names of an earlier
plan; the number in its chunk ``plan`` says which, and the later changes are made one after the other.

>>> carried = CarriedState(((2, {"a" * 16: "b" * 16}),))
>>> carried.over({"query/aaaaaaaaaaaaaaaa/rows": b"1"})[0]["query/bbbbbbbbbbbbbbbb/rows"]
b'1'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from caesura.events.chunks import Chunks, SavedJson, json_chunk
from caesura.runtime.buckets.owner import OWNER_PLAN

PLAN = "plan"
FINGERPRINT = re.compile("[0-9a-f]{16}")
IN_NOTES = re.compile(b"[0-9a-f]{16}")
Names = Mapping[str, str]
"""By the fingerprint that a step had, the one that it has; "" for a step that is gone."""


@dataclass(frozen=True)
class CarriedState:
    """The changes of plan that the state of a checkpoint has gone through, each with its number."""

    changes: tuple[tuple[int, Names], ...] = ()

    def over(self, chunks: dict[str, bytes] | None) -> tuple[dict[str, bytes] | None, Chunks]:
        """The chunks of a bucket under the names of now, and what has to be written for that."""
        if not self.changes:
            return chunks, {}
        last = self.changes[-1][0]
        before = last if chunks is None else SavedJson(PLAN).read(chunks) or 0
        made = dict(chunks or {})
        for number, names in self.changes:
            if number > before:
                made = _renamed(made, names)
        made[PLAN] = json_chunk(last)
        had = chunks or {}
        moved: Chunks = {name: data for name, data in made.items() if had.get(name) != data}
        moved |= dict.fromkeys(name for name in had if name not in made)
        return None if chunks is None else made, moved


def _renamed(chunks: Mapping[str, bytes], names: Names) -> dict[str, bytes]:
    def now(found: re.Match[str]) -> str:
        return names.get(found[0], found[0])

    made: dict[str, bytes] = {}
    for name, data in chunks.items():
        if any(names.get(one) == "" for one in FINGERPRINT.findall(name)) or name.endswith(OWNER_PLAN):
            continue  # whose it is, is said anew: the driver has compared the plans
        if data.startswith(b"{"):  # labels stand in notes too; random bytes may begin so
            data = IN_NOTES.sub(lambda found: names.get(found[0].decode(), found[0].decode()).encode(), data)
        made[FINGERPRINT.sub(now, name)] = data
    return made
