"""The flush before a compaction."""
