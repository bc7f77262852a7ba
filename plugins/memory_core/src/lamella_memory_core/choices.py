"""Words that settings choose among."""

STANDARDISED, WEIGHTED = FUSIONS = ("standardised", "weighted")
LINES, OPENCLAW = CHUNK_RULES = ("lines", "openclaw")
