"""Words that settings choose among."""

STANDARDISED, WEIGHTED = FUSIONS = ("standardised", "weighted")
LINES, OPENCLAW = CHUNK_RULES = ("lines", "openclaw")
KEYWORDS, FULL, NOBODY = FALLBACKS = ("keywords", "full", "none")

# How the reason begins why meanings are not compared, where that is how it is set.
MEANING_OFF = "search by meaning is off"
