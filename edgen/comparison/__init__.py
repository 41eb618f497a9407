"""Arms of an experiment compared over the scenarios they share: metrics, intervals, what cannot be told."""
