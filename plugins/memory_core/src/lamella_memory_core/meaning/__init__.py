"""Search by meaning: the embedder, vectors of passages, and their products."""
