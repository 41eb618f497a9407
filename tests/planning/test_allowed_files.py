"""Files that a job may read: by a table of names, links, projects, and paths that a person typed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgen.config import parse_job
from edgen.core.errors import FileError, JobError, SpaceError, TemplateError
from edgen.planning.allowed_files import MAX_TOKENIZER, AllowedFiles, Kind, allow_all_files, find_project
from edgen.planning.load import load_plan, load_plans

JOB = {
    "name": "j", "conversations": 2, "space": "education_dialogue", "prompt": "./mine.j2",
    "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Return a project with a job two folders down, next to files outside the project."""
    folder = tmp_path / "project" / "jobs" / "night"
    folder.mkdir(parents=True)
    (tmp_path / "project" / "pyproject.toml").touch()
    for name in (
        "outside.j2",
        "project/shared.j2",
        "project/jobs/night/mine.j2",
        "project/jobs/night/mine.txt",
    ):
        (tmp_path / name).write_text("Talk about {{ topic }}.")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.j2").write_text("secret")
    (folder / "to_outside.j2").symlink_to(tmp_path / "outside.j2")
    (folder / "to_shared.j2").symlink_to("../../shared.j2")
    (folder / "folder").symlink_to(tmp_path / "outside")
    (folder / "round.j2").symlink_to("round.j2")
    (tmp_path / "project" / ".env").write_text("KEY=secret")
    (tmp_path / "project" / "blob").write_text("{}")
    for name in ("to_env.j2", "to_env.yaml"):
        (folder / name).symlink_to("../../.env")
    (folder / "to_blob.json").symlink_to("../../blob")
    os.mkfifo(folder / "pipe.j2")
    return folder


def file(here: Path, name: str, kind: Kind = "prompts", **more: object) -> Path:
    return AllowedFiles.of(here / "job.yaml", **more).find_file(kind, name, "prompt")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "./mine.j2", "mine.j2", "../../shared.j2", "to_shared.j2", "./nowhere.j2", "education_dialogue",
        "no_such_name",
    ],
)  # fmt: skip
def test_files_of_the_project_and_shipped_names_are_fine(here: Path, name: str) -> None:
    file(here, name)


