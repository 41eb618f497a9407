"""Exports that many tests read and no test changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.export.folders import RUN, write


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns the folder of RUN's export in a format, made on first use."""
    above = tmp_path_factory.mktemp("exported")

    def folder(name: str) -> Path:
        if not (above / name).exists():
            write(name, RUN, above / name)
        return above / name

    return folder
