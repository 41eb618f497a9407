"""A run of conversations chosen from another run: `edgen select`."""
