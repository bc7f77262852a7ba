"""The `static` embedder: offline, numpy only, its data in the package."""
