"""What people hold in Python: jobs, runs, conversations, pairs and comparisons, and the functions that make
them."""
