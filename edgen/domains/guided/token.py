"""The token of a conversation."""

from __future__ import annotations

import hashlib


def token_of(seed: int, scenario: int, replicate: int) -> str:
    """Return the word that joins a conversation's log with the answers afterwards: 10 letters and digits,
    always the same for one conversation."""
    place = f"{seed}/{scenario}/{replicate}/token"
    return hashlib.blake2b(place.encode(), digest_size=5).hexdigest().upper()
