"""`edgen init`: a folder of one's own, with a job, a template and a space ready to edit."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from edgen import resources
from edgen.cli.output import print_line
from edgen.errors import UsageError


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.", show_default=False)],
) -> None:
    """Make a folder with a job, a template and a preference space, ready to edit.

    Example: edgen init my-project && edgen generate my-project/job.yaml
    """
    files = {
        "job.yaml": _job(folder),
        "prompt.j2": _shipped("prompts", "education_dialogue"),
        "space.yaml": _shipped("preference_space", "education_dialogue"),
    }
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UsageError(
            f"{folder}: {', '.join(taken)} is there already, and nothing is overwritten; name a new folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as problem:
        raise UsageError(f"{folder}: the folder cannot be written ({problem.strerror}).") from None
    print_line(f"{folder} is ready: job.yaml says what to make, prompt.j2 how to ask, space.yaml about what.")
    job = shlex.quote(str(folder / "job.yaml"))
    print_line(f"Look:  edgen preview {job}")
    print_line(f"Make:  edgen generate {job}")


def _shipped(folder: resources.Folder, name: str) -> str:
    return resources.find(folder, name).read_text(encoding="utf-8")


def _job(folder: Path) -> str:
    """The quickstart job, pointed at the folder's own template and space."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-.") or "my-job"
    text = resources.find("jobs", "quickstart").read_text(encoding="utf-8")
    body = text[text.index("name: ") :]
    for key, value in {"name": name, "space": "./space.yaml", "prompt": "./prompt.j2"}.items():
        body = re.sub(rf"^{key}: \S+( +#.*)?$", f"{key}: {value}", body, count=1, flags=re.MULTILINE)
    head = (
        "# What to make. Try it with the embedded simulator first (no key, nothing is paid), then change\n"
        "# the two lines under `backends`, for example to a local server or a service with a key:\n"
        "#   default: {type: openai, model: NAME, base_url: http://127.0.0.1:8080/v1}\n"
        "#   default: {type: gemini, model: NAME}      # GOOGLE_API_KEY\n"
    )
    return head + body
