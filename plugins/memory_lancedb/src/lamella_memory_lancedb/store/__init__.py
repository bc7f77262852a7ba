"""The table of memories: what is in it, where it is, and how several programs use it at once."""
