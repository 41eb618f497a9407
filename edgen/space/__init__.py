"""Spaces: values, files, the sampling of scenarios, and the split by groups."""

from edgen.space.model import Dimension, Entry, Space, SpaceRole
from edgen.space.parse import digest_content, dump_space, load_space, parse_space, render_space_files

__all__ = [
    "Dimension",
    "Entry",
    "Space",
    "SpaceRole",
    "digest_content",
    "dump_space",
    "load_space",
    "parse_space",
    "render_space_files",
]
