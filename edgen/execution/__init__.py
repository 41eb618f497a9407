"""The online engine: from a plan to outcomes in the ledger, and from these to finished files."""
