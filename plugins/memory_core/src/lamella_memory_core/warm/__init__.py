"""What a process keeps of an index so that it answers fast."""
