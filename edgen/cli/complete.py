"""Shell completion of words: `edgen --install-completion` sets it up.

Each function is the `autocompletion` of an option or argument. Words come from names and small files alone:
no run is opened, no plugin is loaded. After any error a shell gets fewer words and no message. Only words of
harmless characters are offered, since bash expands patterns in them, and zsh evaluates them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from typer import Context

_HARMLESS = re.compile(r"[\w@%+,./][\w@%+=,./-]*")
_MOST = 500  # entries of a folder that are looked at

Find = Callable[[Any, str], Iterable[str]]


def _offer(find: Find) -> Callable[[Context, str], list[str]]:
    """Make a completion from a function of a context and the beginning of a word."""

    def complete(ctx: Context, incomplete: str) -> list[str]:
        try:
            words = [word for word in find(ctx, incomplete) if word.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - no message belongs in the middle of a command line
            return []
        return [*dict.fromkeys(word for word in words if _HARMLESS.fullmatch(word))]

    return complete


def offer_files(kind: Any) -> Callable[[Context, str], list[str]]:
    """Offer the files of a kind: shipped names, and files here or in the folder that the word begins with."""

    def find(_ctx: Any, incomplete: str) -> Iterator[str]:
        from edgen.cli.known_names import find_known_files, find_own_files

        yield from find_known_files(kind)
        if "/" in incomplete:
            yield from find_own_files(kind, (incomplete.rpartition("/")[0] or "/",))

    return _offer(find)


def _complete_plugins(kind: Any) -> Callable[[Context, str], list[str]]:
    """Offer the names of a kind of plugin."""

    def find(_ctx: Any, _incomplete: str) -> list[str]:
        from edgen.cli.known_names import list_plugin_names

        return list_plugin_names(kind)

    return _offer(find)


def _complete_askers(*own: str) -> Any:
    """Offer words of the engine's own, and the askers of domains and of other packages."""

    def find(_ctx: Any, _incomplete: str) -> list[str]:
        from edgen.core import registry

        askers = [one for one in registry.list_all_plugins() if one.kind == "asker"]
        return [*own, *(one.name for one in askers if not one.object.startswith("edgen.asking."))]

    return _offer(find)


def _find_templates(_ctx: Any, incomplete: str) -> Iterator[str]:
    from edgen.core.resources import list_shipped

    yield from list_shipped("prompts")
    folder = incomplete.rpartition("/")[0]
    for path in (Path(folder or "."), *(() if folder else (Path("prompts"),))):
        yield from (_as_path(each) for each in _list_entries(path) if each.suffix == ".j2")


def _find_runs(_ctx: Any, incomplete: str) -> Iterator[str]:
    """Yield the runs in the folder that the word begins with; without a folder, also those in outputs/."""
    folder, slash, _ = incomplete.rpartition("/")
    places = (Path(folder + slash),) if slash else (Path(), Path("outputs"))
    yield from (
        str(path) for place in places for path in _list_entries(place) if (path / "run.lock").exists()
    )


def _find_layers(ctx: Any, _incomplete: str) -> Iterator[str]:
    for run in _find_named_runs(ctx):
        yield from (path.name for path in _list_entries(run / "layers") if path.is_dir())


def _find_arms(ctx: Any, _incomplete: str) -> Iterator[str]:
    for run in _find_named_runs(ctx):
        yield from _list_keys(run / "job.yaml", "arms")


def _find_backends(ctx: Any, incomplete: str) -> Iterator[str]:
    """Yield the roles of a run's job; for a command without a run, jobs."""
    if "run" in ctx.params or "runs" in ctx.params:
        for run in _find_named_runs(ctx):
            yield from _list_keys(run / "job.yaml", "backends")
    else:
        yield from jobs(ctx, incomplete)


def _find_named_runs(ctx: Any) -> list[Path]:
    """Return the runs named on the command line so far. After an option without its value, click has them as
    words without a name."""
    named = [ctx.params.get("run"), *(ctx.params.get("runs") or ())]
    return [path for path in named if path] or [Path(word) for word in ctx.args]


def _list_keys(path: Path, key: str) -> list[str]:
    """Return the keys of a mapping in a YAML file."""
    from edgen.core.errors import DataError
    from edgen.core.yaml_values import read_text, read_yaml

    return [*read_yaml(read_text(path, DataError), str(path), DataError)[key]]


def _list_entries(folder: Path) -> list[Path]:
    return sorted(islice(folder.iterdir(), _MOST)) if folder.is_dir() else []


def _as_path(path: Path) -> str:
    """Return a path in the form of a job: a file here needs the dot."""
    return str(path) if "/" in str(path) else f"./{path}"


jobs = offer_files("jobs")
spaces = offer_files("spaces")
label_sets = offer_files("label-sets")
formats = _complete_plugins("formats")
measures = _complete_plugins("measures")
signals = _complete_askers("oracle", "probability", "human", "flag", "judged")
writers = _complete_askers("paraphrases", "wrong")
templates = _offer(_find_templates)
runs = _offer(_find_runs)
layers = _offer(_find_layers)
arms = _offer(_find_arms)
backends = _offer(_find_backends)
