"""The secret of a query: drawn when it is made, shared by its steps, saved with what they save.

Identities of rows lie in saved state, so state is of use only under the secret that it was saved under.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from caesura.errors import StreamError
from caesura.events.chunks import STATE_FORMAT, Chunks, SavedJson, later, of_0_1_0
from caesura.events.identity import Secret
from caesura.plan import Operator

SECRET = "secret"
"""The chunk that holds it."""
FORMAT = "format"
"""The chunk that holds the number of the format of all the others."""


class Keeper:
    """Hands the secret of a query to its steps, and saves it once."""

    def __init__(self, secret: Secret | None = None) -> None:
        self.secret = secret or Secret.drawn()
        self._saved = False

    def snapshot(self) -> Chunks:
        """The secret, if it was not saved yet."""
        saved, self._saved = self._saved, True
        return {} if saved else {SECRET: self.secret.key, FORMAT: str(STATE_FORMAT).encode()}

    def restore(self, chunks: Mapping[str, bytes], operators: Iterable[Operator]) -> None:
        """Takes the secret of saved state, for all steps."""
        if SECRET not in chunks:
            raise forgotten("the saved state")
        self._saved = True
        self.secret.become(Secret(chunks[SECRET]))
        for operator in operators:
            operator.secret.become(self.secret)


def refuse_foreign(chunks: Mapping[str, bytes], sources: Iterable[str], *, claims: bool) -> None:
    """Refuses what no snapshot of a query with these sources was."""
    lacks = [name for name in ("offsets", *(("claims",) if claims else ())) if name not in chunks]
    if not lacks:
        refuse_format(chunks)
    foreign = [] if lacks else sorted(set(SavedJson("offsets").read(chunks)) - set(sources))
    if lacks or foreign:
        what = f"there is no '{lacks[0]}' in it" if lacks else f"it has read a source '{foreign[0]}'"
        raise StreamError(
            f"this is no saved state of this query: {what}.",
            remedy="Give all that snapshot() gave, of a query with the same plan.",
        )


def refuse_format(chunks: Mapping[str, bytes]) -> None:
    """Refuses what another version saved in a form that this one does not read."""
    if FORMAT not in chunks:
        raise of_0_1_0("the saved state")
    if int(chunks[FORMAT]) > STATE_FORMAT:
        raise later("the saved state", int(chunks[FORMAT]), STATE_FORMAT)


def forgotten(what: str) -> StreamError:
    """State whose identities nobody can compute any more."""
    return StreamError(
        f"{what} has no secret: a version made it whose row identities had no key.",
        remedy="Start anew from the sources: what was saved cannot be used any more.",
    )
