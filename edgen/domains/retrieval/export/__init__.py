"""Export formats for response selection."""

REASONS = {
    "same_context": "another conversation has the same turns up to this point, and its context is in the "
    "data already",
    "small_pool": "the run has too few replies to draw enough wrong ones from",
}
"""Reasons for omissions that several formats have."""
