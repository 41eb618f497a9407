"""Protocols: uses of models, one per file; the registry finds them by name. A protocol is imported on first
use, since its readers take time to load."""