OUTSIDE = [
    "../../../outside.j2", "to_outside.j2", "folder/secret.j2", "../../../nowhere.j2", "/etc/nowhere.j2",
    "~/.ssh/id_ed25519", "/proc/self/environ", "../../../x",
]  # fmt: skip
UNSUITED = ["./mine.txt", "../../x", "./nowhere.json"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_files_outside_are_read_only_where_the_person_says_so(here: Path, name: str) -> None:
    with pytest.raises(TemplateError, match=r"outside of the job's project .*project") as caught:
        file(here, name)
    assert "--allow-outside" in str(caught.value)
    assert f"--set prompt={name}" in str(caught.value)
    assert caught.value.exit_code == 2
    file(here, name, outside=True)
    file(here, name, overrides=[f"prompt={name}"])
    file(here, name, overrides=[f"arms={{a: {{prompts: {{teacher: '{name}'}}}}}}"])
    with pytest.raises(TemplateError):
        file(here, name, overrides=["prompt=./another.j2"])


@pytest.mark.parametrize("name", UNSUITED)
def test_a_file_of_another_kind_is_refused(here: Path, name: str) -> None:
    with pytest.raises(TemplateError, match=r"has to end in \.j2"):
        file(here, name)
    file(here, name, outside=True)


def test_the_suffix_is_that_of_the_kind(here: Path) -> None:
    for kind, good, bad in (
        ("preference_space", ("./s.yaml", "./s.yml"), "./s.j2"),
        ("tokenizer", ("tokenizer.json", "./t/tokenizer.json"), "tokenizer.model"),
    ):
        for name in good:
            file(here, name, kind)  # type: ignore[arg-type]
        with pytest.raises(FileError, match="has to end in"):
            file(here, bad, kind)  # type: ignore[arg-type]


def test_what_a_link_leads_to_is_of_its_kind_too(here: Path) -> None:
    for name, kind in (("to_env.j2", "prompts"), ("to_env.yaml", "preference_space")):
        with pytest.raises(FileError, match=r"this leads to .*/\.env, and what `prompt` names has to end in"):
            file(here, name, kind)  # type: ignore[arg-type]
        file(here, name, kind, outside=True)  # type: ignore[arg-type]
        file(here, name, kind, overrides=[f"prompt={name}"])  # type: ignore[arg-type]
    file(here, "to_blob.json", "tokenizer")


@pytest.mark.parametrize("more", [{}, {"outside": True}, {"overrides": ["prompt=pipe.j2"]}])
def test_a_pipe_is_never_opened(here: Path, more: dict[str, object]) -> None:
    with pytest.raises(TemplateError, match="a pipe or a device"):
        file(here, "pipe.j2", **more)
    with pytest.raises(TemplateError, match="a pipe or a device"):
        allow_all_files().find_file("prompts", "/dev/zero", "prompt")


def test_links_in_a_circle_and_names_that_are_none_are_sentences(here: Path) -> None:
    for name in ("round.j2", "./a\0b.j2", f"./{'x' * 300}.j2"):
        with pytest.raises(TemplateError, match="cannot be read"):
            file(here, name)


def test_a_tokenizer_that_is_too_large_is_not_read(here: Path) -> None:
    with (here / "huge.json").open("wb") as made:
        made.truncate(MAX_TOKENIZER + 1)
    with pytest.raises(FileError, match="larger than 256 MiB"):
        file(here, "huge.json", "tokenizer")


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "edgen.yaml"])
def test_the_project_is_the_nearest_marked_folder_else_the_jobs_own(tmp_path: Path, mark: str) -> None:
    job = tmp_path / "a" / "b" / "c"
    job.mkdir(parents=True)
    assert find_project(job) == job.resolve()
    (tmp_path / "a" / mark).mkdir()
    assert find_project(job) == (tmp_path / "a").resolve()
    (tmp_path / "a" / "b" / "edgen.yaml").touch()
    assert find_project(job) == (tmp_path / "a" / "b").resolve()


def test_a_link_to_a_job_has_the_project_of_the_link(here: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "job.yaml").symlink_to(here / "job.yaml")
    with pytest.raises(TemplateError, match="outside"):
        file(tmp_path / "linked", str(here / "mine.j2"))


def write(here: Path, **changes: object) -> Path:
    import yaml

    path = here / "job.yaml"
    path.write_text(yaml.safe_dump({**JOB, **changes}))
    return path


SELFPLAY = {"protocol": "selfplay", "prompt": None}


@pytest.mark.parametrize(
    ("changes", "error", "key"),
    [
        ({"prompt": "../../../outside.j2"}, TemplateError, "prompt"),
        ({"space": "../../../space.yaml"}, SpaceError, "space"),
        ({**SELFPLAY, "prompts": {"teacher": "../../../outside.j2"}}, TemplateError, "prompts.teacher"),
        ({"prompts": {"oracle": "../../../outside.j2"}}, TemplateError, "prompts.oracle"),
        ({"arms": {"a": {"prompt": "../../../outside.j2"}}}, TemplateError, "prompt"),
        ({"arms": {"a": {"space": "../../../space.yaml"}}, "design": "random"}, SpaceError, "space"),
    ],
)
def test_every_key_of_a_job_that_names_a_file_is_held_to_it(
    here: Path, changes: dict[str, object], error: type[FileError], key: str
) -> None:
    with pytest.raises(error, match="outside of the job's project") as caught:
        load_plans(write(here, **changes))
    assert f"--set {key}=" in str(caught.value)


def test_what_is_typed_is_read_by_the_whole_way(here: Path) -> None:
    path = write(here, prompt="../../../outside.j2")
    with pytest.raises(TemplateError):
        load_plan(path)
    assert load_plan(path, ["prompt=../../../outside.j2"]).prompts["default"].name == "outside"
    assert load_plan(path, (), AllowedFiles.of(path, outside=True)).prompts["default"].name == "outside"


def test_a_job_is_still_refused_for_what_it_is(here: Path) -> None:
    with pytest.raises(JobError):
        parse_job({**JOB, "prompt": 7}, "job.yaml")
