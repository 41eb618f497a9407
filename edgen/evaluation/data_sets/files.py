"""Records of anybody's files as samples: of Education Dialogue's form, or of any roles and dimensions.

The first record tells which. The name of a file tells which side of a split it is.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.core.errors import DataError
from edgen.core.values import ROLES, Scenario
from edgen.evaluation.data_set import SCENARIOS_A_PATH, DataSet
from edgen.evaluation.sample import Sample
from edgen.families.base import read_values
from edgen.reading import clean_turn, is_plain
from edgen.space import load_space
from edgen.space.education import ROLES as EDUCATION_ROLES
from edgen.space.education import education_scenario
from edgen.validation import decode, find_inputs, read_records, read_speech

EXPECTED = (
    "expected objects with `background_info` (topic, student_prefrences, teacher_prefrences, student_reactions, "
    "teacher_reactions) and `conversation`, a list of {role: Teacher or Student, text}"
)
_FLAT = ("topic", "student_preference", "student_reaction", "teacher_preference", "teacher_reaction")
_BACKGROUND = ("topic", "student_prefrences", "student_reactions", "teacher_prefrences", "teacher_reactions")
_SIDE = re.compile(r"(?:^|[^a-z])(?:(train)|(?:test|eval|evaluation|valid|validation|dev))(?:$|[^a-z])")

Split = Literal["train", "test"]


def files_at(path: Path, number: int) -> DataSet:
    """The records of files: of one, or of all in a folder."""
    inputs = find_inputs(path)
    family = _family_of(inputs.files)
    unread: Counter[str] = Counter()
    folder = path.resolve()
    space = None if inputs.space is None else load_space(inputs.space)
    return DataSet(
        name=_label(folder.parent.name if folder.name == "shards" else folder.name),
        sources=tuple(map(_label, inputs.files)),
        samples=_FileReading(path, inputs.files, family, unread, number * SCENARIOS_A_PATH).samples,
        family=family,
        roles=space.roles if space else EDUCATION_ROLES if family == "education" else (),
        space=space,
        unread=unread,
    )


class _FileReading:
    """Files read as one data set; `unread` is counted anew each time."""

    def __init__(
        self, path: Path, files: Sequence[Path], family: str, unread: Counter[str], offset: int
    ) -> None:
        self._path = path
        self._files = files
        self._family = family
        self._unread = unread
        self._offset = offset

    def samples(self) -> Iterator[Sample]:
        """Raises DataError if nothing in any of the files can be read."""
        self._unread.clear()
        clusters: dict[tuple[str, int], int] = {}
        count = 0
        for file in self._files:
            split = split_of(file.name)
            for number, raw in enumerate(read_records(file)):
                sample = _read_sample(
                    raw, self._family, f"{_label(file.name)}[{number}]", _label(file), split
                )
                if isinstance(sample, str):
                    self._unread[sample] += 1
                    continue
                yield self._with_index(sample, clusters, count)
                count += 1
        if not count:
            raise DataError(
                str(self._path),
                f"it holds no record of Education Dialogue's form{self._why()}: {EXPECTED}. What `edgen export` "
                "wrote for a trainer or another tool is not read; `--to ed` and `--to hf` with JSON Lines are.",
            )

    def _with_index(self, sample: Sample, clusters: dict[tuple[str, int], int], count: int) -> Sample:
        """With its own number as the scenario's index, or that of the first record of the same scenario: a
        run's records (`_read_sample` leaves -1 for others) tell which scenario they are of."""
        index = count
        if sample.scenario.index >= 0:
            run = re.sub(r"-\d+-r\d+$", "", sample.id)
            index = clusters.setdefault((run, sample.scenario.index), count)
        scenario = msgspec.structs.replace(sample.scenario, index=self._offset + index)
        return msgspec.structs.replace(sample, scenario=scenario)

    def _why(self) -> str:
        if not self._unread:
            return ""
        return f" ({', '.join(f'{count} × {reason}' for reason, count in self._unread.most_common(3))})"


def _label(path: Path | str) -> str:
    """The path as text that can be printed, whatever bytes its name holds."""
    return str(path).encode(errors="replace").decode()


def split_of(name: str) -> Split | None:
    """The side of the split that a file's name tells: train, or test for eval, validation and the like."""
    found = _SIDE.search(name.lower())
    if found is None:
        return None
    return "train" if found[1] else "test"


