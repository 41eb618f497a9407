"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: Path, data: str | bytes) -> None:
    """Have `data`, text as UTF-8, at `path` in place of what was there."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(number)
    part.replace(path)
