"""Sessions of exercises in the layout of CIMA's released data, and read back from it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgen
from edgen.api.validating import validate
from edgen.core import resources
from edgen.core.errors import DataError, UsageError
from edgen.domains.tutoring import cima_files as cima
from edgen.domains.tutoring.read_cima import READER
from edgen.evaluation.data_sets import open_data_sets
from tests.dose import dose
from tests.export.folders import RUN, write


def run_of(folder: Path, space: str, **changes: Any) -> edgen.Run:
    job = {
        "name": "t",
        "seed": 7,
        "conversations": 8,
        "space": space,
        "protocol": "tutoring",
        "backends": {"default": {"type": "simulator"}},
        **changes,
    }
    return edgen.generate(job, output=folder / Path(space).stem, progress=False)


class Context(NamedTuple):
    """A student's turn with the turns before it and its actions, and the responses with their actions."""

    said: tuple[str, ...]
    actions: tuple[str, ...]
    responses: tuple[tuple[str, tuple[str, ...]], ...]


def contexts_of(run: edgen.Run) -> list[Context]:
    """Return what an export should contain: each student's turn with at most ten turns of its exercise before
    it."""
    found = []
    for conversation in run.conversations():
        said: list[str] = []
        before: tuple[str, ...] = ()
        for turn in conversation.turns:
            if "exercise" in turn.data:
                said = []
            elif turn.role == "Tutor" and len(said) <= 10:
                responses = tuple((one.text, one.labels) for one in (turn, *turn.alternatives))
                found.append(Context(tuple(said), before, responses))
            said.append(turn.text)
            before = turn.labels
    return found


