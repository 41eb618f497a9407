"""Counts on the words of many conversations: n-grams, near-duplicates, self-BLEU."""

from edgen.core.extras import require_extra

require_extra("analysis", "Measures of texts")
