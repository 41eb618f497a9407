"""Work on a ledger under supervision: what is heard of it, what bounds it, and what it may send where."""
