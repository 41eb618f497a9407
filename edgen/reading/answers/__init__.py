"""Short answers: a probability, a verdict, a list of values."""
