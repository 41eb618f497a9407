"""One number for the rows of each table of an export, which its card states.

`datasets.load_dataset` keeps what it has built under the folder's last name and what the card says of the table,
not under what the files hold. A card whose tables state the digest of their rows is another card for other rows,
so that two exports to folders of one name are not taken for each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from edgen.exporters.base import SPLITS, Config, SplitName


def digest_of(config: Config, patterns: Mapping[tuple[str, SplitName], str], folder: Path) -> str:
    """SHA-256, in hex, over the files of a table in `folder`: split, name and content of each, in order of names."""
    made = hashlib.sha256()
    for split in SPLITS:
        pattern = patterns.get((config.name, split))
        for path in sorted(folder.glob(pattern)) if pattern is not None else ():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            made.update(f"{split} {path.relative_to(folder).as_posix()} {content}\n".encode())
    return made.hexdigest()
