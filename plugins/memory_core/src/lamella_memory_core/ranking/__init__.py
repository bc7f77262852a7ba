"""From a question to passages in order: evidence, scores, and what is shown."""
