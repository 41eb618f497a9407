"""What an answer can be read as: the kinds that a template's `expects` may name.

Each is brought by the protocol that reads it, under `answers` on the protocol's object. They are looked up when a name
has to be explained, so whoever asks for one kind never loads the others.
"""

from __future__ import annotations

import msgspec

from edgen.core import registry


class AnswerKind(msgspec.Struct, frozen=True):
    """`name`: what templates call it by. `says`: what is read of an answer, or made of a text. `variables`: what a template of the kind may use, as far as
    no job's space tells."""

    name: str
    says: str
    variables: tuple[str, ...]


def answer_kinds() -> dict[str, AnswerKind]:
    """Every kind by its name, those of whole conversations first. Where two protocols bring one, the first says what it
    is, and a template of it may use what either knows."""
    protocols = []
    for name in registry.names("protocol"):
        try:
            protocols.append(registry.find("protocol", name))
        except registry.PluginError:  # `edgen plugins` says why
            continue
    found: dict[str, AnswerKind] = {}
    for protocol in sorted(protocols, key=lambda one: -one.precedence):
        for kind in protocol.answers:
            known = found.setdefault(kind.name, kind)
            if known is not kind:
                both = tuple(dict.fromkeys((*known.variables, *kind.variables)))
                found[kind.name] = AnswerKind(kind.name, known.says, both)
    return found
