"""One Parquet file of a recording: opened once, verified, read one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ._crc32c import crc32c
from .errors import DamagedError, LatlabError

_FOOTER_MAX = 32 << 20
_MAGIC = b"PAR1"
# What pyarrow raises of a file that it cannot read; names that are not UTF-8 are a ValueError.
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, KeyError)

# The unit of a column by the end of its name.
_UNITS = {
    "_ns": "ns",
    "_bytes": "B",
    "_packets": "packets",
    "_khz": "kHz",
    "_millicelsius": "m°C",
}


# Columns of text as typed, with the unit in the text: `20ms`.
_TYPED = ("factor_", "condition_setting_", "condition_tag_")


def unit_of(column: str) -> str | None:
    """The unit of a column of any table or of a condition; None if it counts, names or numbers something."""
    if column.startswith(_TYPED):
        return None
    return next((unit for ending, unit in _UNITS.items() if column.endswith(ending)), None)


def _clock_of(table: str, column: str) -> str | None:
    """The clock of an instant in a row of a probe: instants of two clocks must not be subtracted."""
    if table != "probes" or not column.endswith("_ns"):
        return None
    return "reflector" if column.startswith("reflector_") else "sender"


def annotated(table: str, schema: pa.Schema) -> pa.Schema:
    """`schema` with the metadata `unit`, and `clock` for instants of probes, in its fields."""
    fields = []
    for field in schema:
        known = {"unit": unit_of(field.name), "clock": _clock_of(table, field.name)}
        metadata: dict[bytes | str, bytes | str] = {key: value for key, value in known.items() if value is not None}
        fields.append(field.with_metadata(metadata) if metadata else field.remove_metadata())
    return pa.schema(fields)


class ParquetTable:
    """The file of one table of a recording.

    `rows` is the number of rows in the manifest and `checksums` the entry of the file there; either may be None.
    """

    def __init__(
        self, file: Path, name: str, rows: int | None, checksums: Mapping[str, Any] | None, verify: bool
    ) -> None:
        self.file = file
        self.name = name
        self._checksums = checksums if verify else None
        if not file.is_file():
            raise DamagedError(file, "the file is missing")
        self._check_footer()
        try:
            with pq.ParquetFile(file) as parquet:
                self._metadata = parquet.metadata
                self.schema = annotated(name, parquet.schema_arrow)
            found = self._metadata.num_rows
        except _UNREADABLE as error:
            raise DamagedError(file, str(error)) from error
        if rows is not None and rows != found:
            raise DamagedError(file, f"{found} rows, but {rows} in the manifest")

    def _check_footer(self) -> None:
        with self.file.open("rb") as opened:
            size = self.file.stat().st_size
            if size < 12:
                raise DamagedError(self.file, f"{size} bytes")
            opened.seek(size - 8)
            tail = opened.read(8)
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != _MAGIC or length > min(size - 12, _FOOTER_MAX):
                raise DamagedError(self.file, "it does not end as a Parquet file")
            if self._checksums is None:
                return
            if self._checksums.get("bytes") != size:
                raise DamagedError(self.file, f"{size} bytes, but {self._checksums.get('bytes')} in the manifest")
            opened.seek(size - 8 - length)
            self._compare(crc32c(opened.read(length + 8)), self._checksums.get("footer"), "the footer")

    def _compare(self, found: int, expected: object, what: str) -> None:
        if f"{found:08x}" != expected:
            raise DamagedError(self.file, f"the checksum of {what} does not match")

    def columns(self, asked: Sequence[str] | None) -> list[str]:
        """The columns `asked`, or all; an error for one that the file does not have."""
        names: list[str] = list(self.schema.names)
        if asked is None:
            return names
        asked = named_columns(asked)
        missing = [name for name in asked if name not in names]
        if missing:
            raise ValueError(f"`{self.name}` has no column `{missing[0]}`; it has {', '.join(names)}")
        return asked

    def require(self, columns: Sequence[str]) -> None:
        """DamagedError if the file lacks one of `columns`, which every table of its name has."""
        missing = [name for name in columns if name not in self.schema.names]
        if missing:
            raise DamagedError(self.file, f"it has no column `{missing[0]}`")

    def row_groups(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows in the order of the file, one table for each row group; only the chunks of `columns` are read."""
        for number in range(self._metadata.num_row_groups):
            self._check_chunks(number, columns)
            try:
                # Opened anew: experiments may have more recordings than a process may have open files.
                with pq.ParquetFile(self.file, metadata=self._metadata) as parquet:
                    table = parquet.read_row_group(number, columns=list(columns))
                schema = pa.schema([self.schema.field(name) for name in columns])
                table = table.select(list(columns)).cast(schema)
                table.validate(full=True)
            except _UNREADABLE as error:
                raise DamagedError(self.file, str(error)) from error
            yield table

    def check(self) -> None:
        """Compares every checksum of the file."""
        for number in range(self._metadata.num_row_groups):
            self._check_chunks(number, self.schema.names)

    def _check_chunks(self, number: int, columns: Sequence[str]) -> None:
        if self._checksums is None:
            return
        group = self._metadata.row_group(number)
        try:
            expected = str(self._checksums["row_groups"][number]).split(" ")
        except (KeyError, IndexError, TypeError):
            raise DamagedError(self.file, f"row group {number} has no checksums in the manifest") from None
        if len(expected) != group.num_columns:
            raise DamagedError(self.file, f"{group.num_columns} columns, but {len(expected)} checksums")
        places: dict[str, int] = {group.column(index).path_in_schema: index for index in range(group.num_columns)}
        with self.file.open("rb") as opened:
            for name in columns:
                chunk = group.column(places[name])
                opened.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                found = crc32c(opened.read(chunk.total_compressed_size))
                self._compare(found, expected[places[name]], f"column `{name}` in row group {number}")


def named_columns(asked: Sequence[str]) -> list[str]:
    """The columns `asked`, each once; an error for one text, whose letters are not meant, and for none: it has no rows."""
    if isinstance(asked, str) or not asked:
        raise ValueError(f"columns are a list of at least one name, or None for all: {asked!r}")
    return list(dict.fromkeys(asked))


def concatenated(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows of all `tables`, which have `schema`."""
    return pa.concat_tables(tables) if tables else schema.empty_table()


def require(package: str) -> None:
    """An error that says what to install if `package` is missing."""
    try:
        __import__(package)
    except ImportError as error:
        raise LatlabError(f"`{package}` is not installed: pip install 'latlab[{package}]'") from error
