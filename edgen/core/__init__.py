"""Values, errors, events and files: what every other part may use. Nothing here knows of conversations' makers."""
