"""Files that are appended to, as logs are: they are read up to their last whole line, and later read on.

The file that was read last may be longer at the next start, and must begin with what was read of it: how
many bytes that were is saved with the offset, and a hash of them. Files before it must be as they were.

>>> import tempfile
>>> from pathlib import Path
>>> from caesura.io.sources.formats import CSV
>>> log = Path(tempfile.mkdtemp()) / "clicks.csv"
>>> _ = log.write_text("t,id\\n1,7\\n2,8")
>>> reader = AppendedFileReader(log, CSV)
>>> [raw.batch.to_pylist() for raw in reader.read({})]
[[{'t': 1, 'id': 7}]]
>>> known = reader.passed({0: 1})
>>> _ = log.write_text("t,id\\n1,7\\n2,80\\n")
>>> reader.displaced(known), [raw.batch.to_pylist() for raw in reader.read({0: 1})]
('', [[{'t': 2, 'id': 80}]])
>>> _ = log.write_text("t,id\\n9,7\\n2,80\\n")
>>> reader.displaced(known).partition(" 'clicks")[2]
".csv' does not begin any more with what was read of it"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from caesura.io.places import Place
from caesura.io.sources.file_parts import FirstPart, begins_with, may_grow, part_of, whole_lines
from caesura.io.sources.files import BY_LINES, FileReader
from caesura.io.sources.passed import FILES, PART, FileState, PassedFiles, displaced


class AppendedFileReader(FileReader):
    """A file, or the files of a folder, of which the one that was read last may grow at its end."""

    appended = True
    put_back = (
        "A log may grow at its end while it is the last that was read: put back what else was changed, with "
        "its time (cp -p), and begin another log under a name that sorts behind; or start anew without the "
        "saved state."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        self._read_parts: dict[str, Mapping[str, int]] = {}
        """Of the files that reading has come by, how much is read of each and a hash of that."""
        super().__init__(*args, **options)
        self.complete = False

    def _coming_by(self) -> Iterator[tuple[Place, Callable[[int], PassedFiles]]]:
        self._passed, self._read_parts = PassedFiles(), {}
        files, states = self.files(), self._states()
        for file in files:
            state = states.get(file.name)
            if state is None or not may_grow(file.name):
                yield file, partial(self._begins, file, state)
                continue
            length = whole_lines(file, state[0]) if file is files[-1] else state[0]
            part = FirstPart(file.storage, file.path, length)
            yield part, partial(self._begins, part, state)

    def _begins(self, file: Place, state: FileState, row: int) -> PassedFiles:
        self._passed.add(file.name, row, state)
        if isinstance(file, FirstPart):
            self._read_parts[file.name] = part_of(file, file.length)
        return self._passed

    def _part_read(self, offset: int) -> Mapping[str, int]:
        return self._read_parts.get(self._passed.last_up_to(offset)[0], {})

    def displaced(self, passed: Mapping[str, int]) -> str:
        if PART not in passed:
            return super().displaced(passed)
        files, states = self.files(), self._states()
        some = {file.name: states.get(file.name) for file in files}
        why = displaced(passed, some, last_may_grow=True)
        last = files[passed[FILES] - 1] if not why else None
        if last is not None and not begins_with(last, passed):
            why = f"'{last.name}' does not begin any more with what was read of it"
        return f"in '{self.path}' {why}" if why else ""


def may_be_logs(reader: FileReader) -> FileReader:
    """Names this way of reading where files of lines are refused that have changed."""
    if reader.format.name in BY_LINES:
        reader.put_back = f"{FileReader.put_back} Files that grow at their end are read with appended=True."
    return reader
