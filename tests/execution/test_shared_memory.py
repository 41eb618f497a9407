"""The check of the shared memory that Ray needs, made before Ray starts."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import ProviderError
from edgen.execution.cluster.connect import require_shared_memory


@pytest.mark.parametrize("number", [errno.EROFS, errno.EFBIG, errno.ENOSPC])
def test_a_folder_in_which_no_file_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(**_given: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    said = rf"cannot make a file of 1 MiB in {tmp_path} \({os.strerror(number)}\)"
    with pytest.raises(ProviderError, match=said):
        require_shared_memory(tmp_path, 2**20)


def test_other_folders_are_left_to_ray(tmp_path: Path) -> None:
    require_shared_memory(tmp_path, 2**20)
    require_shared_memory(tmp_path, 2**80)  # too little space: Ray takes its temporary folder
    require_shared_memory(tmp_path / "missing")
    assert not list(tmp_path.iterdir())
