"""A stretch of a query's input, saved as a test: the plan must still say of it what it said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from caesura.plan import Node
from caesura.runtime.inspect.saved_test import Recorded, recording_of, said_of

if TYPE_CHECKING:
    from caesura.api import Stream

SHOWN = 20
"""So many rows that only one side has are shown."""


class _Streamlike(Protocol):
    @property
    def node(self) -> Node: ...


def assert_replay(
    stream: _Streamlike, recorded: Sequence[Recorded], output: Sequence[dict[str, Any]], *, late: int = 0
) -> None:
    """Fails unless a stream makes of recorded rows what it made of them when they were saved.

    Parameters
    ----------
    stream
        The stream; rows of its sources are those that were recorded.
    recorded
        The rows, as `caesura.runtime.Recording.save_test` wrote them.
    output
        The output's history: ``LE``, ``RE`` and the columns of every row, in any order.
    late
        How many rows are refused.

    Raises
    ------
    AssertionError
        With the rows that only one side has.

    See Also
    --------
    assert_history : compares with a drawn table.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura.testing import assert_replay
    >>> slow = cz.from_rows([{"ts": 3, "mph": 62}], time="ts").where("mph < 30")
    >>> rows = [{"ts": 5, "mph": 12}, {"ts": 6, "mph": 70}]
    >>> recorded = [{"source": "read", "lane": 0, "offset": 0, "rows": rows}]
    >>> assert_replay(slow, recorded, [{"LE": 5, "RE": 6, "mph": 12}])
    """
    got, refused = said_of(recording_of(stream, recorded))
    seen, wanted = (Counter(map(repr, rows)) for rows in (got, output))
    problems = [f"only got:    {row}" for row in sorted((seen - wanted).elements())][:SHOWN]
    problems += [f"only wanted: {row}" for row in sorted((wanted - seen).elements())][:SHOWN]
    if refused != late:
        problems.append(f"{refused} rows are refused, and {late} were")
    if problems:
        raise AssertionError("the stretch says something else\n" + "\n".join(problems))


def load_stream(target: str, folder: str | Path = ".") -> Stream:
    r"""The stream of a Python file or a script of SQL, as commands find it.

    Parameters
    ----------
    target
        ``"flow.py:speeds"`` or ``"views.sql:speeds"``.
    folder
        The folder that it is named from.

    Returns
    -------
    caesura.Stream
        The stream.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from caesura.testing import load_stream
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "flow.py").write_text("import caesura as cz\nrows = cz.from_rows([{'t': 1}], time='t')")
    >>> print(load_stream("flow.py:rows", folder).preview(1).table().num_rows)
    1
    """
    from caesura.cli.load import load

    return load(str(Path(folder) / target))
