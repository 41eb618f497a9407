"""How to install an extra of edgen, as a command that works for the Python that runs now.

The distribution is called `edgen-dialogues`, because `edgen` on the package index is another project's. No command here
names either: from a checkout the checkout is installed, and beside a wheel the packages that the extra stands for. So
nothing of a stranger's can be installed by following a hint.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from edgen.core.errors import UsageError
from edgen.core.version import DISTRIBUTION

# What is imported of an extra that whole packages of edgen, or a measure, rest on.
_MODULES = {
    "analysis": ("matplotlib", "nltk", "numpy", "rensa"),
    "bleu": ("sacrebleu",),
    "bertscore": ("bert_score",),
    "retrieval": ("bm25s",),
}


@dataclass(frozen=True, slots=True)
class Installation:
    """How edgen is installed. `checkout` is None where it came from a wheel; `has_pip`: whether `python` has pip, which
    environments made by uv lack; `requirements` are the wheel's, as its metadata has them."""

    python: str
    checkout: Path | None
    has_pip: bool
    requirements: tuple[str, ...] = ()


def current_installation() -> Installation:
    """The installation that this process runs."""
    from importlib import metadata

    root = Path(__file__).resolve().parents[2]
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        requirements = []
    return Installation(
        python=sys.executable or "python3",
        checkout=root if _is_checkout(root) else None,
        has_pip=importlib.util.find_spec("pip") is not None,
        requirements=tuple(requirements),
    )


def require_extra(extra: str, what: str) -> None:
    """Raise UsageError where a module of an extra is missing. `what`, in the plural, needs it."""
    if missing := missing_modules(extra):
        raise UsageError(
            f"{what} need {', '.join(missing)}, of the extra '{extra}', which is not installed. Install it with: "
            f"{install_command(extra)}"
        )


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in _MODULES[extra] if not _is_there(name)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def install_command(extra: str, installation: Installation | None = None) -> str:
    """The command that installs an extra. Relative paths start at the current folder."""
    it = installation or current_installation()
    python = shlex.quote(_shown(Path(it.python)))
    install = f"{python} -m pip install" if it.has_pip else f"uv pip install --python {python}"
    if it.checkout is None:
        packages = " ".join(f"'{name}'" for name in _packages(extra, it.requirements))
        return f"{install} {packages}"
    place = _shown(it.checkout)
    if not it.has_pip and Path(it.python).is_relative_to(it.checkout / ".venv"):
        project = "" if place == "." else f"--project {shlex.quote(place)} "
        return f"uv sync {project}--no-dev --inexact --extra {extra}"
    return f"{install} -e {shlex.quote(f'{place}[{extra}]')}"


def _is_checkout(root: Path) -> bool:
    import tomllib

    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return bool(project["name"] == DISTRIBUTION)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _packages(extra: str, requirements: tuple[str, ...]) -> list[str]:
    """What an extra stands for: `openai>=3.52; extra == 'batch'` is one of `batch`."""
    marker = re.compile(rf"""\bextra\s*==\s*(['"]){re.escape(extra)}\1""")
    return [text.partition(";")[0].strip() for text in requirements if marker.search(text)] or [extra]


def _shown(path: Path) -> str:
    """The path as one would type it in the current folder."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: an environment's python is one
    try:
        return str(absolute.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(absolute)
