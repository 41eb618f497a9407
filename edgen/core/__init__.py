"""Values, errors, events and files for every other part, independent of how conversations are made."""
