"""Packages of plugins as an installer leaves them, for tests of what finds them."""

from __future__ import annotations

from pathlib import Path


def install(
    folder: Path, name: str, entries: str, code: str = "", *, version: str = "1.0", needs: str = ""
) -> None:
    """Write a package with metadata, as an installer does."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    required = f"Requires-Dist: {needs}\n" if needs else ""
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}\nText"
    )
    info.joinpath("entry_points.txt").write_text(entries)
    folder.joinpath(f"{name.replace('-', '_')}.py").write_text(code)
