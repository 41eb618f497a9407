"""A folder with a job, its templates and a space, ready to edit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from edgen.config.loading import list_conversation_protocols
from edgen.core import resources
from edgen.core.errors import UsageError
from edgen.core.files import remove_leftovers, write_new
from edgen.core.registry import find, list_names, part_of
from edgen.core.space_layouts import find_layout
from edgen.core.yaml_values import suggest_name
from edgen.planning.allowed_files import allow_all_files
from edgen.planning.project_files import plan_for_space, write_job, write_templates
from edgen.protocols.base import SelfDescription, Starter
from edgen.space import load_space, render_space_files
from edgen.space.parse import dump_space, fits_lists

SCHEMAS = "schemas"
_OUTSIDE = r"\.\./([\w/-]+\.\w+)"  # name of a file next to the folder of the shipped jobs
_SCHEMA_LINE = r"\A# yaml-language-server:.*\n"


class Project(NamedTuple):
    """The content of a new folder: its job, and the names of its templates."""

    folder: Path
    job: Path
    templates: tuple[str, ...]


def make_project(
    folder: Path, protocol: str | None = None, space: str | None = None, job: str | None = None
) -> Project:
    """Make a folder with copies of the shipped job of a protocol, by default oneshot, and of its templates
    and space.

    With `space` (a file, or a shipped one's name): a job, a copy of the space, and templates that name its
    dimensions. With `job` (a shipped one's name): a copy of it, and of the files that it names by path.
    Raises UsageError for existing files of these names, a folder that cannot be written, or an unknown job;
    JobError, SpaceError or TemplateError for a space that does not suit the protocol.
    """
    if job is not None:
        if protocol or space:
            raise UsageError(
                "--job names a whole job, with its protocol and its space: leave the other option out."
            )
        files = _copy_job(folder, job)
    else:
        protocol = protocol or "oneshot"
        files = _copy_shipped(folder, protocol) if space is None else _write_for(folder, protocol, space)
    # Copies, so that an editor finds them without a network, wherever edgen is installed.
    schemas = ("job",) if job is not None else ("job", "space")
    files |= {f"{SCHEMAS}/{name}.schema.json": _read_shipped("validators", name) for name in schemas}
    for name in files:
        remove_leftovers(folder / name)
    there = [name for name in files if (folder / name).exists()]
    # Files of a killed start are completed.
    taken = [name for name in there if not _holds(folder / name, files[name])]
    if taken := taken or (there if len(there) == len(files) else []):
        raise UsageError(
            f"{folder}: {', '.join(taken)} {'exists' if len(taken) == 1 else 'exist'} already, and "
            "nothing is overwritten; name a new folder."
        )
    try:
        (folder / SCHEMAS).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name not in there:
                write_new(folder / name, text)
    except OSError as problem:
        raise UsageError(f"{folder}: the folder cannot be written ({problem.strerror}).") from None
    return Project(folder, folder / "job.yaml", tuple(name for name in files if name.endswith(".j2")))


def _copy_job(folder: Path, job: str) -> dict[str, str]:
    """Return a shipped job for the folder, with the files that it names by a path, by their names."""
    known = resources.list_shipped("jobs")
    if job not in known:
        raise UsageError(f"--job {job}: there is no such shipped job{suggest_name(job, known)}.")
    text = _read_shipped("jobs", job)
    path = resources.find("jobs", job)
    named = {
        name: (path.parents[1] / name).read_text(encoding="utf-8") for name in re.findall(_OUTSIDE, text)
    }
    own = _make_job_name(folder)
    # The job's comments say how to start it.
    text = text.replace(f"jobs/{job}.yaml", f"{folder.name}/job.yaml").replace(
        f"outputs/{job}", f"outputs/{own}"
    )
    text = re.sub(rf"^name: {job}$", f"name: {own}", re.sub(_OUTSIDE, r"./\1", text), flags=re.MULTILINE)
    return {"job.yaml": _name_schema("job") + text, **named}


def _copy_shipped(folder: Path, protocol: str) -> dict[str, str]:
    """Return the files of a protocol's shipped job, by their names."""
    if protocol not in list_names("protocol"):
        near = suggest_name(protocol, list_conversation_protocols())
        raise UsageError(f"--protocol: there is no protocol {protocol!r}{near}.")
    starter = part_of(find("protocol", protocol), SelfDescription).starter
    if starter is None:
        raise UsageError(
            f"--protocol {protocol}: it has no job to start from; write one with `protocol: {protocol}`."
        )
    return {
        "job.yaml": _make_job(folder, starter),
        **{name: _read_shipped("prompts", template) for name, template in starter.templates.items()},
        **_copy_folders(starter),
        "space.yaml": _name_schema("space") + _open_space(_find_space_name(starter)),
    }


def _write_for(folder: Path, protocol: str, named: str) -> dict[str, str]:
    """Return the files of a project for a space, by their names."""
    path = allow_all_files().require("preference_space", named, "--space")
    plan = plan_for_space(_make_job_name(folder), protocol, path)
    text = re.sub(_SCHEMA_LINE, "", path.read_text(encoding="utf-8"))
    others = {name: text for name, text in render_space_files(plan.space).items() if name != "space.yaml"}
    return {
        "job.yaml": _add_forms_key(write_job(plan, _name_schema("job") + _render_head("default"))),
        **write_templates(plan),
        "space.yaml": _name_schema("space") + text,
        **others,
    }


def _open_space(name: str) -> str:
    """Return a shipped space with `dimensions:`, to which others can be added, with its first comments."""
    text = _read_shipped("preference_space", name)
    space = load_space(resources.find("preference_space", name))
    layout = find_layout(space.names)
    if layout is None or not fits_lists(space, layout):
        return text
    comments = re.match(r"(?:#[^\n]*\n)*", text)
    return (comments[0] if comments else "") + dump_space(space, lists=False)


def _holds(path: Path, text: str) -> bool:
    """Return whether a file consists of exactly this text."""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _read_shipped(folder: resources.Folder, name: str) -> str:
    """Return a shipped file, without a first line that names its schema."""
    text = resources.find(folder, name).read_text(encoding="utf-8")
    return re.sub(_SCHEMA_LINE, "", text)


def _copy_folders(starter: Starter) -> dict[str, str]:
    """Return the files of the folders that a shipped job names, by their new names."""
    return {
        f"{key}/{path.name}": path.read_text(encoding="utf-8")
        for key, (kind, name) in starter.folders.items()
        for path in sorted(resources.find(kind, name).iterdir())
    }


def _find_space_name(starter: Starter) -> str:
    """Return the name of the shipped space that a shipped job names."""
    found = re.search(r"^space: (\S+)", _read_shipped("jobs", starter.job), re.MULTILINE)
    assert found is not None, "a shipped job names its space"
    return found[1]


def _make_job(folder: Path, starter: Starter) -> str:
    """Return a shipped job with the folder's own templates and space."""
    text = _read_shipped("jobs", starter.job)
    body = text[text.index("name: ") :]
    prompts = ", ".join(f"{name.removesuffix('.j2')}: ./{name}" for name in starter.templates)
    own = {
        "name": _make_job_name(folder),
        "space": "./space.yaml",
        "prompt": "./prompt.j2",
        "prompts": f"{{{prompts}}}",
    }
    used = "prompt" if "prompt.j2" in starter.templates else "prompts"
    if starter.templates and not re.search(rf"^{used}: ", body, re.MULTILINE):  # the defaults apply
        body = re.sub(r"^backends:", f"{used}: usual\nbackends:", body, count=1, flags=re.MULTILINE)
    for key, value in own.items():
        body = re.sub(
            rf"^{key}: (\{{.*\}}|\S+)( +#.*)?$", f"{key}: {value}", body, count=1, flags=re.MULTILINE
        )
    for key, (_, shipped) in starter.folders.items():
        body = re.sub(rf"\b{key}: {shipped}\b", f"{key}: ./{key}", body)
    return _name_schema("job") + _render_head(starter.role) + _add_forms_key(body)


def _add_forms_key(job: str) -> str:
    """Add the key `forms` to the text of a job: its templates are edgen's own words, so their answers may
    have a form."""
    line = "forms: auto                   # answers by a JSON Schema where the service takes one\n"
    return re.sub(r"^backends:", f"{line}backends:", job, count=1, flags=re.MULTILINE)


def _make_job_name(folder: Path) -> str:
    """Return the name of a job in a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-.") or "my-job"


def _render_head(role: str) -> str:
    """Return the first comment of a job: how to use another model for a role."""
    return (
        "# What to make. Try it with the embedded simulator first (no key, nothing is paid), then change\n"
        "# the lines under `backends`, for example to a local server or a service with a key:\n"
        f"#   {role}: {{type: openai, model: NAME, base_url: http://127.0.0.1:8080/v1}}\n"
        f"#   {role}: {{type: gemini, model: NAME}}      # GOOGLE_API_KEY\n"
    )


def _name_schema(kind: str) -> str:
    """Return the line that names the schema of the file for an editor."""
    return f"# yaml-language-server: $schema=./{SCHEMAS}/{kind}.schema.json\n"
