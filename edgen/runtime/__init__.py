"""Supervision of work on ledgers: progress, deadlines, signals, open backends, and which key may go where."""
