"""The tables of the index."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from lamella_memory_core.lexical.stems import TOKENIZE

metadata = MetaData()

# What the index was made with. An index made with anything else is emptied.
meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False))

# One row, another one after every change: see `catalog.read_stamp`.
generation = Table(
    "generation", metadata, Column("birth", String, nullable=False), Column("number", Integer, nullable=False)
)

# `version`: the number of the state that the text came with; see `database.MARK_CHANGED`.
# `line_map`: of a transcript, where the lines of its text stand in the file, as JSON; else null.
# `mtime_ns` and `ctime_ns` are 0 when a later look must not trust them: see `changes.stamps`.
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
    Column("line_map", Text),
    Column("version", Integer, nullable=False, server_default="0"),
)

# The ids of a file's passages follow each other without gaps.
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
    Column("hash", String, nullable=False, index=True),
    Column("text", Text, nullable=False),
)

# One row for each chunk, under the chunk's id: the search text of the chunk, and of its file's name.
CREATE_FTS = f'CREATE VIRTUAL TABLE chunks_fts USING fts5(body, name, tokenize="{TOKENIZE}")'
# Each transaction adds a segment. Merging them later, and more at once, takes a sixth off a full index.
MERGE_LATER = "INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('automerge', 16)"

# Vectors belong to texts, not to chunks: they outlive a chunk that moves, and the chunks of a rebuild
# find them again. So this is the vector table and the embedding cache in one.
vector_metadata = MetaData()

# `filled`: the number of a state whose texts all have vectors of this embedder; what came later may not.
embedders = Table(
    "embedders",
    vector_metadata,
    Column("id", Integer, primary_key=True),
    Column("identity", String, unique=True),
    Column("filled", Integer, nullable=False, server_default="-1"),
)

# Hashes of texts that a passage has lost: their vectors go, unless another passage has the text.
dropped = Table("dropped", vector_metadata, Column("hash", String, nullable=False))

# `hash` is that of the chunk's text; `vector` is little-endian float32.
vectors = Table(
    "vectors",
    vector_metadata,
    Column("id", Integer, primary_key=True),
    Column("embedder_id", ForeignKey("embedders.id"), nullable=False),
    Column("hash", String, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    UniqueConstraint("embedder_id", "hash"),
)
