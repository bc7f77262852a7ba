"""Finding memories, and telling whether two of them say the same."""
