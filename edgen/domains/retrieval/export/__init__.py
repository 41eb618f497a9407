"""Export formats for response selection."""
