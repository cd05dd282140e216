"""A flat table of numbers as a Parquet file: one row group, plain encoding, gzip pages.

Format: Apache Parquet, https://parquet.apache.org/docs/file-format/, its structures in Thrift's compact protocol,
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md. A table of required 64-bit columns
needs so little of both that a library (68 MB and more) would cost more than it saves.
"""

import struct
import zlib
from collections.abc import Mapping

import numpy as np

from orrery.serving.requests import Floats, Ints

MAGIC = b"PAR1"
INT64, DOUBLE = 2, 5  # parquet.thrift: Type
PLAIN, RLE, GZIP, DATA_PAGE, REQUIRED = 0, 3, 2, 0, 0
PAGE_ROWS = 1 << 17
"""Rows of one page: 1 MiB of a column."""

# Types of fields in the compact protocol.
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


def parquet_bytes(columns: Mapping[str, Floats | Ints]) -> bytes:
    """The file, whole."""
    out = bytearray(MAGIC)
    count = len(next(iter(columns.values())))
    chunks = [_chunk(out, name, column) for name, column in columns.items()]
    footer = _footer(columns, chunks, count, len(out) - len(MAGIC))
    return bytes(out) + footer + struct.pack("<I", len(footer)) + MAGIC


def _chunk(out: bytearray, name: str, column: Floats | Ints) -> bytes:
    """Append the pages of a column to ``out``; what the footer says of them (ColumnChunk)."""
    start, plain_bytes = len(out), 0
    for first in range(0, max(len(column), 1), PAGE_ROWS):
        rows = column[first : first + PAGE_ROWS]
        plain = rows.astype("<f8" if _kind(column) == DOUBLE else "<i8", copy=False).tobytes()
        packer = zlib.compressobj(level=1, wbits=31)
        packed = packer.compress(plain) + packer.flush()
        header = _page_header(len(plain), len(packed), len(rows))
        out += header + packed
        plain_bytes += len(header) + len(plain)
    meta = _struct(
        (1, _I32, _zigzag(_kind(column))), (2, _LIST, _list(_I32, [_zigzag(PLAIN), _zigzag(RLE)])),
        (3, _LIST, _list(_BINARY, [_binary(name)])), (4, _I32, _zigzag(GZIP)), (5, _I64, _zigzag(len(column))),
        (6, _I64, _zigzag(plain_bytes)), (7, _I64, _zigzag(len(out) - start)), (9, _I64, _zigzag(start)),
    )  # fmt: skip
    return _struct((2, _I64, _zigzag(start)), (3, _STRUCT, meta))


def _page_header(plain_bytes: int, packed_bytes: int, rows: int) -> bytes:
    """PageHeader of a data page without levels: every value is there."""
    data = _struct(
        (1, _I32, _zigzag(rows)), (2, _I32, _zigzag(PLAIN)), (3, _I32, _zigzag(RLE)), (4, _I32, _zigzag(RLE))
    )
    return _struct(
        (1, _I32, _zigzag(DATA_PAGE)), (2, _I32, _zigzag(plain_bytes)), (3, _I32, _zigzag(packed_bytes)),
        (5, _STRUCT, data),
    )  # fmt: skip


def _footer(columns: Mapping[str, Floats | Ints], chunks: list[bytes], count: int, size: int) -> bytes:
    """FileMetaData: the schema, and where each column is."""
    root = _struct((4, _BINARY, _binary("schema")), (5, _I32, _zigzag(len(columns))))
    leaves = [
        _struct((1, _I32, _zigzag(_kind(column))), (3, _I32, _zigzag(REQUIRED)), (4, _BINARY, _binary(name)))
        for name, column in columns.items()
    ]
    group = _struct((1, _LIST, _list(_STRUCT, chunks)), (2, _I64, _zigzag(size)), (3, _I64, _zigzag(count)))
    return _struct(
        (1, _I32, _zigzag(1)), (2, _LIST, _list(_STRUCT, [root, *leaves])), (3, _I64, _zigzag(count)),
        (4, _LIST, _list(_STRUCT, [group])), (6, _BINARY, _binary("orrery")),
    )  # fmt: skip


def _kind(column: Floats | Ints) -> int:
    return DOUBLE if np.issubdtype(column.dtype, np.floating) else INT64


def _struct(*fields: tuple[int, int, bytes]) -> bytes:
    """Fields (id, type, value) in order; ids lie at most 15 apart."""
    out, last = bytearray(), 0
    for number, kind, value in fields:
        out.append((number - last) << 4 | kind)
        out += value
        last = number
    return bytes(out) + b"\x00"


def _list(kind: int, items: list[bytes]) -> bytes:
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + _varint(len(items))
    return head + b"".join(items)


def _binary(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data)) + data


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
