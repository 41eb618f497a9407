"""Folders of machines: CRWIZ's own files, written files read back, and every kind of invalid file."""

from __future__ import annotations

import logging
import os
import re
import sys
import types
from pathlib import Path

import pytest
import yaml

from edgen.core import resources
from edgen.domains.guided.machines.dump import dump_for_crwiz, dump_machine, write_files
from edgen.domains.guided.machines.folder import MachineError
from edgen.domains.guided.machines.load import load_machine
from edgen.domains.guided.machines.model import Condition, End, Lock
from tests import ROOT
from tests.domains.guided.machines.folders import random_machine, write

START = "name: start\ntransition_states: [a]\n"
LOADER = os.environ.get("CRWIZ_LOADER", "")
SHIPPED = ("incident_response", "lesson_plan")


def test_crwizs_own_files_load_unchanged(shared_data: Path) -> None:
    machine = load_machine(shared_data / "crwiz_states")
    assert list(machine.states) == ["inform_end", "intro_hello", "start", "trigger_popup", "trigger_subtask"]
    assert machine.states["intro_hello"].list_weights(("inform_end", "trigger_popup"))[
        "trigger_popup"
    ] == pytest.approx(2 / 3)
    assert machine.fixed["holdon2seconds"] == "Hold on, 2 seconds"
    assert len(machine.replies) == 7
    # CRWIZ's code fixes these values: two sub-tasks, a milestone and an end by the states' names, six
    # minutes.
    assert machine.subtasks == ("introduction", "finish")
    assert machine.states["trigger_subtask"].advances == "finish"
    assert machine.states["inform_end"].end == End(reason="dialogue_completed", success=True)
    assert machine.time_limit == 360


@pytest.mark.parametrize("seed", range(40))
def test_what_is_written_is_read_again(seed: int, tmp_path: Path) -> None:
    machine = random_machine(seed)
    write_files(dump_machine(machine), tmp_path / "m")
    again = load_machine(tmp_path / "m")
    assert again == machine


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_machines_are_read_as_crwiz_reads_its_files(name: str, tmp_path: Path) -> None:
    """The files fit the documentation of `DialogueState.from_yaml_file`: `name` is required, each transition
    has a probability, `fixed_states*` map names to texts, and every other .yaml file is a state."""
    machine = load_machine(resources.find("machines", name))
    write_files(dump_for_crwiz(machine), tmp_path / "m")
    states = {}
    for file in (tmp_path / "m").iterdir():
        value = yaml.safe_load(file.read_text())
        if file.name.startswith("fixed_states"):
            assert value == machine.fixed
            continue
        assert set(value) <= {
            "name", "formulations", "transition_states", "transition_probabilities", "subtask", "slots",
        }  # fmt: skip
        states[value["name"]] = value
        assert list(value.get("transition_probabilities", {})) == value.get("transition_states", [])
    assert states.keys() == machine.states.keys()
    assert states["start"]["transition_probabilities"] == machine.states["start"].probabilities


