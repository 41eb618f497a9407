"""Label sets for turns or conversations, one YAML file each.

    name: moves
    source: my own
    several: false            # whether a unit can carry more than one
    roles: [Teacher]          # the labelled roles; default: all
    other: Other              # the label for units that fit no other; default: every unit fits one
    labels:
      - {name: Probing, definition: asks what the student thinks, examples: [How did you find that?]}
      - {name: Telling, definition: says the answer or how to find it}

A set is found by a shipped name or by a file's path. It is valid as a whole, or refused with every problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from edgen.config.backends import Text
from edgen.core import resources
from edgen.core.errors import FileError, Problem
from edgen.core.text import compile_later
from edgen.core.yaml_values import build, read_text, read_yaml, shorten_word, suggest_name

MOST_LABELS = 200
_LONGEST = 60  # characters of a name
_APART = compile_later(r"[:,;|\[\]\"\r\n]")  # separators of labels in a reply
NOTHING_ELSE = "anything else"


class LabelSetError(FileError):
    """An unusable label set."""

    what = "label set"


class LabelDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One label."""

    name: Text
    """The label's name."""
    definition: Text
    """The meaning, in a clause."""
    examples: tuple[Text, ...] = ()
    """Turns with this label."""


class LabelSet(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that a unit can carry."""

    name: Text
    """The set's name."""
    labels: tuple[LabelDefinition, ...]
    """The labels."""
    source: str | None = None
    """Origin of the labels."""
    several: bool = False
    """Whether a unit can have several labels."""
    roles: tuple[Text, ...] = ()
    """Roles whose turns are labelled; empty: all."""
    other: Text | None = None
    """Label for units that fit no other; null: every unit fits one."""

    @property
    def definitions(self) -> dict[str, str]:
        """Every label with its definition, `other` last."""
        found = {label.name: label.definition for label in self.labels}
        return found if self.other is None else {**found, self.other: NOTHING_ELSE}

    @property
    def names(self) -> tuple[str, ...]:
        """Every label's name."""
        return tuple(self.definitions)

    @property
    def examples(self) -> dict[str, tuple[str, ...]]:
        """Example turns by label, if the set has any."""
        return {label.name: label.examples for label in self.labels if label.examples}

    @property
    def is_scale(self) -> bool:
        """True if every label is a number, such as the levels of a rubric."""
        return all(read_number(name) is not None for name in self.names)

    def asks_for(self, role: str) -> bool:
        """Return whether turns of a role are labelled."""
        return not self.roles or role in self.roles


def read_number(label: str) -> float | None:
    """Return a label as a number on a scale; None if it is not a number."""
    try:
        return float(label) if len(label) < 20 and label.isascii() and label[0] in "+-.0123456789" else None
    except ValueError:
        return None


def find_majority(given: Sequence[tuple[str, ...]], labels: LabelSet) -> tuple[tuple[str, ...], bool]:
    """Return the majority's labels, in the order of the set, and whether there is a tie. A tie has no labels.

    If a unit has one label, the majority is the label given more often than any other. If it can have
    several, the majority is the labels given by more than half; a label given by exactly half, or no label
    with a majority, is a tie.
    """
    counts = Counter(label for one in given for label in one)
    if labels.several:
        found = tuple(name for name in labels.names if 2 * counts[name] > len(given))
        tie = not found or any(2 * count == len(given) for count in counts.values())
    else:
        most = max(counts.values(), default=0)
        found = tuple(name for name in labels.names if counts[name] == most)
        tie = len(found) != 1
    return ((), True) if tie else (found, False)


def make_inline_set(name: str, definitions: dict[str, str], *, several: bool = True) -> LabelSet:
    """Build a label set from labels and definitions, as written in a job."""
    labels = tuple(
        LabelDefinition(name=label, definition=definition) for label, definition in definitions.items()
    )
    return LabelSet(name=name, labels=labels, several=several)


def find_label_set(reference: str) -> LabelSet:
    """Return the label set of that name, or in the file at that path. Raises LabelSetError."""
    path = resources.find("label_sets", reference)
    if not path.exists() and resources.is_shipped("label_sets", path):
        known = suggest_name(reference, resources.list_shipped("label_sets"))
        own = "a file of your own is named by its path, as in ./my_labels.yaml"
        raise LabelSetError(reference, f"there is no such label set{known}; {own}.")
    return load_label_set(path)


def load_label_set(path: Path) -> LabelSet:
    """Return the label set in the file at `path`. Raises LabelSetError with every problem found."""
    return parse_label_set(read_text(path, LabelSetError), str(path))


def parse_label_set(text: str, source: str) -> LabelSet:
    """Parse a label set in YAML; messages call it `source`. Raises LabelSetError."""
    value = read_yaml(text, source, LabelSetError)
    if not isinstance(value, dict):
        raise LabelSetError(
            source, "this file is not a mapping; a label set is a mapping with `name` and `labels`."
        )
    labels = value.get("labels")
    if isinstance(labels, list) and len(labels) > MOST_LABELS:
        message = f"there are {len(labels):,} labels, and at most {MOST_LABELS} can be chosen from"
        raise LabelSetError.of(source, [Problem("$.labels", message)])
    found = build(value, LabelSet, source, LabelSetError)
    if problems := [*set_problems(found)]:
        raise LabelSetError.of(source, problems)
    return found


def set_problems(labels: LabelSet, path: str = "$") -> Iterator[Problem]:
    """Yield problems of a set with valid keys; `path` is the path of the set."""
    names = {f"{path}.labels[{place}].name": label.name for place, label in enumerate(labels.labels)}
    if labels.other is not None:
        names[f"{path}.other"] = labels.other
    if len(names) < 2:
        message = f"there {_describe_amount(len(names))}; a label set needs at least two"
        yield Problem(f"{path}.labels", message)
    if len(names) > MOST_LABELS:
        message = f"there are {len(names):,} labels, and at most {MOST_LABELS} can be chosen from"
        yield Problem(f"{path}.labels", message)
    yield from find_name_problems(names)


def find_name_problems(names: Mapping[str, str]) -> Iterator[Problem]:
    """Yield problems of the names of a set's labels, each with its place."""
    seen: dict[str, str] = {}
    for where, name in names.items():
        if wrong := _find_name_problem(name):
            yield Problem(where, wrong)
        first = seen.setdefault(name.casefold().strip(), where)
        if first != where:
            yield Problem(where, f"{shorten_word(repr(name))} is already at {first}")


def _find_name_problem(name: str) -> str | None:
    """Return the problem of a label's name; None if there is none."""
    if len(name) > _LONGEST:
        return f"a label's name has at most {_LONGEST} characters, and this has {len(name):,}"
    if name != name.strip() or (odd := _APART.search(name)):
        shown = "a blank at an end" if name != name.strip() else repr(odd[0] if odd else "")
        return f"a label's name cannot have {shown}: it separates labels"
    return None


def _describe_amount(count: int) -> str:
    return "is one label" if count == 1 else "are no labels"
