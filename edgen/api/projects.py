"""A folder of one's own, with a job, its templates and a space ready to edit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from edgen.core import resources
from edgen.core.errors import UsageError
from edgen.core.files import write_new
from edgen.core.registry import find
from edgen.protocols.base import Starter

SCHEMAS = "schemas"


class Project(NamedTuple):
    """What was made in a folder: its job, and the names of its templates."""

    folder: Path
    job: Path
    templates: tuple[str, ...]


def make_project(folder: Path, protocol: str = "oneshot") -> Project:
    """Make a folder with copies of the shipped job of a protocol and of all that it names.

    Raises UsageError where something of these names is there, or the folder cannot be written.
    """
    starter: Starter | None = getattr(find("protocol", protocol), "starter", None)
    if starter is None:
        raise UsageError(
            f"--protocol {protocol}: it brings no job to start from; write one with `protocol: {protocol}`."
        )
    templates = starter.templates
    files = {
        "job.yaml": _make_job(folder, starter),
        **{name: _read_shipped("prompts", template) for name, template in templates.items()},
        **_copied_folders(starter),
        "space.yaml": _name_schema("space") + _read_shipped("preference_space", _space_of(starter)),
        # Copies, so that an editor finds them from here, wherever edgen is installed, and without a network.
        **{f"{SCHEMAS}/{name}.schema.json": _read_shipped("validators", name) for name in ("job", "space")},
    }
    if taken := [name for name in files if (folder / name).exists()]:
        raise UsageError(
            f"{folder}: {', '.join(taken)} {'is' if len(taken) == 1 else 'are'} there already, and nothing is "
            "overwritten; name a new folder."
        )
    try:
        (folder / SCHEMAS).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            write_new(folder / name, text)
    except OSError as problem:
        raise UsageError(f"{folder}: the folder cannot be written ({problem.strerror}).") from None
    return Project(folder, folder / "job.yaml", tuple(templates))


def _read_shipped(folder: resources.Folder, name: str) -> str:
    """A shipped file without a first line that names the schema from where it is."""
    text = resources.find(folder, name).read_text(encoding="utf-8")
    return re.sub(r"\A# yaml-language-server:.*\n", "", text)


def _copied_folders(starter: Starter) -> dict[str, str]:
    """The files of the folders that a shipped job names, by their new names."""
    return {
        f"{key}/{path.name}": path.read_text(encoding="utf-8")
        for key, (kind, name) in starter.folders.items()
        for path in sorted(resources.find(kind, name).iterdir())
    }


def _space_of(starter: Starter) -> str:
    """The name of the shipped space that a shipped job names."""
    found = re.search(r"^space: (\S+)", _read_shipped("jobs", starter.job), re.MULTILINE)
    assert found is not None, "a shipped job names its space"
    return found[1]


def _make_job(folder: Path, starter: Starter) -> str:
    """A shipped job, pointed at the folder's own templates and space."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-.") or "my-job"
    text = _read_shipped("jobs", starter.job)
    body = text[text.index("name: ") :]
    prompts = ", ".join(f"{name.removesuffix('.j2')}: ./{name}" for name in starter.templates)
    own = {"name": name, "space": "./space.yaml", "prompt": "./prompt.j2", "prompts": f"{{{prompts}}}"}
    for key, value in own.items():
        body = re.sub(
            rf"^{key}: (\{{.*\}}|\S+)( +#.*)?$", f"{key}: {value}", body, count=1, flags=re.MULTILINE
        )
    for key, (_, shipped) in starter.folders.items():
        body = re.sub(rf"\b{key}: {shipped}\b", f"{key}: ./{key}", body)
    head = (
        "# What to make. Try it with the embedded simulator first (no key, nothing is paid), then change\n"
        "# the lines under `backends`, for example to a local server or a service with a key:\n"
        f"#   {starter.role}: {{type: openai, model: NAME, base_url: http://127.0.0.1:8080/v1}}\n"
        f"#   {starter.role}: {{type: gemini, model: NAME}}      # GOOGLE_API_KEY\n"
    )
    return _name_schema("job") + head + body


def _name_schema(kind: str) -> str:
    """What tells an editor how the file is checked."""
    return f"# yaml-language-server: $schema=./{SCHEMAS}/{kind}.schema.json\n"