def _family_of(files: Sequence[Path]) -> str:
    """What kind the first record is that can be decoded."""
    for file in files:
        for raw in read_records(file):
            with contextlib.suppress(ValueError):
                record = decode(raw)
                said = isinstance(record, dict) and "background_info" not in record
                return "dialogue" if said and isinstance(record.get("scenario"), dict) else "education"
    return "education"


def _read_sample(raw: msgspec.Raw, family: str, name: str, source: str, split: Split | None) -> Sample | str:
    """A record of a file as a sample, or why it is none. A scenario's index of -1: the record tells none."""
    try:
        record = decode(raw)
    except ValueError:
        return "it cannot be decoded"
    if family == "education":
        record = _unflatten(record)
    if why := _why_no_record(record, family):
        return why
    provenance = record.get("provenance")
    provenance = provenance if isinstance(provenance, dict) else {}
    index = provenance.get("scenario")
    index = index if type(index) is int and index >= 0 else -1
    scenario = _education_scenario(record, index) if family == "education" else _any_scenario(record, index)
    turns = [(turn["role"], turn["text"]) for turn in record["conversation"]]
    found = read_speech(turns, clean_turn, is_plain)
    ended_by, identifier, repairs = record.get("ended_by"), record.get("id"), provenance.get("repairs")
    known = ended_by in {role for role, _ in turns} and (found.marker != "absent" or family != "education")
    return Sample(
        id=identifier if isinstance(identifier, str) else name,
        source=source,
        split=split,
        scenario=scenario,
        turns=found.turns,
        entries=len(record["conversation"]),
        defects=found.defects,
        marker=found.marker,
        ended_by=ended_by if known else found.ended_by,
        probability=_probability(record.get("probability")),
        simulated=provenance.get("simulated") is True,
        repairs=tuple(name for name in repairs if isinstance(name, str)) if isinstance(repairs, list) else (),
    )


def _education_scenario(record: dict[str, Any], index: int) -> Scenario:
    """The five texts, what is said of the topic, and what a space has besides."""
    background, more = record["background_info"], record.get("scenario")
    texts = {name: background[key] for name, key in zip(_FLAT, _BACKGROUND, strict=True)}
    more = more if isinstance(more, dict) else {}
    found = education_scenario(index, texts, _text(more.get("subject")), _text(more.get("level")))
    if "topic" not in more:  # which stands there only beside further dimensions or fields
        return found
    values, fields = _values(more)
    return Scenario(index, {**found.values, **values}, fields)


def _any_scenario(record: dict[str, Any], index: int) -> Scenario:
    values, fields = _values(record["scenario"])
    return Scenario(index, values, fields)


def _values(written: dict[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    return read_values(
        {name: said for name, said in written.items() if not isinstance(said, dict) or "value" in said}
    )


def _unflatten(record: Any) -> Any:
    """A flat row of `edgen export --to hf` as a record; anything else as it is."""
    if not isinstance(record, dict) or "background_info" in record or not record.keys() >= {*_FLAT}:
        return record
    provenance = {key: record.get(key) for key in ("scenario", "simulated")}
    background = {name: record[key] for name, key in zip(_BACKGROUND, _FLAT, strict=True)}
    more = {key: record.get(key) for key in ("subject", "level")}
    return {**record, "background_info": background, "provenance": provenance, "scenario": more}


def _why_no_record(record: Any, family: str) -> str | None:
    """Why a decoded value is no record of the family; None if it is one."""
    if not isinstance(record, dict):
        return "no object"
    if family == "education":
        background = record.get("background_info")
        if not isinstance(background, dict):
            return "no background_info"
        if not all(isinstance(background.get(key), str) for key in _BACKGROUND):
            return "background_info without its five texts"
    elif not isinstance(record.get("scenario"), dict):
        return "no scenario"
    turns = record.get("conversation")
    if not isinstance(turns, list) or not turns:
        return "no list of turns"
    if not all(isinstance(turn, dict) and isinstance(turn.get("text"), str) for turn in turns):
        return "a turn without a text"
    if not all(isinstance(turn.get("role"), str) and turn["role"] for turn in turns):
        return "a turn without a role"
    if family == "education" and not all(turn["role"] in ROLES for turn in turns):
        return "a role that is neither Teacher nor Student"
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _probability(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)
