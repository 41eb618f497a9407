"""Phrases of a space: sentences for the simulator in the space's file, and the names of persona dimensions.

A space needs no phrases: the simulator can say its values, their fields and its knowledge file as they are.
Phrases shape no prompt and no scenario, so they are not part of a space's content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from edgen.core.text import compile_later

Phrasings = tuple[str, ...]
SLOT = compile_later(r"\{([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)?(?::lower|:new)?)\}")
HEARD, KNOWLEDGE = "heard", "knowledge"


class PhraseAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer of a role to a turn that holds certain words."""

    to: Phrasings
    """Words of the other's turn, one or several; they may have slots, such as `{topic.question}`."""
    says: Phrasings
    """Ways to answer; one is drawn."""
    when: Mapping[str, Phrasings] = msgspec.field(default_factory=dict)
    """Values, by dimension: the answer is for scenarios that have one of them; empty: for all."""


class RolePhrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Steps of one role in order: one per turn, each with one or several ways to say it."""

    opens: Phrasings = ()
    """Ways to say its first turn."""
    says: tuple[Phrasings, ...] = ()
    """The steps after it; each is a text, or a list of texts of which one is drawn."""
    closes: Phrasings = ()
    """Ways to say its last turn."""
    answers: tuple[PhraseAnswer, ...] = ()
    """Answers to certain words, which come before the next step."""


class Phrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Sentences of the simulator about a space's values.

    A way may have slots: `{topic}`, `{topic:lower}`, a field as `{topic.example}`, `{topic.examples:new}` for
    an item that nobody has said yet, `{heard}` for the example that the other gave last, `{knowledge}` for a
    fact of the knowledge file. A way with a slot that the role cannot fill is left out.
    """

    persona: Phrasings | None = None
    """Dimensions that say how a role behaves, which nobody says of oneself; null: recognised by their
    names."""
    wrong: Phrasings = ()
    """Dimensions whose values are not true, and are rarely believed."""
    right: Phrasings = ()
    """Dimensions whose values answer questions. Without any, all but those in `wrong` may answer."""
    said: dict[str, dict[str, Phrasings]] = {}
    """By dimension and value: ways to say that value in speech."""
    facts: dict[str, dict[str, dict[str, str | Phrasings]]] = {}
    """By dimension and value: further facts by name, for slots such as `{topic.answer}`. No prompt has
    them."""
    roles: dict[str, RolePhrases] = {}
    """Steps of each role, by role."""


PHRASES = "phrases"  # the key of the section
NOTHING = Phrases()


# ---- personas

_TRAIT = r"(?:persona|personality|manner|mood|tone|temper|temperament|attitude|behaviou?r|style)s?"
_TRAITS = compile_later(
    rf"\b{_TRAIT}\b|\b(?:how|who)(?: much| well)? you (?:are|write|talk|speak|behave|feel|know|react|learn"
    r"|teach)\b"
)
_OF_ROLE = compile_later(rf"(?:{_TRAIT}|moves?|preferences?|prefrences?|reactions?|type|kind)\Z")
_PEOPLE = ("learner", "student", "pupil", "teacher", "tutor", "speaker")


def find_persona_among(labels: Mapping[str, str], roles: Iterable[str]) -> frozenset[str]:
    """Return the dimensions, of those in `labels`, that describe how one of the roles is, by their names and
    labels."""
    people = {*_PEOPLE, *(role.lower() for role in roles)}
    return frozenset(name for name, label in labels.items() if _is_persona(name.lower(), label, people))


def _is_persona(name: str, label: str, people: Collection[str]) -> bool:
    whose, _, what = name.partition("_")
    if name in people or (whose in people and _OF_ROLE.match(what)):
        return True
    return _TRAITS.search(f"{name.replace('_', ' ')} {label.lower()}") is not None
