"""Objects of the Python interface (jobs, runs, conversations, pairs, comparisons) and the functions that make
them."""
