"""Export formats for response selection."""

REASONS = {
    "same_context": "another conversation goes the same way up to there, and its context is there already",
    "small_pool": "the run has too few replies to draw enough wrong ones from",
}
"""Reasons for omissions that several formats have."""