def entries_of(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of an export, of both splits."""
    files = [json.loads(path.read_bytes()) for path in sorted(folder.glob("t*.json"))]
    return [entry for file in files for half in file.values() for entry in half.values()]


SPACES = ("italian_prepositions", "italian_shapes")


@pytest.fixture(scope="module", params=SPACES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> edgen.Run:
    return run_of(tmp_path_factory.mktemp("cima"), request.param, conversations=4)


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (1, {"responses": 1, "student_turns": 6}),
        (2, {"responses": 5, "student_turns": 9, "turns_per_exercise": 3}),
        (3, {"student_turns": 14, "turns_per_exercise": 14}),
    ],
)
@pytest.mark.parametrize("space", SPACES)
def test_what_is_written_is_read_back_with_equal_values(
    tmp_path: Path, space: str, seed: int, settings: dict[str, Any]
) -> None:
    folder = tmp_path / str(seed)
    run = run_of(folder, space, seed=seed, tutoring=settings, conversations=1)
    exported = run.export("cima", folder / "out")
    entries = entries_of(folder / "out")
    read = [cima.read(entry) for entry in entries]
    prep = space == "italian_prepositions"
    found = []
    for one in read:
        *context, response = one.speech.turns
        assert [turn.role for turn in context] == ["Tutor", "Student"] * (len(context) // 2)
        responses = tuple((said.text, said.labels) for said in (response, *response.alternatives))
        found.append(Context(tuple(turn.text for turn in context), context[-1].labels, responses))
    # Exercises about shapes have no student actions.
    made = [one if prep else one._replace(actions=()) for one in contexts_of(run)]
    assert Counter(found) == Counter(made)
    assert len(read) == sum(count for table in exported.rows.values() for count in table.values())
    shards = [json.loads(path.read_bytes()) for path in (run.folder / "shards").glob("conversations*.json")]
    exercises = [one for records in shards for record in records for one in record["outcome"]["exercises"]]
    whole = {
        f"is {one} the": one
        for one in ("behind", "in front of", "inside of", "next to", "on top of", "under")
    }
    concepts = {frozenset(one["concepts"].items()) for one in exercises}
    told = [one.scenario.values.items() for one in read]
    assert {frozenset((name, whole.get(value, value)) for name, value in one) for one in told} <= concepts
    report = validate([folder / "out" / "train.json"])
    assert report.sound
    assert report.records == report.valid > 0


def test_what_could_not_be_read_back_is_left_out() -> None:
    """Shapes hold their context in one text, in which a turn begins with the speaker's name."""
    assert cima.SPEAKER.search("I am a Student: hello")
    assert cima.SPEAKER.search("Tutor: hello")
    assert not cima.SPEAKER.search("Tutors: hello, mystudent: x")


def test_a_file_that_is_cut_anywhere_is_refused_in_a_sentence(run: edgen.Run, tmp_path: Path) -> None:
    run.export("cima", tmp_path / "out")
    whole = (tmp_path / "out" / "train.json").read_bytes()
    cut = tmp_path / "cut.json"
    lines = [place + 1 for place, byte in enumerate(whole[:-2]) if byte == 10]
    for end in sorted({*lines[::40], *range(1, len(whole) - 1, len(whole) // 10)}):
        cut.write_bytes(whole[:end])
        for read in (lambda: validate([cut]), lambda: [*open_data_sets([cut])[0].samples()]):
            with pytest.raises(DataError, match=r"in the middle of a value|not UTF-8"):
                read()


def test_the_layouts_are_those_of_the_release(run: edgen.Run, tmp_path: Path, shared_data: Path) -> None:
    run.export("cima", tmp_path / "out")
    written = json.loads((tmp_path / "out" / "train.json").read_bytes())
    assert [*written] == ["prepDataset", "shapeDataset"]
    prep = bool(written["prepDataset"])
    file = "cima_prep_head.json" if prep else "cima_shape_81abde4.json"
    released = json.loads((shared_data / file).read_bytes())
    known = released["prepDataset"] if prep else released.get("shapeDataset", released)
    ours, theirs = written["prepDataset" if prep else "shapeDataset"]["0"], known["0"]
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        assert type(ours[key]) is type(value), key
        if isinstance(value, list) and value and key != "tutorKeys":
            assert type(ours[key][0]) is type(value[0]), key
    if prep:
        entries = [*written["prepDataset"].values()]
        pictures = {path.name for path in (tmp_path / "out" / "pictures").iterdir()}
        assert all((tmp_path / "out" / one["img"]).read_text("utf-8").startswith("<svg ") for one in entries)
        assert {one["img"] for one in entries} <= {f"pictures/{name}" for name in pictures}
    assert type(ours["tutorActions"][0][0]) is type(theirs["tutorActions"][0][0])


def test_a_space_that_draws_nothing_has_names_of_pictures_and_no_files(tmp_path: Path) -> None:
    text = resources.find("preference_space", "italian_prepositions").read_text("utf-8")
    start, end = text.index("      draw:"), text.index('      points:\n        - "“is')
    (tmp_path / "own.yaml").write_text(text[:start] + text[end:], "utf-8")
    few: dict[str, Any] = {"conversations": 4, "tutoring": {"student_turns": 2}}
    run_of(tmp_path, str(tmp_path / "own.yaml"), **few).export("cima", tmp_path / "out")
    assert not (tmp_path / "out" / "pictures").exists()
    report = validate([tmp_path / "out" / "train.json"])
    assert report.sound
    assert report.records > 0


def test_what_it_cannot_express_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cima holds exercises of preposition, object and colour"):
        run_of(tmp_path, "fractions", conversations=1).export("cima", tmp_path / "out")
    tutor = dict.fromkeys(("Hint", "Correction", "Confirmation"), "does it")
    own = {"actions": {"student": {"Affirm": "nods", "Question": "asks", "Guess": "guesses"}, "tutor": tutor}}
    run = run_of(tmp_path, "italian_shapes", tutoring=own, conversations=3)
    left_out = run.export("cima", tmp_path / "own").left_out
    assert left_out["actions"] > 0
    with pytest.raises(UsageError, match="conversations of the family tutoring"):
        write("cima", RUN, tmp_path / "none")


def test_the_release_is_read_in_clusters(shared_data: Path) -> None:
    """Contexts of one conversation depend on each other: the 1,135 contexts come from about 400
    conversations."""
    (data,) = open_data_sets([shared_data / "cima_prep_head.json"])
    found = list(data.samples())
    assert len(found) == 1135
    assert 350 < len({sample.scenario.index for sample in found}) < 450
    assert data.family is not None
    assert data.family.name == "cima"


@pytest.mark.parametrize(
    ("actions", "found"),
    [
        (True, []),
        (5, []),
        ({"a": 1}, []),
        ([[[], {}]], ["$.tutorActions[0][0]", "$.tutorActions[0][1]"]),
        ([["True", "yes"]], ["$.tutorActions[0][1]"]),
    ],
)
def test_actions_of_any_form_are_findings_and_no_crash(actions: Any, found: list[str]) -> None:
    record = {
        "pastConvo": " Tutor: Hello. Student: What?",
        "tutorResponses": ["It is y."],
        "tutorActions": actions,
    }
    assert [path for path, _ in READER.more_findings(record)] == found


@given(data=st.data())
@settings(max_examples=dose(15, 150))
def test_a_changed_entry_is_read_or_refused_with_a_reason(data: st.DataObject) -> None:
    prep = {
        "past_convo": ["Hello.", "What is blue?"], "img": "a.png", "prep": "", "engPrep": "under", "obj": "", "engObj": "box",
        "color": "blu", "engColor": "blue", "grammarRules": "[]", "studentActions": ["True", "False", "False", "False"],
        "tutorResponses": ["It is blu.", "Blu."], "tutorActions": [[True, False, False, False, False]] * 2,
    }  # fmt: skip
    shape = {
        "pastConvo": " Tutor: Hello. Student: What?", "shape": "x", "engShape": "circle", "color": "y", "engColor": "red",
        "tutorResponses": ["It is y."], "tutorActions": [["True", "False", "False", "False", "False"]],
    }  # fmt: skip
    value = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
        max_leaves=3,
    )
    record: dict[str, Any] = dict(data.draw(st.sampled_from([prep, shape])))
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from([*record]))
        record[key] = data.draw(value)
    list(READER.more_findings(record))
    READER.schema_of(record)
    try:
        found = READER.read_file(record)
    except ValueError as problem:
        said = str(problem)
    else:
        said = found.speech.turns[-1].text
    assert said.strip()
