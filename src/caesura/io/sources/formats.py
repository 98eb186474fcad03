"""Formats of files: how Parquet, CSV and JSON lines are opened, and which types of theirs fit which."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.nested import element_type, is_any_list
from caesura.events.types import plain_type
from caesura.io.codecs.json import json_type
from caesura.io.codecs.json_maps import MapPaths, as_entries, map_paths
from caesura.io.codecs.protocol import RecordDecoder
from caesura.io.ingress.kept import kept
from caesura.io.places import Place

CSV_BLOCK = 8 << 20
UTF8 = "utf-8"


@dataclass(frozen=True)
class Format:
    """How files of one kind are opened."""

    name: str
    endings: tuple[str, ...]
    schema: Callable[[Place], pa.Schema]
    """The columns of a file."""
    batches: Callable[[Place, pa.Schema, int], Iterator[pa.RecordBatch]]
    """Batches of a file in the schema wanted, about so many rows each."""
    rows: Callable[[Place], int] | None = None
    """How many rows a file has, where that is cheap to know."""
    fits: Callable[[pa.DataType, pa.DataType], bool] = lambda found, wanted: False
    """Whether values of a found type can be read as the wanted one."""


def looks_like(file: Place, wanted: str) -> str:
    """What a file looks like by its first bytes, if that is not what it was read as."""
    if not file.is_file():
        return ""
    start = file.first_bytes(64)
    name, call = "CSV", "csv"
    if start[:4] == b"PAR1":
        name, call = "Parquet", "parquet"
    elif start.lstrip()[:1] == b"{":
        name, call = "JSON lines", "json"
    elif not start or any(byte < 9 or byte > 126 for byte in start):
        return ""
    known = wanted.startswith(name)
    return "" if known else f"It looks like {name}: read it with cz.read.{call}, or mend it."


def _text(file: Place, encoding: str = UTF8) -> Any:
    """A file of text as Arrow opens it; what is packed in an object store is unpacked as it is read."""
    opened = file.open()
    if not isinstance(opened, str) and file.name.endswith(".gz"):
        opened = pa.CompressedInputStream(pa.PythonFile(opened, "r"), "gzip")
    return (
        opened if encoding == UTF8 else pa.transcoding_input_stream(pa.input_stream(opened), encoding, UTF8)
    )


def encoding_advice(file: Place, name: str, problem: str) -> str:
    """What to do about a text that is not UTF-8; nothing where it is."""
    start = file.first_bytes(64) if file.is_file() and not file.name.endswith(".gz") else b""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        likely = "utf-16"
    elif b"\0" in start and name != "Parquet":
        likely = "utf-16-be" if start[:1] == b"\0" else "utf-16-le"
    elif "utf8" in problem.lower().replace("-", ""):
        likely = "latin-1"
    else:
        return ""
    anew = "rite it anew as UTF-8"
    if not name.startswith("CSV"):
        return f"It is not UTF-8: w{anew}."
    return f'Say what it is written in, cz.read.csv(..., encoding="{likely}"); or w{anew}.'


def _widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type inferred from text is a narrower guess at the wanted one."""
    types = pa.types
    if types.is_string(wanted) or types.is_large_string(wanted):
        return True
    if types.is_integer(found):
        return bool(types.is_integer(wanted) or types.is_floating(wanted) or types.is_decimal(wanted))
    if types.is_floating(found):
        return bool(types.is_floating(wanted) or types.is_decimal(wanted))
    dated = types.is_date(found) or types.is_timestamp(found)
    return bool(dated and (types.is_date(wanted) or types.is_timestamp(wanted)))


def _widens_json(found: pa.DataType, wanted: pa.DataType) -> bool:
    """As `_widens`, but a JSON number is no string; lists and structs by what is in them."""
    if is_any_list(found) and (is_any_list(wanted) or pa.types.is_map(wanted)):
        return _fits_json(found.value_type, element_type(wanted))
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        known = {field.name: field.type for field in wanted}
        return all(field.name not in known or _fits_json(field.type, known[field.name]) for field in found)
    textual = pa.types.is_string(found) or pa.types.is_date(found) or pa.types.is_timestamp(found)
    return _widens(found, wanted) and (textual or not pa.types.is_string(wanted))


def _fits_json(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pa.types.is_null(found) or found == wanted or _widens_json(found, wanted))


