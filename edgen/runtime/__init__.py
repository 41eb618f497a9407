"""Supervision of work on ledgers: progress, deadlines, signals, open backends, and consent for keys."""