if LOADER:  # CRWIZ's app/crwiz/dialogue_state.py, which edgen may not ship

    def test_crwizs_own_loader_reads_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The loader runs unmodified, in a package that contains only the logger it imports."""
        package = types.ModuleType("crwiz_stub")
        package.__path__ = []
        package.logger_crwiz = logging.getLogger("crwiz")  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "crwiz_stub", package)
        module = types.ModuleType("crwiz_stub.dialogue_state")
        module.__package__ = "crwiz_stub"
        exec(compile(Path(LOADER).read_text(), LOADER, "exec"), module.__dict__)
        monkeypatch.chdir(tmp_path)
        for name in SHIPPED:
            machine = load_machine(resources.find("machines", name))
            write_files(dump_for_crwiz(machine), tmp_path / name)
            loaded = module.load_dialogue_states(str(tmp_path / name))
            assert loaded.keys() == {*machine.states, *machine.fixed}
            for state in machine.states.values():
                theirs = loaded[state.name]
                assert (theirs.formulations, theirs.subtask) == (list(state.formulations), state.subtask)
                assert theirs.transitions == list(state.transitions)
                for one in state.transitions:
                    assert theirs.get_transition_probability(one) == pytest.approx(state.find_weight(one))


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guided.md").read_text().partition("## Machines")[2]
    state, head = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[:2]
    machine = load_machine(write(tmp_path / "m", {"request_foam.yaml": state, "machine.yaml": head}))
    foam = machine.states["request_foam"]
    assert foam.lock == Lock(lacks=("no", "wait"), otherwise=("inform_foam_harm",))
    assert foam.effects[1].after_seconds == 7
    assert foam.effects[1].repeat
    assert machine.world["place"].initial == "the east hall"
    assert machine.ends[0].when == {"fire": Condition(at_least=5.0)}


def test_keys_in_their_short_forms(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", {
        "machine.yaml": "name: m\nworld:\n  fire: 2\n  alarm: false\n  who: {initial: Ann}\n  door: {values: [open, shut]}\n",
        "start.yaml": START,
        "a.yaml": "name: a\nformulations: [A]\nlock: {says: yes please, otherwise: [start]}\nwhen: {fire: 2, who: [Ann, Ben]}\nend: done\n",
        "b.yaml": "name: b\nformulations:\nslots:\ntransition_probabilities: []\nlock: any\n",
    })  # fmt: skip
    machine = load_machine(folder)
    assert {name: one.kind for name, one in machine.world.items()} == {
        "fire": "number", "alarm": "boolean", "who": "text", "door": "choice",
    }  # fmt: skip
    assert machine.needed == ("door",)
    assert machine.world["fire"].sees == ("Wizard",)
    a = machine.states["a"]
    assert a.lock == Lock(says=("yes please",), otherwise=("start",))
    assert a.when == {"fire": Condition(one_of=(2.0,)), "who": Condition(one_of=("Ann", "Ben"))}
    assert a.end == End(reason="done")
    assert machine.states["b"].lock == Lock()


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"a.yaml": "name: [a"}, "a.yaml: it is not valid YAML: line 2"),
        ({"a.yaml": "- a\n"}, "a.yaml: expected a state: a mapping"),
        ({"a.yaml": "formulations: [A]\n"}, "a.yaml $.name: this key is missing"),
        ({"a.yaml": "name: a\ntransitions: [b]\n"}, "a.yaml $.transitions: unknown key"),
        ({"a.yaml": "name: a\nformulations: [yes]\n"}, "a.yaml $.formulations[0]: expected a text, got true or false"),
        ({"a.yaml": "name: a\nformulations: ['  ']\n"}, "a.yaml $.formulations[0]: this text is empty"),
        ({"a.yaml": "name: ../a\n"}, "'../a' is not a name of a state"),
        ({"a.yaml": "name: fixed_states_x\n"}, "is not a name of a state"),
        ({"b.yaml": "name: a\n", "c.yaml": "name: a\n"}, "c.yaml $.name: b.yaml has a state 'a' already"),
        ({"a.yaml": "name: okay\n", "fixed_states.yaml": "okay: Okay\n"}, "okay: this is the name of a state and of a fixed"),
        ({"fixed_states.yaml": "- a\n"}, "fixed_states.yaml: expected a mapping of names to replies"),
        ({"fixed_states.yaml": "1: One\n"}, "a name is a text; put it in quotes"),
        ({"fixed_states.yaml": "no: No\n"}, "$.no: expected a text; put it in quotes"),
        ({"fixed_states.yaml": "a: 3\n"}, "fixed_states.yaml $.a: expected a text"),
        ({"fixed_states.yaml": "a: A\n", "fixed_states_2.yaml": "a: B\n"}, "another file has a fixed reply"),
        ({"a.yaml": "name: a\ntransition_probabilities: {b: -1}\n"}, "$.transition_probabilities.b: expected a number >= 0"),
        ({"a.yaml": "name: a\ntransition_probabilities: {b: .nan}\n"}, "expected a finite number"),
        ({"a.yaml": "name: a\nlock: maybe\n"}, "a.yaml $.lock: expected `any`, or a mapping"),
        ({"a.yaml": "name: a\nlock: {word: x}\n"}, "$.lock.word: unknown key"),
        ({"a.yaml": "name: a\nwhen: {}\n"}, "$.when: expected a mapping of variables to conditions"),
        ({"a.yaml": "name: a\nwhen: {x: {}}\n"}, "$.when.x: there is no condition here"),
        ({"a.yaml": "name: a\nwhen: {x: []}\n"}, "$.when.x: this list is empty"),
        ({"a.yaml": "name: a\neffects: [{after_seconds: 3}]\n"}, "$.effects[0]: this changes nothing"),
        ({"a.yaml": "name: a\neffects: {set: {x: 1}, after_seconds: 3, after_turns: 1}\n"}, "are both given"),
        ({"a.yaml": "name: a\neffects: {set: {x: 1}, repeat: true}\n"}, "a repeated effect needs a span"),
        ({"a.yaml": "name: a\neffects: {add: {x: 1}, repeat: true, after_seconds: 0.001}\n"}, "a repeated effect needs a span"),
        ({"a.yaml": "name: a\nend: {success: true}\n"}, "$.end.reason: this key is missing"),
        ({"a.yaml": "name: a\nact: shout\n"}, "$.act: unknown value 'shout'"),
        ({"machine.yaml": "name: m\nends: [{reason: x}]\n"}, "machine.yaml $.ends[0]: it needs `when`"),
        ({"machine.yaml": "name: m\nworld: {x: {kind: number, initial: hot}}\n"}, "$.world.x.initial: 'hot' is not a number"),
        ({"machine.yaml": "name: m\nworld: {x: {initial: 9, most: 5}}\n"}, "$.world.x.initial: 9 is out of its bounds"),
        ({"machine.yaml": "name: m\nworld: {x: {values: [a], initial: b}}\n"}, "'b' is not one of a"),
        ({"machine.yaml": "name: m\nworld: {x: {}}\n"}, "$.world.x: give it a kind"),
        ({"machine.yaml": "name: m\nworld: {x y: 1}\n"}, "a variable's name is letters, digits and _"),
        ({"machine.yaml": "name: m\ntime_limit: 0\n"}, "$.time_limit: expected a number > 0"),
        ({"machine.yaml": "states: 3\n"}, "machine.yaml $.states: unknown key"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_file_and_path(
    files: dict[str, str], problem: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "m", {"start.yaml": START, **files})
    with pytest.raises(MachineError) as caught:
        load_machine(folder)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"machine {folder}: ")


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    bad = {f"s{i}.yaml": f"name: s{i}\nlock: 3\nact: 4\n" for i in range(3)}
    with pytest.raises(MachineError) as caught:
        load_machine(write(tmp_path / "m", bad))
    assert [problem.path for problem in caught.value.problems] == [f"s{i}.yaml $.act" for i in range(3)]


@pytest.mark.parametrize(
    ("files", "problem"),
    [({}, "it holds no .yaml file"), ({"a.yml": "name: a\n"}, "a.yml would not be read")],
)
def test_folders_without_states(files: dict[str, str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=problem):
        load_machine(write(tmp_path / "m", files))


def test_what_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="there is no such folder"):
        load_machine(tmp_path / "nowhere")
    (tmp_path / "file").write_text("name: a\n")
    with pytest.raises(MachineError, match="this is a file, and a machine is a folder"):
        load_machine(tmp_path / "file")


def test_far_too_many_states_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """Reading stops after 10,000 names and before any file is opened, so a folder of 100,000 states fails as
    early. Every file is invalid, so an error would name a file that was opened."""
    folder = tmp_path / "m"
    folder.mkdir()
    first = folder / "s0.yaml"
    first.write_text("name: [broken\n")
    for number in range(1, 5_100):
        (folder / f"s{number}.yaml").hardlink_to(first)
    with pytest.raises(
        MachineError, match=r"it holds more than 5,000 states, the most that a machine may have\."
    ):
        load_machine(folder)


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(MachineError, match="more than 400,000 values"):
        load_machine(write(tmp_path / "m", {"start.yaml": "\n".join(lines)}))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "mine.txt").write_text("keep")
    with pytest.raises(MachineError, match="this folder is not empty"):
        write_files(dump_machine(random_machine(1)), tmp_path / "m")
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["mine.txt"]
