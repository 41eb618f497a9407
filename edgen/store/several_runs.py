"""Several runs of the same scenarios, read as the arms of one run, for pairs between runs.

Scenarios are the same if their values and fields are equal; their numbers may differ. If a run has several
equal scenarios, the first matches the first of another run. Pairs between runs and their verdicts are stored
in the folder of the first run, in `pairs/against/<the others>/`. The other runs are only read.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.core.errors import UsageError
from edgen.core.pair import Candidate, PairOrigin, read_candidate_name
from edgen.core.values import Scenario
from edgen.space import digest_content
from edgen.store.layers import LayerFacts
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

_LONGEST_NAME = 120  # bytes of a file name
_encode = msgspec.json.Encoder(order="deterministic").encode


def label_runs(paths: Sequence[Path]) -> list[str]:
    """Return the folders' names, with as many parents as needed to distinguish them."""
    parts = [path.resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["_".join(p.strip("/") for p in each[-depth:]) for each in parts]
        if len(set(labels)) == len(labels):
            break
    return labels


def name_together(labels: Sequence[str]) -> str:
    """Return a file name for several runs or arms."""
    name = "-vs-".join(labels)
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    first = labels[0].encode()[:80].decode(errors="ignore")
    return f"{first}-vs-{len(labels) - 1}-others-{digest}"


def refuse_duplicates(paths: Sequence[Path]) -> None:
    """Raise UsageError if a run or a data set is named twice."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            what = "run" if RunFolder(path).exists else "data set"
            raise UsageError(f"{path}: this {what} is named twice; compared with itself, nothing differs.")
        seen.add(path.resolve())


class AgainstFolder(RunFolder):
    """The folder of the first of several runs, with a place of its own for pairs between the runs."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths[0])
        self.place_pairs(self.against / name_together(_make_arm_names(label_runs(paths))))


def _make_arm_names(labels: Sequence[str]) -> list[str]:
    """Convert the labels to valid names of arms, which become parts of tasks' names."""
    plain = [re.sub(r"[^\w-]+", "_", label) for label in labels]
    if len(set(plain)) == len(plain):
        return plain
    return [f"{label}_{number}" for number, label in enumerate(plain)]


def find_pairs_place(paths: Sequence[Path]) -> RunFolder:
    """Return the folder of a run. For several runs, return the first run's folder with the place of the pairs
    between them."""
    return RunFolder(paths[0]) if len(paths) == 1 else AgainstFolder(paths)


def open_together(paths: Sequence[Path]) -> RunReader:
    """Return the reader of one run, or of several as the arms of one. Raises as they do."""
    return RunReader(paths[0]) if len(paths) == 1 else SeveralRuns(paths)


class SeveralRuns(RunReader):
    """A reader of two or more runs. Use as a context manager while holding their locks.

    Scenarios have the numbers of the first run. Raises UsageError if the runs share no scenario or have other
    roles, and the errors of reading a run.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        refuse_duplicates(paths)
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(RunReader(path)) for path in paths]
            first, *others = readers
            self._readers: Mapping[str, RunReader] = dict(
                zip(_make_arm_names(label_runs(paths)), readers, strict=True)
            )
            self.rundir: RunFolder = AgainstFolder(paths)
            self.job, self.name = first.job, first.name
            self.space, self.family, self.scenario = first.space, first.family, first.scenario
            self.views, self.labels_of = {}, ()
            self._arms = [
                f"{label}.{arm}" if arm else label
                for label, reader in self._readers.items()
                for arm in reader.arms or ("",)
            ]
            self._own_names = len({reader.name for reader in readers}) == len(readers)
            for other in others:
                _require_same_roles(first, other)
            self._numbers = {label: _match(first, reader) for label, reader in [*self._readers.items()][1:]}
            self._shared_numbers: dict[str, dict[int, int]] = {}
            self._require_shared()
            self._stack = stack.pop_all()

    def _require_shared(self) -> None:
        first, *others = self._readers.values()
        for label, other in zip(self._numbers, others, strict=True):
            if not any(self._list_names(label, index) for index, _ in first.scenarios()):
                raise UsageError(
                    f"{other.rundir.path}: no accepted conversation is of the same scenario as one in "
                    f"{first.rundir.path}, so there is nothing to compare. Name runs of the same scenarios: "
                    "of one space, with the same seed and design."
                )

    @property
    def layers(self) -> tuple[LayerFacts, ...]:
        """No layers: labels are of one run."""
        return ()

    @property
    def origin(self) -> PairOrigin:
        """The reason why conversations of one scenario differ: runs are arms."""
        return "arms"

    @property
    def simulated(self) -> bool:
        """True if a simulator took part in any run."""
        return any(reader.simulated for reader in self._readers.values())

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints of all runs."""
        return [one for reader in self._readers.values() for one in reader.fingerprints]

    @property
    def pending(self) -> int:
        """The number of planned conversations that are not settled, over all runs."""
        return sum(reader.pending for reader in self._readers.values())

    @property
    def accepted(self) -> int:
        """The number of accepted conversations, over all runs."""
        return sum(reader.accepted for reader in self._readers.values())

    def describe(self) -> dict[str, Any]:
        """Return the facts about the runs for a card: the first run's, the others' jobs, and the counts of
        all."""
        told = {label: reader.describe() for label, reader in self._readers.items()}
        first, *others = told.values()
        counts = ("planned", "accepted", "rejected", "failed", "pending")
        added = {
            count: {
                f"{label}.{name}" if len(one[count]) > 1 else label: number
                for label, one in told.items()
                for name, number in one[count].items()
            }
            for count in counts
        }
        jobs = {label: one["job"] for label, one in zip([*told][1:], others, strict=True)}
        return {**first, **added, "against": jobs, "simulated": self.simulated}

    def scenarios(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every scenario that the first run shares with another, in order, with the names of its
        conversations, by run, arm and replicate."""
        (label, first), *_ = self._readers.items()
        for index, own in first.scenarios():
            others = [name for other in self._numbers for name in self._list_names(other, index)]
            if others:
                yield index, [*(f"{label}.{name}" for name in own), *others]

    def _list_names(self, label: str, index: int) -> list[str]:
        """Return the names of a run's conversations of a scenario."""
        place = self._numbers[label].get(index)
        return [] if place is None else [f"{label}.{name}" for name in self._readers[label].names(place)]

    def candidate(self, index: int, name: str) -> Candidate:
        """Return one accepted conversation of a scenario. Raises RunError if there is none of that name."""
        label, _, own = name.partition(".")
        place = self._numbers[label].get(index) if label in self._numbers else index
        if label not in self._readers or place is None:
            raise self._make_changed_error(f"conversation {name} of scenario {index}")
        found = self._readers[label].candidate(place, own)
        arm = f"{label}.{found.arm}" if found.arm else label
        identifier = found.id if self._own_names else f"{label}/{found.id}"
        return msgspec.structs.replace(found, id=identifier, scenario=index, arm=arm)

    def _locate(self, identifier: str) -> tuple[int, str] | None:
        """Return scenario and name of an accepted conversation, by its id, in any of the runs."""
        for label, reader in self._readers.items():
            own = identifier if self._own_names else identifier.removeprefix(f"{label}/")
            if (self._own_names or own != identifier) and (place := reader._locate(own)) is not None:
                index = self._find_shared_number(label, place[0])
                return None if index is None else (index, f"{label}.{place[1]}")
        return None

    def _find_shared_number(self, label: str, index: int) -> int | None:
        """Return the first run's number of a scenario of a run; None if the first run lacks it."""
        if label not in self._numbers:
            return index
        if label not in self._shared_numbers:
            self._shared_numbers[label] = {there: here for here, there in self._numbers[label].items()}
        return self._shared_numbers[label].get(index)

    def split(self, scenario: Scenario) -> Literal["train", "test"]:
        """Return the side of a scenario in the first run."""
        return next(iter(self._readers.values())).split(scenario)

    def group(self, scenario: Scenario) -> int:
        """Return the number of a scenario's group in the first run."""
        return next(iter(self._readers.values())).group(scenario)


def _require_same_roles(first: RunReader, other: RunReader) -> None:
    mine, theirs = ([role.name for role in reader.space.roles] for reader in (first, other))
    if mine != theirs:
        raise UsageError(
            f"{other.rundir.path}: its roles are {', '.join(theirs)}, and those of {first.rundir.path} are "
            f"{', '.join(mine)}; name runs of the same roles."
        )


def _match(first: RunReader, other: RunReader) -> Mapping[int, int]:
    """Return the other run's number of each scenario of the first run."""
    if _list_draw_settings(first) == _list_draw_settings(other):
        return {index: index for index, _ in other.scenarios()}
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, _ in other.scenarios():
        places[_identify_scenario(other.scenario(index))].append(index)
    found: dict[int, int] = {}
    for index, _ in first.scenarios():
        if there := places.get(_identify_scenario(first.scenario(index))):
            found[index] = there.pop(0)
    return found


def _list_draw_settings(reader: RunReader) -> tuple[object, ...]:
    """Return the settings that determine a run's scenarios."""
    job = reader.job
    return job.seed, job.design, job.strength, digest_content(reader.space)


def _identify_scenario(scenario: Scenario) -> bytes:
    """Return 16 bytes that identify a scenario by its content."""
    said = _encode((scenario.values, scenario.fields))
    return hashlib.blake2b(said, digest_size=16).digest()


def pair_between_arms(names: Sequence[str], most: int | None) -> list[tuple[str, str]]:
    """Return pairs of conversations of different arms, by name: the first of each arm with the first of every
    other arm, then the second ones, and so on, at most `most`."""
    arms: dict[str, list[str]] = {}
    for name in names:
        arms.setdefault(read_candidate_name(name)[0], []).append(name)
    found = [
        (place, a, b)
        for one, other in itertools.combinations(arms.values(), 2)
        for place, (a, b) in enumerate(zip(one, other, strict=False))
    ]
    found.sort(key=lambda pair: pair[0])
    return [(a, b) for _, a, b in found][:most]
