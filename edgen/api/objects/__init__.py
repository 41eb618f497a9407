"""Objects of the Python interface: jobs, runs, conversations, pairs and comparisons, and the functions that
make them."""
