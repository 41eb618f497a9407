"""Commands that install edgen's extras for the running Python.

The distribution is called `edgen-dialogues`, because `edgen` on the package index is another project's. No
command here uses either name: a checkout installs the checkout, and a wheel installs the packages of the
extra. So a hint never installs a foreign package.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgen.core.errors import EdgenError, UsageError
from edgen.core.plugin_checks import satisfies
from edgen.core.registry import read_headers
from edgen.core.system import split_path
from edgen.core.version import DISTRIBUTION

# Modules that whole packages of edgen, or a measure, need from an extra.
_MODULES = {
    "analysis": ("matplotlib", "numpy", "rensa"),
    "bleu": ("sacrebleu",),
    "bertscore": ("bert_score",),
    "local": ("xllamacpp",),
    "pictures": ("resvg_py",),
}


@dataclass(frozen=True, slots=True)
class Installation:
    """The installation of edgen."""

    python: str
    """The running Python."""
    checkout: Path | None
    """None if installed from a wheel."""
    has_pip: bool
    """Whether `python` has pip, which environments made by uv lack."""
    requirements: tuple[str, ...] = ()
    """The wheel's requirements, from its metadata."""


def find_current_installation() -> Installation:
    """Return the installation that this process runs."""
    root = Path(__file__).resolve().parents[2]
    return Installation(
        python=sys.executable or "python3",
        checkout=root if _is_checkout(root) else None,
        has_pip=importlib.util.find_spec("pip") is not None,
        requirements=_list_requirements(),
    )


def _list_requirements() -> tuple[str, ...]:
    """Return the requirements in the metadata of edgen's own distribution."""
    if (folder := _find_metadata(DISTRIBUTION)) is not None:
        return tuple(read_headers(folder).get("Requires-Dist", ()))
    from importlib import metadata

    try:
        return tuple(metadata.requires(DISTRIBUTION) or ())
    except metadata.PackageNotFoundError:
        return ()


def _find_metadata(distribution: str) -> Path | None:
    """Return the `*.dist-info` folder of an installed distribution; None if it has none. It is tried first,
    since importing importlib.metadata takes 50 ms."""
    return _list_metadata(tuple(sys.path)).get(_fold_name(distribution))


@functools.cache
def _list_metadata(path: tuple[str, ...]) -> dict[str, Path]:
    """Return the `*.dist-info` folder of each distribution; the first on `path` counts."""
    folders = [found for folder in split_path(path)[0] for found in folder.glob("*.dist-info")]
    return {_fold_name(found.name.partition("-")[0]): found for found in reversed(folders)}


def _fold_name(distribution: str) -> str:
    return distribution.replace("-", "_").replace(".", "_").lower()


def require_extra(extra: str, feature: str, *modules: str) -> None:
    """Raise UsageError if a module of an extra is missing or of an unsupported version. The message says that
    `feature`, a plural, needs it. `modules`: modules of an extra that the engine itself does not use."""
    if missing := find_missing_modules(extra, *modules):
        raise UsageError(
            f"{feature} need {', '.join(missing)}, of the extra '{extra}', which is not installed. Install it "
            f"with: {install_command(extra)}"
        )
    require_versions(extra)


@contextlib.contextmanager
def use_extra(
    extra: str, needs: str, rest: str = ".", error: type[EdgenError] = UsageError
) -> Iterator[None]:
    """Import modules of an extra in the body. Raises UsageError for an unsupported version, and `error` if
    one is not installed: `needs`, the command that installs them, and `rest`."""
    require_versions(extra)
    try:
        yield
    except ImportError:
        raise error(f"{needs} `{install_command(extra)}`{rest}") from None


def require_versions(extra: str, installation: Installation | None = None) -> None:
    """Raise UsageError if a package of an extra has a version that edgen does not support because another
    package requires it."""
    requirements = _list_requirements() if installation is None else installation.requirements
    wrong = []
    for requirement in _list_packages(extra, requirements) if requirements else ():
        name, bounds = _read_requirement(requirement)
        installed = _find_installed_version(name)
        if installed is not None and not satisfies(installed, bounds):
            wrong.append(f"{name} {installed} is installed, and edgen needs {requirement}")
    if wrong:
        raise UsageError(
            f"the extra '{extra}' conflicts with installed packages: {'; '.join(wrong)}. Install "
            f"it with: {install_command(extra, installation)}. If another package needs that "
            "version, use a separate environment."
        )


def find_missing_modules(extra: str, *modules: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [name for name in modules or _MODULES[extra] if not _is_there(name)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def install_command(extra: str, installation: Installation | None = None) -> str:
    """Return the command that installs an extra. Relative paths start at the current folder."""
    it = installation or find_current_installation()
    install = find_pip_command(it)
    if it.checkout is None:
        packages = " ".join(f"'{name}'" for name in _list_packages(extra, it.requirements))
        return f"{install} {packages}"
    place = shorten_path(it.checkout)
    if not it.has_pip and Path(it.python).is_relative_to(it.checkout / ".venv"):
        project = "" if place == "." else f"--project {shlex.quote(place)} "
        return f"uv sync {project}--no-dev --inexact --extra {extra}"
    return f"{install} -e {shlex.quote(f'{place}[{extra}]')}"


def find_pip_command(installation: Installation) -> str:
    """Return the beginning of a command that installs packages for the running Python."""
    python = shlex.quote(shorten_path(Path(installation.python)))
    return f"{python} -m pip install" if installation.has_pip else f"uv pip install --python {python}"


def _is_checkout(root: Path) -> bool:
    import tomllib

    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return bool(project["name"] == DISTRIBUTION)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _list_packages(extra: str, requirements: tuple[str, ...]) -> list[str]:
    """Return the packages of an extra: `openai>=3.52; extra == 'batch'` belongs to `batch`."""
    marker = re.compile(rf"""\bextra\s*==\s*(['"]){re.escape(extra)}\1""")
    return [text.partition(";")[0].strip() for text in requirements if marker.search(text)] or [extra]


def _read_requirement(requirement: str) -> tuple[str, str]:
    """Return the package of a requirement like `x[y]<3,>=1.2`, and its bounds; pre-releases count as their
    release."""
    name = re.match(r"[\w.-]+", requirement)
    return name[0] if name else requirement, ",".join(re.findall(r"(?:>=|<)\s*[\d.]+", requirement))


def _find_installed_version(name: str) -> str | None:
    if (folder := _find_metadata(name)) is not None:
        return folder.name.removesuffix(".dist-info").partition("-")[2]
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def shorten_path(path: Path) -> str:
    """Return the path as typed in the current folder."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: an environment's python is one
    try:
        return str(absolute.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(absolute)


def make_not_installed_error(distribution: str, missing: ImportError) -> UsageError:
    """Return the error of an adapter whose library, or a dependency of it, is missing."""
    return UsageError(
        f"{distribution} cannot be used here: {missing}. Install it: pip install {distribution}"
    )
