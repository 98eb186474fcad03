"""The secret of a query: drawn when it is made, shared by its steps, saved with what they save.

Identities of rows lie in saved state, so state is of use only under the secret that it was saved under.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from caesura.errors import StreamError
from caesura.events.identity import Secret
from caesura.events.rows import Chunks
from caesura.plan import Operator

SECRET = "secret"
"""The chunk that holds it."""


class Keeper:
    """Hands the secret of a query to its steps, and saves it once."""

    def __init__(self, secret: Secret | None = None) -> None:
        self.secret = secret or Secret.drawn()
        self._saved = False

    def snapshot(self) -> Chunks:
        """The secret, if it was not saved yet."""
        saved, self._saved = self._saved, True
        return {} if saved else {SECRET: self.secret.key}

    def restore(self, chunks: Mapping[str, bytes], operators: Iterable[Operator]) -> None:
        """Takes the secret of saved state, for all steps."""
        if SECRET not in chunks:
            raise forgotten("the saved state")
        self._saved = True
        self.secret.become(Secret(chunks[SECRET]))
        for operator in operators:
            operator.secret.become(self.secret)


def forgotten(what: str) -> StreamError:
    """State whose identities nobody can compute any more."""
    return StreamError(
        f"{what} has no secret: a version made it whose row identities had no key.",
        remedy="Start anew from the sources: what was saved cannot be used any more.",
    )
