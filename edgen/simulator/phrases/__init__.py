"""What roles say: the phrase book, and the phrases of spaces."""
