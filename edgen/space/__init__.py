"""Spaces that scenarios are drawn from: values, files, sampling, and the split by groups."""

from edgen.space.dump import dump_space, space_files
from edgen.space.model import Dimension, Entry, Space, SpaceRole
from edgen.space.parse import content_sha256, load_space, parse_space

__all__ = [
    "Dimension",
    "Entry",
    "Space",
    "SpaceRole",
    "content_sha256",
    "dump_space",
    "load_space",
    "parse_space",
    "space_files",
]
