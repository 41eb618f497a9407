"""Data on disk: run folders, locks, ledgers, shards, votes, and their readers."""