def _same_values(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether stored types differ only in how they are laid out."""
    return bool(plain_type(found) == plain_type(wanted))


# -- Parquet ----------------------------------------------------------------------------------------


def _parquet_schema(file: Place) -> pa.Schema:
    import pyarrow.parquet as pq

    return pq.read_schema(file.open())


def _parquet_rows(file: Place) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file.open()).num_rows)


def _parquet_batches(file: Place, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.open()) as opened:
        yield from opened.iter_batches(batch_size=size, columns=schema.names)


# -- CSV --------------------------------------------------------------------------------------------


def _csv_schema(file: Place, encoding: str = UTF8, binary: frozenset[str] = frozenset()) -> pa.Schema:
    """What the first lines have; a column is binary where its text is no UTF-8 and nobody said it is none."""
    import pyarrow.csv as pc

    if file.name.endswith(".csv") and looks_like(file, "CSV"):
        raise ValueError("its first line names no columns")
    with pc.open_csv(_text(file, encoding), **_csv_options()) as opened:
        schema = opened.schema
    for field in schema:
        if pa.types.is_binary(field.type) and field.name not in binary:
            raise ValueError(f"column '{field.name}' is not UTF-8")
    return schema


def _csv_batches(file: Place, schema: pa.Schema, size: int, encoding: str = UTF8) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pc

    options = _csv_options(column_types=schema, include_columns=schema.names)
    with pc.open_csv(_text(file, encoding), **options) as opened:
        yield from opened


def csv_in(encoding: str) -> Format:
    """CSV files that are written in an encoding."""
    try:
        name = codecs.lookup(encoding).name
        b"".decode(name)
    except (LookupError, TypeError):
        raise PlanError(
            f"there is no encoding {encoding!r}.", remedy="Name one that Python knows: 'latin-1', 'utf-16'."
        ) from None
    if name in (UTF8, "utf-8-sig", "ascii"):
        return CSV
    schema, batches = partial(_csv_schema, encoding=name), partial(_csv_batches, encoding=name)
    return replace(CSV, name=f"CSV in {name}", schema=schema, batches=batches)


def _csv_options(**more: Any) -> dict[str, Any]:
    """Null is an empty field and nothing else: the text NA may be a country."""
    import pyarrow.csv as pc

    nulls = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    return {
        "read_options": pc.ReadOptions(block_size=CSV_BLOCK),
        "convert_options": pc.ConvertOptions(**nulls, **more),
    }


# -- JSON lines -------------------------------------------------------------------------------------


def _json_schema(file: Place, maps: MapPaths | None = None) -> pa.Schema:
    """What the first lines have; maps as lists of entries, where it is known which columns are such."""
    import pyarrow.json as pj

    if maps is not None:
        lines = as_entries(next(_blocks(file), b""), maps)
        return pj.read_json(pa.BufferReader(lines), _whole(lines)).schema
    with pj.open_json(_text(file), read_options=pj.ReadOptions(block_size=CSV_BLOCK)) as opened:
        return opened.schema


def _json_batches(file: Place, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    import pyarrow.json as pj

    parsed = pa.schema([field.with_type(json_type(field.type)) for field in schema])
    parsing = pj.ParseOptions(explicit_schema=parsed, unexpected_field_behavior="ignore")
    maps = map_paths(schema)
    if maps is not None:
        for block in _blocks(file):
            lines = as_entries(block, maps)
            for batch in pj.read_json(pa.BufferReader(lines), _whole(lines), parsing).to_batches():
                yield _as_kept(_utf8(batch), schema)
        return
    reading = pj.ReadOptions(block_size=CSV_BLOCK)
    with pj.open_json(_text(file), read_options=reading, parse_options=parsing) as opened:
        checked = map(_utf8, opened)
        yield from checked if parsed == schema else (_as_kept(batch, schema) for batch in checked)


def _utf8(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose texts were looked at: Arrow takes any bytes that JSON holds."""
    batch.validate(full=True)
    return batch


def _as_kept(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [kept(batch.column(f.name), f.type)[0] for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _blocks(file: Place) -> Iterator[bytes]:
    """The lines of a file that hold anything, many at a time."""
    return (block for block in line_blocks(file) if block.strip())


def line_blocks(file: Place) -> Iterator[bytes]:
    """The lines of a file, many at a time."""
    rest = b""
    with pa.input_stream(_text(file)) as stream:
        while chunk := stream.read(CSV_BLOCK):
            whole, newline, behind = chunk.rpartition(b"\n")
            block, rest = (rest + whole + newline, behind) if newline else (b"", rest + chunk)
            if block:
                yield block
    if rest:
        yield rest


class CsvLines(RecordDecoder):
    """Reads lines of CSV, each a record: what columns they have is in the file's first line."""

    def __init__(self, names: Sequence[str], schema: pa.Schema) -> None:
        self.names, self.schema = list(names), schema
        self.key = f"csv:{','.join(names)}"

    def parse(self, data: Sequence[bytes]) -> pa.RecordBatch:
        import pyarrow.csv as pc

        lines = b"\n".join(data)
        options = _csv_options(column_types=self.schema, include_columns=self.schema.names)
        options["read_options"] = pc.ReadOptions(column_names=self.names, block_size=len(lines) + 1)
        table = pc.read_csv(pa.BufferReader(lines), **options)
        if table.num_rows != len(data):
            raise ValueError("is no line by itself")
        return table.combine_chunks().to_batches()[0]


def csv_names(line: bytes) -> list[str]:
    """The columns that the first line of a CSV file names."""
    import pyarrow.csv as pc

    return list(pc.read_csv(pa.BufferReader(line + b"\n")).schema.names)


def _whole(lines: bytes) -> Any:
    """How lines are read at once."""
    import pyarrow.json as pj

    return pj.ReadOptions(block_size=len(lines) + 1)


def for_columns(format: Format, schema: pa.Schema) -> Format:
    """A format for files that must have these columns: JSON tells maps from structs by them alone."""
    binary = frozenset(field.name for field in schema if pa.types.is_binary(field.type))
    if binary and format.endings == CSV.endings:
        opened: Any = format.schema
        return replace(format, schema=partial(opened, binary=binary))
    maps = map_paths(schema) if format.schema is _json_schema else None
    return format if maps is None else replace(format, schema=partial(_json_schema, maps=maps))


PARQUET = Format(
    "Parquet", (".parquet", ".pq"), _parquet_schema, _parquet_batches, _parquet_rows, _same_values
)
CSV = Format("CSV", (".csv", ".csv.gz"), _csv_schema, _csv_batches, None, _widens)
JSON = Format(
    "JSON lines", (".jsonl", ".ndjson", ".json", ".jsonl.gz"), _json_schema, _json_batches, None, _widens_json
)
