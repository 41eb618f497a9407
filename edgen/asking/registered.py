"""Askers by name: judges, annotators, writers and others about a run, of edgen and of other packages.

An entry point of the group `edgen.askers` names a class; its base class says what it can be used for.
"""

from __future__ import annotations

from typing import Any, TypeVar

from edgen.asking.asker import PromptAsker
from edgen.core import registry
from edgen.core.errors import UsageError
from edgen.core.plugins.checks import find_unfit_methods
from edgen.core.text import join_list
from edgen.core.yaml_values import suggest_name

A = TypeVar("A", bound=PromptAsker[Any, Any])


def find_named_asker(name: str | None, base: type[A]) -> type[A] | None:
    """Return the asker of that name, None if there is none that derives from `base`. Raises PluginError for
    one that cannot be loaded."""
    if name is None or name not in registry.list_names("asker"):
        return None
    found = registry.find("asker", name)
    if not (isinstance(found, type) and issubclass(found, base)):
        return None
    lacking = [
        *sorted(getattr(found, "__abstractmethods__", ())),
        *(["template"] if not hasattr(found, "template") else []),
    ]
    if lacking:
        names = join_list([f"`{one}`" for one in lacking])
        raise registry.PluginError(f"The asker {name!r} lacks {names}, which every asker has to define.")
    if (flaw := _find_asker_flaw(found)) is not None:
        raise registry.PluginError(f"The asker {name!r} {flaw}. Correct this, or uninstall its package.")
    return found


def _find_asker_flaw(kind: type[PromptAsker[Any, Any]]) -> str | None:
    """Return why a class cannot be used as an asker, as a clause; None if it can."""
    if not isinstance(kind.template, str):
        return f"has the `template` {kind.template!r}, which is neither a name nor a path"
    return next(find_unfit_methods(kind), None)


def find_asker(name: str, base: type[A], option: str, others: tuple[str, ...] = ()) -> type[A]:
    """Return the asker of that name. Raises UsageError, which names those that there are, and `others` that
    the option takes."""
    if (found := find_named_asker(name, base)) is not None:
        return found
    if name in registry.list_names("asker"):
        kinds = (one.__name__ for one in registry.find("asker", name).__mro__[1:])
        raise UsageError(
            f"{option}: the asker {name!r} is a {next(kinds, 'class')}, and this option takes a "
            f"{base.__name__}; CONTRIBUTING.md lists the options of each."
        )
    known = dict.fromkeys((*others, *list_askers(base)))
    close = suggest_name(name, known)
    every = "" if "known:" in close else f" (known: {', '.join(known)})"
    raise UsageError(f"{option}: there is no {name!r}{close}{every}.")


def list_askers(base: type[PromptAsker[Any, Any]]) -> tuple[str, ...]:
    """Return the names of the askers that derive from `base` and can be loaded."""
    return tuple(one for one in registry.list_names("asker") if _is_a(one, base))


def _is_a(name: str, base: type[PromptAsker[Any, Any]]) -> bool:
    """Return whether an asker derives from `base`; one that cannot be loaded does not."""
    try:
        return find_named_asker(name, base) is not None
    except registry.PluginError:
        return False
