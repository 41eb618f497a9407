"""Tokens of a picture, as the Gemini API counts them: https://ai.google.dev/gemini-api/docs/tokens."""

from __future__ import annotations

import re

from edgen.plugin.providers import PictureTokens, PromptPicture

_SMALL, _SIDE, _TILE = 384, 768, 258  # pixels, pixels, tokens
# From Gemini 3 on, all sizes count the same, by the requested resolution: default and maximum.
_NEWER = re.compile(r"gemini-(?:[3-9]|\d{2})\b")
_DEFAULT, _MOST = 1_120, 2_240


def count(model: str, picture: PromptPicture) -> PictureTokens:
    """Return the tokens of a picture."""
    if _NEWER.search(model):
        return PictureTokens(_DEFAULT, _MOST)
    if max(picture.width, picture.height) <= _SMALL:
        return PictureTokens(_TILE, _MOST)
    tokens = _TILE * -(-picture.width // _SIDE) * -(-picture.height // _SIDE)
    # Tiles are cut by the shorter side, at most this many more.
    return PictureTokens(tokens, max(_MOST, 4 * tokens))
