"""A hint at a missing extra is a working command, and never names another project's package."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from edgen.core.errors import UsageError
from edgen.core.extras import Installation, find_current_installation, install_command, require_versions
from edgen.core.version import DISTRIBUTION
from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])
WHEEL = Installation(
    "/opt/py/bin/python", None, True, ("aiohttp>=3", "openai>=3; extra == 'batch'", 'pyarrow; extra == "parquet"')
)  # fmt: skip


@pytest.mark.parametrize(
    ("installation", "command"),
    [
        (WHEEL, "/opt/py/bin/python -m pip install 'openai>=3'"),
        (replace(WHEEL, has_pip=False), "uv pip install --python /opt/py/bin/python 'openai>=3'"),
        (replace(WHEEL, checkout=Path("/c o")), "/opt/py/bin/python -m pip install -e '/c o[batch]'"),
        (
            Installation("/c/.venv/bin/python", Path("/c"), has_pip=False),
            "uv sync --project /c --no-dev --inexact --extra batch",
        ),
        (
            Installation("/opt/py/bin/python", Path("/c"), has_pip=False),
            "uv pip install --python /opt/py/bin/python -e '/c[batch]'",
        ),
    ],
)
def test_the_command_suits_the_installation(installation: Installation, command: str) -> None:
    assert install_command("batch", installation) == command


def test_inside_the_checkout_paths_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    uv = Installation(str(ROOT / ".venv/bin/python"), ROOT, has_pip=False)
    assert install_command("batch", uv) == "uv sync --no-dev --inexact --extra batch"
    assert (
        install_command("batch", replace(uv, has_pip=True)) == ".venv/bin/python -m pip install -e '.[batch]'"
    )


def test_this_installation_is_known_as_what_it_is() -> None:
    here = find_current_installation()
    assert here.python == sys.executable
    assert here.checkout == ROOT


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_packages_of_an_extra_are_those_of_pyproject(extra: str) -> None:
    wheel = replace(find_current_installation(), checkout=None, has_pip=True)
    named = shlex.split(install_command(extra, wheel))[4:]
    assert sorted(named) == sorted(PROJECT["optional-dependencies"][extra])


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_is_installed_here_has_supported_versions(extra: str) -> None:
    require_versions(extra)


@pytest.mark.parametrize(
    ("requirement", "wrong"),
    [
        ("msgspec>=0.1", False),
        ("msgspec<9999,>=0.1", False),
        ("msgspec>=9999", True),
        ("msgspec[toml]>=9999.1rc2", True),
        ("msgspec<0.1,>=0.0", True),
        ("none-of-this-name>=9", False),  # a missing package is not a conflict
    ],
)
def test_an_unsupported_version_is_named_with_the_command_that_installs_another(
    requirement: str, wrong: bool
) -> None:
    wheel = Installation("/opt/py/bin/python", None, True, ("aiohttp>=3", f"{requirement}; extra == 'batch'"))
    said = ""
    try:
        require_versions("batch", wheel)
    except UsageError as error:
        said = str(error)
    installed = metadata.version("msgspec")
    assert (f"msgspec {installed} is installed, and edgen needs {requirement}" in said) is wrong
    assert (f"/opt/py/bin/python -m pip install '{requirement}'" in said) is wrong


@pytest.mark.integration
def test_the_package_index_is_never_asked_for_the_taken_name() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    suggested = re.compile(
        r"(?:pipx? |uvx? (?:pip |tool |add)?)(?:install|run|add|sync)?[^\n`]*?[\s'\"=]edgen(?:['\"\[\s=<>`]|$)"
        r"|(?<![\w/])edgen\[[a-z]",
        re.MULTILINE,
    )
    assert suggested.search("pip install 'edgen[batch]'")
    assert suggested.search("run: pip install edgen\n")
    assert not suggested.search("pip install 'edgen-dialogues[batch]'")
    found = {}
    for name in filter(None, tracked.split("\0")):
        path = ROOT / name
        if path == Path(__file__) or not path.is_file():
            continue
        if match := suggested.search(path.read_text(encoding="utf-8", errors="replace")):
            found[name] = match[0]
    assert not found
