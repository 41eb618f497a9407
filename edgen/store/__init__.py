"""What is on disk: run folders, ledgers, shards, votes, and how they are read."""
