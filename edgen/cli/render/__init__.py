"""Values in words for a terminal: one file for each kind of value."""
