"""A finished run as one self-contained page."""
