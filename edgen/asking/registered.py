"""Askers by name: judges, annotators, writers and others about a run, of edgen and of other packages.

An entry point of the group `edgen.askers` names a class. Its base class decides its use and the option that
takes its name (`taken_by`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any, NamedTuple, TypeVar

from edgen.asking.asker import PromptAsker
from edgen.core import registry
from edgen.core.errors import UsageError
from edgen.core.plugin_checks import find_unfit_methods
from edgen.core.text import join_list
from edgen.core.yaml_values import suggest_name

A = TypeVar("A", bound=PromptAsker[Any, Any])


def find_named_asker(name: str | None, base: type[A]) -> type[A] | None:
    """Return the asker of that name; None if no asker of that name derives from `base`. Raises PluginError if
    it cannot be loaded."""
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
    if not isinstance(role := getattr(kind, "role", ""), str):
        return f"has the `role` {role!r}, which is not text"
    variables = getattr(kind, "variables", ())
    if isinstance(variables, str) or not isinstance(variables, Collection):
        return f"has `variables` that are not a collection of names: {variables!r}"
    if not kind.__init__.__module__.startswith("edgen."):
        try:
            inspect.signature(kind).bind(None, None, None)
        except TypeError:
            return "has an `__init__` that cannot be called as `__init__(reader, job, answerer)`"
    return next(find_unfit_methods(kind), None)


def find_asker(name: str, base: type[A], others: tuple[str, ...] = ()) -> type[A]:
    """Return the asker of that name. Raises UsageError, which lists the known names and `others` that the
    option of `base` also takes."""
    option = base.taken_by.rpartition(" ")[2]
    if (found := find_named_asker(name, base)) is not None:
        return found
    if name in registry.list_names("asker"):
        kind = registry.find("asker", name)
        parent = next((one.__name__ for one in kind.__mro__[1:]), "class")
        taken = getattr(kind, "taken_by", "")
        wanted = f"name it with `{taken}`" if taken else "no option takes it"
        raise UsageError(
            f"{option}: the asker {name!r} is a {parent}, and this option takes a {base.__name__}; {wanted}."
        )
    known = dict.fromkeys((*others, *list_askers(base)))
    close = suggest_name(name, known)
    every = "" if "known:" in close else f"; known: {', '.join(known)}"
    raise UsageError(f"{option}: there is no {name!r}{close}{every}.")


class AskerEntry(NamedTuple):
    """An asker in the list of all."""

    name: str
    option: str
    """The command and its option that take the name; empty if none does."""
    summary: str
    """The first sentence of the class's docstring, or why the asker is unusable; empty if there is none."""
    origin: str
    """Its package, with the version."""
    own: bool
    """Whether it is edgen's own."""


def describe_askers() -> list[AskerEntry]:
    """Return every asker of the installed packages, by name, usable or not."""
    found = (plugin for plugin in registry.list_all_plugins() if plugin.kind == "asker")
    return [_describe_asker(plugin) for plugin in found]


def _describe_asker(plugin: registry.Plugin) -> AskerEntry:
    option = ""
    try:
        kind = find_named_asker(plugin.name, PromptAsker)  # type: ignore[type-abstract]
    except registry.PluginError as error:
        summary = f"ERROR: {error}"
    else:
        if kind is None:
            summary = "ERROR: It is not a class that derives from one of edgen.plugin.askers."
        else:
            option = kind.taken_by
            text = " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
            summary = re.split(r"(?<=\.) ", text)[0]
    return AskerEntry(plugin.name, option, summary, plugin.origin, plugin.package == registry.DISTRIBUTION)


def list_askers(base: type[PromptAsker[Any, Any]]) -> tuple[str, ...]:
    """Return the names of the askers that derive from `base` and can be loaded."""
    return tuple(one for one in registry.list_names("asker") if _is_a(one, base))


def _is_a(name: str, base: type[PromptAsker[Any, Any]]) -> bool:
    """Return whether an asker derives from `base`; False if it cannot be loaded."""
    try:
        return find_named_asker(name, base) is not None
    except registry.PluginError:
        return False
