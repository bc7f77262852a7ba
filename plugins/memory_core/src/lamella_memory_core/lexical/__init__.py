"""Search by words: what FTS5 finds, and the same from arrays."""
