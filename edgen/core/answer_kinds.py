"""Kinds of answers that a template's `expects` may name.

A protocol's object lists the kinds that it reads under `answers`. They are looked up when a name has to be
explained, so reading one kind never loads the others.
"""

from __future__ import annotations

import msgspec

from edgen.core import registry


class AnswerKind(msgspec.Struct, frozen=True):
    """A kind of answer."""

    name: str
    """Its name in templates."""
    says: str
    """The value read from an answer, or made from a text."""
    variables: tuple[str, ...]
    """Variables of its templates, as far as known without a job's space."""


def answer_kinds() -> dict[str, AnswerKind]:
    """Return every kind by its name, those of whole conversations first. If two protocols share one, the
    first describes it, and its templates may use the variables of both."""
    protocols = []
    for name in registry.names("protocol"):
        try:
            protocols.append(registry.find("protocol", name))
        except registry.PluginError:  # `edgen list plugins` reports the reason
            continue
    found: dict[str, AnswerKind] = {}
    for protocol in sorted(protocols, key=lambda one: -one.precedence):
        for kind in protocol.answers:
            known = found.setdefault(kind.name, kind)
            if known is not kind:
                both = tuple(dict.fromkeys((*known.variables, *kind.variables)))
                found[kind.name] = AnswerKind(kind.name, known.says, both)
    return found
