"""What turns or conversations can be labelled with: a label set, one YAML file.

    name: moves
    source: my own
    several: false            # whether a unit can carry more than one
    roles: [Teacher]          # whose turns; nobody named: everybody's
    other: Other              # the label of what fits none; left out: every unit fits one
    labels:
      - {name: Probing, definition: asks what the student thinks, examples: [How did you find that?]}
      - {name: Telling, definition: says the answer or how to find it}

A set is found by the name of a shipped one, or by the path of a file. Read whole or refused with every problem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from edgen.config.backends import Text
from edgen.core import resources
from edgen.core.errors import FileError, Problem
from edgen.core.yaml_values import build, nearest, read_text, read_yaml, shortened

MOST_LABELS = 200
_LONGEST = 60  # characters of a name
_APART = re.compile(r"[:,;|\[\]\"\r\n]")  # what stands between labels in a reply
NOTHING_ELSE = "anything else"


class LabelSetError(FileError):
    """A label set that cannot be used."""

    what = "label set"


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """One label."""

    name: Text
    """What it is called."""
    definition: Text
    """When it holds, in a clause."""
    examples: tuple[Text, ...] = ()
    """Turns that carry it."""


class LabelSet(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that a unit can carry."""

    name: Text
    """What the set is called."""
    labels: tuple[Label, ...]
    """The labels."""
    source: str | None = None
    """Where the labels come from."""
    several: bool = False
    """Whether a unit can carry more than one."""
    roles: tuple[Text, ...] = ()
    """The roles whose turns are labelled; without any, all."""
    other: Text | None = None
    """The label of what fits no other; without it, each unit fits one."""

    @property
    def definitions(self) -> dict[str, str]:
        """Every label with what it means, that of everything else at the end."""
        found = {label.name: label.definition for label in self.labels}
        return found if self.other is None else {**found, self.other: NOTHING_ELSE}

    @property
    def names(self) -> tuple[str, ...]:
        """Every label's name."""
        return tuple(self.definitions)

    @property
    def examples(self) -> dict[str, tuple[str, ...]]:
        """Turns that carry a label, where the set names some."""
        return {label.name: label.examples for label in self.labels if label.examples}

    @property
    def is_scale(self) -> bool:
        """Whether every label is a number, as the levels of a rubric are."""
        return all(number_of(name) is not None for name in self.names)

    def asks_for(self, role: str) -> bool:
        """Whether turns of a role are labelled."""
        return not self.roles or role in self.roles


def number_of(label: str) -> float | None:
    """The number that a label is, as on a scale; None where it is none."""
    try:
        return float(label) if len(label) < 20 and label.isascii() and label[0] in "+-.0123456789" else None
    except ValueError:
        return None


def majority(given: Sequence[tuple[str, ...]], labels: LabelSet) -> tuple[tuple[str, ...], bool]:
    """What most annotators say, in the order of the set, and whether it is a tie: then nothing. Where a unit carries one label,
    the one that more give than any other; where it can carry several, those that more than half give, and it is a tie
    where exactly half give one, or none has so many."""
    counts = Counter(label for one in given for label in one)
    if labels.several:
        found = tuple(name for name in labels.names if 2 * counts[name] > len(given))
        tie = not found or any(2 * count == len(given) for count in counts.values())
    else:
        most = max(counts.values(), default=0)
        found = tuple(name for name in labels.names if counts[name] == most)
        tie = len(found) != 1
    return ((), True) if tie else (found, False)


def inline_set(name: str, definitions: dict[str, str], *, several: bool = True) -> LabelSet:
    """A label set of labels and what they mean, as jobs may have it."""
    labels = tuple(Label(name=label, definition=definition) for label, definition in definitions.items())
    return LabelSet(name=name, labels=labels, several=several)


def find_label_set(reference: str) -> LabelSet:
    """The label set of that name, or in the file at that path. Raises LabelSetError."""
    path = resources.find("label_sets", reference)
    if not path.exists() and path.parent == resources.folder("label_sets"):
        known = nearest(reference, resources.shipped("label_sets"))
        own = "a file of your own is named by its path, as in ./my_labels.yaml"
        raise LabelSetError(reference, f"there is no such label set{known}; {own}.")
    return load_label_set(path)


def load_label_set(path: Path) -> LabelSet:
    """The label set in the file at `path`. Raises LabelSetError with every problem found."""
    return parse_label_set(read_text(path, LabelSetError), str(path))


def parse_label_set(text: str, source: str) -> LabelSet:
    """The label set that a YAML text describes; `source` is what messages call it. Raises LabelSetError."""
    value = read_yaml(text, source, LabelSetError)
    if not isinstance(value, dict):
        raise LabelSetError(
            source, "a label set is a mapping with `name` and `labels`, and this file holds none."
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
    """What is wrong with a set whose keys are each well; `path` is where it stands."""
    names = {f"{path}.labels[{place}].name": label.name for place, label in enumerate(labels.labels)}
    if labels.other is not None:
        names[f"{path}.other"] = labels.other
    if len(names) < 2:
        message = f"there {_amount(len(names))}; there has to be a choice of two at least"
        yield Problem(f"{path}.labels", message)
    if len(names) > MOST_LABELS:
        message = f"there are {len(names):,} labels, and at most {MOST_LABELS} can be chosen from"
        yield Problem(f"{path}.labels", message)
    yield from name_problems(names)


def name_problems(names: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the names of a set's labels, each by the place where it stands."""
    seen: dict[str, str] = {}
    for where, name in names.items():
        if wrong := _name_problem(name):
            yield Problem(where, wrong)
        first = seen.setdefault(name.casefold().strip(), where)
        if first != where:
            yield Problem(where, f"{shortened(repr(name))} stands at {first} already")


def _name_problem(name: str) -> str | None:
    """What is wrong with the name of a label; None if nothing."""
    if len(name) > _LONGEST:
        return f"a label's name has at most {_LONGEST} characters, and this has {len(name):,}"
    if name != name.strip() or (odd := _APART.search(name)):
        shown = "a blank at an end" if name != name.strip() else repr(odd[0] if odd else "")
        return f"a label's name cannot have {shown}: labels are told apart by it"
    return None


def _amount(count: int) -> str:
    return "is one label" if count == 1 else "are no labels"
