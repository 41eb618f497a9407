"""MSDialog's and DSTC7's files, as published and as edgen writes them, read as data sets. The project wrote
all texts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from edgen.api.validating import validate
from edgen.core.errors import DataError
from edgen.core.registry import part_of
from edgen.domains.retrieval.readers import dstc7 as read_dstc7
from edgen.domains.retrieval.readers import dstc7_dialogs as read_dstc7_dialogs
from edgen.domains.retrieval.readers import intent_prediction as read_intents
from edgen.domains.retrieval.readers import msdialog as read_msdialog
from edgen.domains.retrieval.readers import responserank as read_responserank
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.measuring import measure
from edgen.evaluation.sample import DataSet, Sample
from edgen.export.write import export
from edgen.validation.layout import LayoutChecks
from tests.domains.retrieval.test_msdialog import made, run_of
from tests.dose import dose
from tests.export.runs import FORMATS


def utterance(place: int, actor: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "affiliation": "Common User", "utterance_time": "2017-01-01T10:00:00", "utterance_pos": place, "id": place,
        "user_id": f"User{place % 2}", "actor_type": actor, "utterance": text, "is_answer": int(place == 2), "vote": 0,
        **more,
    }  # fmt: skip


def dialog(*said: tuple[str, str], tags: bool = False) -> dict[str, Any]:
    more = {"tags": "OQ GG"} if tags else {}
    return {
        "category": "Lamps", "dialog_time": "2017-01-01T10:00:00", "title": "It flickers", "frequency": "3",
        "utterances": [utterance(n, actor, text, **more) for n, (actor, text) in enumerate(said, 1)],
    }  # fmt: skip


TALK = (("User", "My lamp flickers."), ("Agent", "Is the bulb loose?"), ("User", "It was. Thanks!"))


def example(
    number: int, *said: tuple[str, str], right: str | None = "Turn it off first.", **more: Any
) -> dict[str, Any]:
    found = {
        "data-split": "train", "example-id": number,
        "messages-so-far": [{"speaker": speaker, "utterance": text} for speaker, text in said],
        "options-for-next": [{"candidate-id": "AB12", "utterance": "No."}, {"candidate-id": "CD34", "utterance": right or "?"}],
        "scenario": 1, **more,
    }  # fmt: skip
    if right is not None:
        found["options-for-correct-answers"] = [{"candidate-id": "CD34", "utterance": right}]
    return found


UBUNTU = (("participant_1", "The disk is full."), ("participant_2", "Which one?"), ("participant_1", "Both."))
ADVISING = (("student", "Which course is easy?"), ("advisor", "What do you like?"), ("student", "Graphs."))
PROFILE = {
    "Aggregated": {"ClassSize": "small"}, "Term": "Fall 2016", "Standing": "Junior",
    "Courses": {"Prior": [{"offering": "XY101-1"}], "Suggested": [{"offering": "XY102-1", "instructor": "N. N."}]},
}  # fmt: skip


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


def one(*paths: Path) -> DataSet:
    (found,) = open_data_sets(paths)
    return found


def samples(*paths: Path) -> list[Sample]:
    return list(one(*paths).samples())


class TestMsDialog:
    @pytest.mark.parametrize("tags", [False, True])
    def test_dialogs_by_their_ids(self, tmp_path: Path, tags: bool) -> None:
        path = written(
            tmp_path / "MSDialog.json", {"51": dialog(*TALK, tags=tags), "7": dialog(*TALK[:2], tags=tags)}
        )
        first, second = samples(path)
        assert one(path).family is read_msdialog.READER
        assert [(turn.role, turn.text) for turn in first.turns] == [*TALK]
        assert (first.id, second.id) == ("51", "7")
        assert first.scenario.values == {"category": "Lamps"}
        labels = ("Original Question", "Greetings/Gratitude") if tags else ()
        assert {turn.labels for turn in first.turns} == {labels}
        assert first.turns[1].data["is_answer"] == 1
        assert first.outcome is not None
        assert first.outcome["title"] == "It flickers"
        report = validate([path])
        assert (report.records, report.valid, report.sound) == (2, 2, True)
        assert measure(one(path)).values["lengths"].turns.mean == 2.5

    def test_what_is_wrong_is_found_where_it_stands(self, tmp_path: Path) -> None:
        bad = dialog(*TALK, tags=True)
        bad["utterances"][1] |= {"utterance_pos": 7, "actor_type": "Bot", "tags": "OQ ZZ"}
        del bad["utterances"][2]["vote"]
        path = written(tmp_path / "d.json", {"1": dialog(*TALK), "2": bad})
        (report,) = validate([path]).files
        told = {(found.record, found.path) for found in report.problems}
        place = "$.utterances[1]"
        assert {(1, f"{place}.utterance_pos"), (1, f"{place}.actor_type"), (1, f"{place}.tags")} <= told
        assert (1, "$.utterances[2].vote") in told
        assert one(path).unread == {}
        data = one(path)
        assert len(list(data.samples())) == 1
        assert data.unread == {"an actor_type that is neither User nor Agent": 1}

    def test_an_id_that_occurs_twice(self, tmp_path: Path) -> None:
        path = tmp_path / "twice.json"
        text = json.dumps(dialog(*TALK))
        path.write_text(f'{{"1": {text}, "2": {text},\n"1": {text}}}')
        (report,) = validate([path]).files
        assert [(found.record, found.kind) for found in report.problems] == [(2, "duplicate_id")]
        (note,) = measure(one(path), ["overview"]).notes
        assert note.startswith("1 record has the id of an earlier record")
        assert f"record 2 of {path}" in note


class TestDstc7:
    def test_examples_of_ubuntu(self, tmp_path: Path) -> None:
        listed = [example(1, *UBUNTU), example(2, *UBUNTU[:2]), example(3, ("participant_1", "Hello."))]
        path = written(tmp_path / "ubuntu_train_subtask_1.json", listed)
        found = samples(path)
        assert [(turn.role, turn.text) for turn in found[0].turns] == [
            *UBUNTU,
            ("participant_2", "Turn it off first."),
        ]
        assert [sample.id for sample in found] == ["1", "2", "3"]
        assert {sample.split for sample in found} == {"train"}
        # all samples of one conversation form one cluster
        assert [sample.scenario.index for sample in found] == [0, 0, 2]
        assert validate([path]).sound

    def test_examples_of_advising(self, tmp_path: Path) -> None:
        several = example(4, *ADVISING, profile=PROFILE, scenario=3)
        several["options-for-correct-answers"].append(
            {"candidate-id": 17, "utterance": "First switch it off."}
        )
        several["options-for-next"].append({"candidate-id": 17, "utterance": "First switch it off."})
        path = written(tmp_path / "advising.json", [several])
        (found,) = samples(path)
        assert found.turns[-1].role == "advisor"
        assert [other.text for other in found.turns[-1].alternatives] == ["First switch it off."]
        assert found.scenario.values == {"term": "Fall 2016", "standing": "Junior"}
        assert validate([path]).sound

    def test_no_right_answer(self, tmp_path: Path) -> None:
        none = example(1, *UBUNTU, scenario=4)
        none["options-for-correct-answers"] = [{"candidate-id": "NONE", "utterance": "NONE"}]
        empty = example(3, *UBUNTU)
        empty["options-for-correct-answers"] = []
        path = written(tmp_path / "t.json", [none, example(2, *UBUNTU, right=None), empty])
        assert [len(sample.turns) for sample in samples(path)] == [3, 3, 3]
        (report,) = validate([path]).files
        assert [found.record for found in report.problems] == [2]

    def test_a_pool_that_is_shared(self, tmp_path: Path) -> None:
        """Examples of sub-task 2 have no candidates of their own."""
        shared = example(1, *UBUNTU, scenario=2)
        del shared["options-for-next"]
        path = written(tmp_path / "t.json", [shared])
        assert len(samples(path)[0].turns) == 4
        assert validate([path]).sound

    def test_candidates_that_do_not_fit(self, tmp_path: Path) -> None:
        odd = example(1, *UBUNTU)
        odd["options-for-next"] = [{"candidate-id": "AB12", "utterance": "No."}] * 2
        (report,) = validate([written(tmp_path / "t.json", [odd])]).files
        said = [found.problem for found in report.problems]
        assert said == ["'CD34' is not among the candidates", "'AB12' occurs 2 times"]


class TestLines:
    RANKED = "\n".join(
        f"{label}\tMy lamp flickers.\tIs it new?\tNo, old.\t <<<AGENT>>>: {reply}"
        for label, reply in (("1", "Try another bulb."), ("0", "Paint it."), ("0", "Sell it."))
    )

    def test_contexts_with_their_replies(self, tmp_path: Path) -> None:
        other = "1\tAnother lamp.\tHelp me.\t <<<AGENT>>>: Sure."
        path = written(tmp_path / "train.tsv", f"{self.RANKED}\n{other}\n")
        first, second = samples(path)
        assert [(turn.role, turn.text) for turn in first.turns] == [
            ("User", "My lamp flickers."), ("Unknown", "Is it new?"), ("User", "No, old."), ("Agent", "Try another bulb."),
        ]  # fmt: skip
        assert len(second.turns) == 3
        assert validate([path]).sound
        assert one(path).family is read_responserank.READER

    def test_dialogs_with_their_intents(self, tmp_path: Path) -> None:
        text = "OQ\tMy lamp flickers.\tUser\nIR_PA\tIs it new?\tAgent\n\nOQ\tHello?\tUser\n"
        path = written(tmp_path / "train.tsv", text)
        first, second = samples(path)
        assert [turn.labels for turn in first.turns] == [
            ("Original Question",), ("Information Request", "Potential Answer"),
        ]  # fmt: skip
        assert [(turn.role, turn.text) for turn in second.turns] == [("User", "Hello?")]
        assert validate([path]).sound
        assert one(path).family is read_intents.READER

    @pytest.mark.parametrize("text", [f"{RANKED}\n2\ta\tb\n", "OQ\tHello.\tUser\nno tabs at all\n"])
    def test_a_line_that_fits_nothing_is_named(self, tmp_path: Path, text: str) -> None:
        path = written(tmp_path / "t.tsv", text)
        number = len(text.splitlines())
        for read in (lambda: samples(path), lambda: validate([path])):
            with pytest.raises(DataError, match=f"t.tsv: line {number} is no"):
                read()


def test_a_file_that_mixes_two_layouts(tmp_path: Path) -> None:
    path = written(tmp_path / "mixed.json", [example(1, *UBUNTU), dialog(*TALK), example(2, *UBUNTU)])
    said = r"record 1 has the layout of MSDialog \(Complete, Intent\), and earlier ones that of DSTC7 track 1 \(Ubuntu"
    with pytest.raises(DataError, match=said):
        samples(path)
    (report,) = validate([path]).files
    assert [(found.record, found.kind) for found in report.problems] == [(1, "mixed")]


def test_a_folder_as_published_is_read_by_the_layout_of_most_files(tmp_path: Path) -> None:
    for side in ("train", "dev", "test"):
        written(tmp_path / f"x_{side}_subtask_3.json", [example(1, *UBUNTU)])
    talk = {
        "dialog-id": 1,
        "messages": [{"speaker": "participant_1", "utterance": "Hi.", "paraphrases": ["Hello."]}],
    }
    written(tmp_path / "x_dialogs_subtask_3.json", [talk])
    written(tmp_path / "course-info.json", {"XY101": {"Credits": "4"}})
    data = one(tmp_path)
    assert len(list(data.samples())) == 3
    assert data.notes == (
        "Not read: course-info.json and x_dialogs_subtask_3.json: they have another layout than DSTC7 track 1 (Ubuntu, Advising).",
    )
    notes: list[str] = []
    assert validate([tmp_path], note=notes.append).records == 4
    assert notes == [f"not checked, since no reader knows the layout: {tmp_path / 'course-info.json'}"]
    (alone,) = samples(tmp_path / "x_dialogs_subtask_3.json")
    assert alone.turns[0].alternatives[0].text == "Hello."


@pytest.mark.parametrize(
    "name", ["msdialog-complete", "msdialog-intent", "intent-prediction", "msdialog-responserank"]
)
def test_what_edgen_exports_is_read_back(tmp_path: Path, name: str) -> None:
    tags = ("Original Question", "Potential Answer", "Junk")
    taught = [
        replace(one, candidate=replace(one.candidate, turns=tuple(
            replace(turn, labels=(tags[place % 3],)) for place, turn in enumerate(one.candidate.turns)
        )))
        for one in made(5)
    ]  # fmt: skip
    exported = export(run_of(taught), FORMATS[name], tmp_path / "out")
    data = one(tmp_path / "out")
    found = list(data.samples())
    assert found
    assert data.unread == {}
    assert validate([tmp_path / "out"]).sound
    said = {" ".join(turn.text.split()) for record in taught for turn in record.candidate.turns}
    assert {turn.text for sample in found for turn in sample.turns} <= said
    if name.startswith("msdialog-") and name != "msdialog-responserank":
        assert len(found) == sum(count for table in exported.rows.values() for count in table.values())


RECORDS = {
    read_msdialog.READER: dialog(*TALK, tags=True),
    read_dstc7.READER: example(1, *ADVISING, profile=PROFILE),
    read_dstc7_dialogs.READER: {"dialog-id": 1, "messages": [{"speaker": "a", "utterance": "Hi.", "paraphrases": ["Hello."]}]},
    read_responserank.READER: {"context": ["a", "b"], "replies": [{"label": "1", "reply": "c"}]},
    read_intents.READER: {"turns": [{"labels": "OQ", "utterance": "Hi.", "actor": "User"}]},
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*path, key))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@pytest.mark.parametrize("reader", RECORDS, ids=lambda reader: reader.name)
@given(data=st.data())
@settings(max_examples=dose(15, 150))
def test_a_changed_record_is_read_or_refused_with_a_reason(reader: Any, data: st.DataObject) -> None:
    record = copy.deepcopy(RECORDS[reader])
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from([place for place in places(record) if place]))
        holder = record
        for key in path:
            holder = holder[key]
        if data.draw(st.booleans()):
            holder[last] = data.draw(anything)
        else:
            del holder[last]
        if not record:
            break
    for value in (record, data.draw(anything)):
        recognized = reader.recognizes(value)
        checks = part_of(reader, LayoutChecks)
        list(checks.more_findings(value))
        identifier = checks.identifier(value)
        assert identifier is None or isinstance(identifier, str)
        try:
            found = reader.read_file(value)
        except ValueError as problem:
            said = str(problem)
        else:
            said = " ".join(turn.text for turn in found.speech.turns)
            assert recognized or value is record
        assert said.strip()
