"""The digest of what scenarios depend on. Name, description, source, roles, labels and layout are no part of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from edgen.space.education import LISTS, has_list_content
from edgen.space.model import Entry, Space


def content_sha256(space: Space) -> str:
    """SHA-256, in hex, of the entries with all they hold, in order, and of what is excluded."""
    if has_list_content(space):
        content: Any = [
            [
                LISTS[one.name],
                [[*_base(entry), *map(entry.fields.get, ("subject", "level"))] for entry in one.entries],
            ]
            for one in space.dimensions
        ]
    else:
        dimensions = [
            [one.name, [[*_base(entry), entry.when, entry.fields] for entry in one.entries]]
            for one in space.dimensions
        ]
        content = {"dimensions": dimensions, "exclude": space.exclude}
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _base(entry: Entry) -> tuple[str, float]:
    # Adding 0.0 makes one number of 0.0 and -0.0.
    return entry.value, float(entry.weight) + 0.0
