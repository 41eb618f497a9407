"""Tokens of a picture, as OpenAI's vision guide counts them: by tiles of 512 pixels, or by patches of 32.

https://platform.openai.com/docs/guides/images-vision#calculating-costs
"""

from __future__ import annotations

import math
import re

from edgen.plugin.providers import PictureTokens, PromptPicture

# Models that count tiles: tokens of each picture, and of each tile. The first matching pattern counts.
_TILES = (
    (re.compile(r"gpt-4o-mini"), 2_833, 5_667),
    (re.compile(r"gpt-4o|gpt-4\.5|gpt-4\.1(?!-mini|-nano)|gpt-4-turbo|chatgpt-4o"), 85, 170),
    (re.compile(r"o1|o3(?!-mini)"), 75, 150),
    (re.compile(r"gpt-5(?!\S*-(?:mini|nano))"), 70, 140),
)
# Models that count patches: tokens of each patch.
_PATCHES = (
    (re.compile(r"gpt-4\.1-nano"), 2.46),
    (re.compile(r"gpt-4\.1-mini"), 1.62),
    (re.compile(r"o4-mini"), 1.72),
    (re.compile(r"gpt-5\S*-nano"), 2.46),
    (re.compile(r"gpt-5\S*-mini"), 1.62),
)
_MOST_PATCHES = 1_536
_FIRST_SIDE, _SHORT_SIDE, _TILE, _PATCH = 2_048, 768, 512, 32


def count(model: str, picture: PromptPicture) -> PictureTokens | None:
    """Return the tokens of a picture for a model of OpenAI; None for other models."""
    for named, each in _PATCHES:
        if named.match(model):
            patches = math.ceil(picture.width / _PATCH) * math.ceil(picture.height / _PATCH)
            tokens = math.ceil(min(patches, _MOST_PATCHES) * each)
            return PictureTokens(tokens, tokens)
    for named, base, tile in _TILES:
        if named.match(model):
            tokens = base + tile * _count_tiles(picture.width, picture.height)
            return PictureTokens(tokens, tokens)
    return None


def _count_tiles(width: float, height: float) -> int:
    """Return the tiles of a picture, scaled down to fit into 2048 × 2048 and then to a shorter side of
    768."""
    scale = min(1.0, _FIRST_SIDE / max(width, height))
    scale *= min(1.0, _SHORT_SIDE / (min(width, height) * scale))
    return math.ceil(width * scale / _TILE) * math.ceil(height * scale / _TILE)
