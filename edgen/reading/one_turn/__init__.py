"""One turn of self-play out of a reply."""
