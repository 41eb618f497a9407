"""`edgen init`: a folder of one's own, with a job, a template and a space ready to edit."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from edgen import resources
from edgen.cli.output import print_line
from edgen.errors import UsageError
from edgen.files import write_new

# The shipped job that each protocol starts from, and the templates that go with it, by their new names.
_STARTS: dict[str, tuple[str, dict[str, str]]] = {
    "oneshot": ("quickstart", {"prompt.j2": "education_dialogue"}),
    "selfplay": (
        "selfplay",
        {
            "teacher.j2": "selfplay_teacher",
            "student.j2": "selfplay_student",
            "closing.j2": "closing_student",
            "oracle.j2": "oracle_guarded",
        },
    ),
}

_SCHEMAS = "schemas"


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.", show_default=False)],
    protocol: Annotated[
        Literal["oneshot", "selfplay"],
        typer.Option(
            help="oneshot: one prompt plays both sides. selfplay: two agents, and pairs of what they say."
        ),
    ] = "oneshot",
) -> None:
    """Make a folder with a job, its templates and a preference space, ready to edit.

    Example: edgen init my-project && edgen generate my-project/job.yaml
    """
    job_name, templates = _STARTS[protocol]
    files = {
        "job.yaml": _job(folder, job_name),
        **{name: _shipped("prompts", template) for name, template in templates.items()},
        "space.yaml": _first_line("space") + _below(_shipped("preference_space", "education_dialogue")),
        # Copies, so that an editor finds them from here, wherever edgen is installed, and without a network.
        **{f"{_SCHEMAS}/{name}.schema.json": _shipped("validators", name) for name in ("job", "space")},
    }
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UsageError(
            f"{folder}: {', '.join(taken)} {'is' if len(taken) == 1 else 'are'} there already, and nothing is "
            "overwritten; name a new folder."
        )
    try:
        (folder / _SCHEMAS).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_new(folder / name, text)
    except OSError as problem:
        raise UsageError(f"{folder}: the folder cannot be written ({problem.strerror}).") from None
    asked = (
        " and ".join([", ".join([*templates][:-1]), [*templates][-1]]) if len(templates) > 1 else "prompt.j2"
    )
    print_line(f"{folder} is ready: job.yaml says what to make, {asked} how to ask, space.yaml about what.")
    job = shlex.quote(str(folder / "job.yaml"))
    print_line(f"Editors check job.yaml and space.yaml with {_SCHEMAS}/, which their first lines name.")
    print_line(f"Look:  edgen preview {job}")
    print_line(f"Make:  edgen generate {job}")


def _shipped(folder: resources.Folder, name: str) -> str:
    return resources.find(folder, name).read_text(encoding="utf-8")


def _job(folder: Path, shipped: str) -> str:
    """A shipped job, pointed at the folder's own templates and space."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-.") or "my-job"
    text = resources.find("jobs", shipped).read_text(encoding="utf-8")
    body = text[text.index("name: ") :]
    own = {
        "name": name,
        "space": "./space.yaml",
        "prompt": "./prompt.j2",
        "prompts": "{teacher: ./teacher.j2, student: ./student.j2, closing: ./closing.j2, oracle: ./oracle.j2}",
    }
    for key, value in own.items():
        body = re.sub(
            rf"^{key}: (\{{.*\}}|\S+)( +#.*)?$", f"{key}: {value}", body, count=1, flags=re.MULTILINE
        )
    roles = ("default",) if shipped == "quickstart" else ("teacher", "student", "judge")
    head = (
        "# What to make. Try it with the embedded simulator first (no key, nothing is paid), then change\n"
        "# the lines under `backends`, for example to a local server or a service with a key:\n"
        f"#   {roles[0]}: {{type: openai, model: NAME, base_url: http://127.0.0.1:8080/v1}}\n"
        f"#   {roles[0]}: {{type: gemini, model: NAME}}      # GOOGLE_API_KEY\n"
    )
    return _first_line("job") + head + body


def _first_line(kind: str) -> str:
    """What tells an editor how the file is checked."""
    return f"# yaml-language-server: $schema=./{_SCHEMAS}/{kind}.schema.json\n"


def _below(text: str) -> str:
    """A shipped file without its own first line, which names the schema from where it is."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith("# yaml-language-server:") else text
