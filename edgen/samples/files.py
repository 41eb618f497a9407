"""Records of files, anybody's, as samples. Which side of a split a file is tells its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.errors import DataError
from edgen.model import ROLES, Scenario
from edgen.quality.model import Sample
from edgen.samples.material import NUMBERED, Material
from edgen.space import load_space
from edgen.transcript import clean_turn, is_plain
from edgen.validation import decode, find_inputs, read_records, said

EXPECTED = (
    "expected objects with `background_info` (topic, student_prefrences, teacher_prefrences, student_reactions, "
    "teacher_reactions) and `conversation`, a list of {role: Teacher or Student, text}"
)
_FLAT = ("topic", "student_preference", "student_reaction", "teacher_preference", "teacher_reaction")
_BACKGROUND = ("topic", "student_prefrences", "student_reactions", "teacher_prefrences", "teacher_reactions")
_SIDE = re.compile(r"(?:^|[^a-z])(?:(train)|(?:test|eval|evaluation|valid|validation|dev))(?:$|[^a-z])")

Split = Literal["train", "test"]


def files_at(path: Path, number: int) -> Material:
    """The records of files: of one, or of all in a folder."""
    inputs = find_inputs(path)
    unread: Counter[str] = Counter()
    folder = path.resolve()
    return Material(
        name=_label(folder.parent.name if folder.name == "shards" else folder.name),
        sources=tuple(map(_label, inputs.files)),
        samples=_FileReading(path, inputs.files, unread, number * NUMBERED).samples,
        space=None if inputs.space is None else load_space(inputs.space),
        unread=unread,
    )


class _FileReading:
    """Files read as one data set; `unread` is counted anew each time."""

    def __init__(self, path: Path, files: Sequence[Path], unread: Counter[str], offset: int) -> None:
        self._path = path
        self._files = files
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
                sample = _of_anybody(raw, f"{_label(file.name)}[{number}]", _label(file), split)
                if isinstance(sample, str):
                    self._unread[sample] += 1
                    continue
                yield self._placed(sample, clusters, count)
                count += 1
        if not count:
            raise DataError(
                str(self._path),
                f"it holds no record of Education Dialogue's form{self._why()}: {EXPECTED}. What `edgen export` "
                "wrote for a trainer or another tool is not read; `--to ed` and `--to hf` with JSON Lines are.",
            )

    def _placed(self, sample: Sample, clusters: dict[tuple[str, int], int], count: int) -> Sample:
        """With its own number as the scenario's index, or that of the first record of the same scenario: a
        run's records (`_of_anybody` leaves -1 for others) tell which scenario they are of."""
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


def _of_anybody(raw: msgspec.Raw, name: str, source: str, split: Split | None) -> Sample | str:
    """A record of a file as a sample, or why it is none. A scenario's index of -1: the record tells none."""
    try:
        record = decode(raw)
    except ValueError:
        return "it cannot be decoded"
    record = _unfolded(record)
    if why := _no_record(record):
        return why
    background, provenance = record["background_info"], record.get("provenance")
    provenance = provenance if isinstance(provenance, dict) else {}
    texts = {name: background[key] for name, key in zip(_FLAT, _BACKGROUND, strict=True)}
    index = provenance.get("scenario")
    found = said([(turn["role"], turn["text"]) for turn in record["conversation"]], clean_turn, is_plain)
    ended_by, identifier = record.get("ended_by"), record.get("id")
    repairs = provenance.get("repairs")
    more = record.get("scenario")
    more = more if isinstance(more, dict) else {}
    return Sample(
        id=identifier if isinstance(identifier, str) else name,
        source=source,
        split=split,
        scenario=Scenario(
            index if type(index) is int and index >= 0 else -1,
            **texts,
            subject=_text(more.get("subject")),
            level=_text(more.get("level")),
        ),
        turns=found.turns,
        entries=len(record["conversation"]),
        defects=found.defects,
        marker=found.marker,
        ended_by=ended_by if ended_by in ROLES and found.marker != "absent" else found.ended_by,
        probability=_probability(record.get("probability")),
        simulated=provenance.get("simulated") is True,
        repairs=tuple(name for name in repairs if isinstance(name, str)) if isinstance(repairs, list) else (),
    )


def _unfolded(record: Any) -> Any:
    """A flat row of `edgen export --to hf` as a record; anything else as it is."""
    if not isinstance(record, dict) or "background_info" in record or not record.keys() >= {*_FLAT}:
        return record
    provenance = {key: record.get(key) for key in ("scenario", "simulated")}
    background = {name: record[key] for name, key in zip(_BACKGROUND, _FLAT, strict=True)}
    more = {key: record.get(key) for key in ("subject", "level")}
    return {**record, "background_info": background, "provenance": provenance, "scenario": more}


def _no_record(record: Any) -> str | None:
    """Why a decoded value is no record of Education Dialogue's form; None if it is one."""
    if not isinstance(record, dict):
        return "no object"
    background, turns = record.get("background_info"), record.get("conversation")
    if not isinstance(background, dict):
        return "no background_info"
    if not all(isinstance(background.get(key), str) for key in _BACKGROUND):
        return "background_info without its five texts"
    if not isinstance(turns, list) or not turns:
        return "no list of turns"
    if not all(isinstance(turn, dict) and isinstance(turn.get("text"), str) for turn in turns):
        return "a turn without a text"
    if not all(isinstance(turn.get("role"), str) and turn["role"] in ROLES for turn in turns):
        return "a role that is neither Teacher nor Student"
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _probability(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)
