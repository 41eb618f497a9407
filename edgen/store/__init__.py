"""What is on disk: run folders, locks, ledgers, shards, votes, and how they are read."""
