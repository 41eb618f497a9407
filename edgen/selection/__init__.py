"""A run made of another by choice: `edgen select`."""
