"""The tables of the index, and what makes an index fit for use."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, MetaData, String, Table, Text

APPLICATION_ID = 0x6C616D65  # "lame": tells our database from a foreign one
SCHEMA_VERSION = 1

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False))

# `mtime_ns` and `ctime_ns` are 0 when a later look must not trust them: see `sync.stamps`.
files = Table(
    "files",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("path", String, nullable=False, unique=True),
    Column("source", String, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("ctime_ns", BigInteger, nullable=False),
    Column("hash", String, nullable=False),
)

# `start_char` and `end_char` place the text in the decoded file, without byte-order mark.
chunks = Table(
    "chunks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("file_id", ForeignKey("files.id"), nullable=False, index=True),
    Column("start_line", Integer, nullable=False),
    Column("end_line", Integer, nullable=False),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("hash", String, nullable=False),
    Column("text", Text, nullable=False),
)

# One row for each chunk, under the chunk's id: the search text of the chunk, and of its file's name.
# Marks count as letters, since many scripts write vowels with them.
CREATE_FTS = """
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    body, name, tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
)
"""
