"""The index: tables, files taken in, and what has changed."""
