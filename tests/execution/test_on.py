"""`--on` without Ray: one message names the missing package before anything is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fork_server
from tests.execution.service import job_text, write

pytestmark = pytest.mark.integration
_WITHOUT = "import sys; sys.modules['ray'] = None; from edgen.__main__ import main; main()"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--on", "ray"], "pip install 'edgen-dialogues[ray]'"),
        (["--set", "on=ray"], "pip install 'edgen-dialogues[ray]'"),
        (["--on", "spark"], "write ray"),
        (["--set", "on=spark"], "$.on"),
        (["--on", "ray", "--via", "batch"], "--via batch"),
        (["--workers", "2"], "--on ray"),
    ],
)
def test_no_ray_and_no_such_way(tmp_path: Path, arguments: list[str], said: str) -> None:
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1"))
    made = fork_server.run("generate", job, "-o", tmp_path / "run", *arguments, code=_WITHOUT)
    assert (made.returncode, "Traceback" in made.stderr) == (2, False), made.stderr
    assert said in made.stderr
