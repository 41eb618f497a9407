"""The engine: turns a plan into outcomes in the ledger, and these into finished files."""
