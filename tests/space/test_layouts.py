"""Layouts of spaces: a domain's dimensions and roles work like those of Education Dialogue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgen.core import registry, space_layouts
from edgen.core.errors import SpaceError
from edgen.core.space_layouts import LaidOutDimension, SpaceLayout
from edgen.core.values import Scenario
from edgen.planning.sizes import list_strata
from edgen.prompting import scenario_variables
from edgen.space import SpaceRole, digest_content, dump_space, parse_space
from edgen.space.model import find_turn_templates, list_layout_roles, list_usual_variables, template_variables
from edgen.space.splits import explain_split_problem, hash_group

pytestmark = pytest.mark.unit

CLINIC = SpaceLayout(
    name="clinic",
    title="the three lists of clinics",
    dimensions=(
        LaidOutDimension(
            name="complaint", list="complaints", help="Complaints.", fields={"urgency": "How urgent it is."}
        ),
        LaidOutDimension(name="patient_mood", list="patient_moods", help="Moods of the patient."),
        LaidOutDimension(name="doctor_habit", list="doctor_habits", help="Habits of the doctor."),
    ),
    roles={"Doctor": ("complaint", "doctor_habit"), "Patient": ("complaint", "patient_mood")},
    strata=(("patient_mood", "doctor_habit"),),
    groups={"characters": ("patient_mood", "doctor_habit")},
    templates={"doctor": "clinic_doctor"},
)
LISTS = """name: clinic
complaints:
  - Headache
  - {value: Burn, urgency: high}
patient_moods: [calm, scared]
doctor_habits: [hurries, listens]
"""


@pytest.fixture(autouse=True)
def clinic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def forget() -> None:
        space_layouts.list_layouts.cache_clear()
        space_layouts.map_bare_fields.cache_clear()

    with registry.register_temporarily("space_layout", "clinic", CLINIC):
        names = registry.list_names
        monkeypatch.setattr(registry, "list_names", lambda kind: list(dict.fromkeys(names(kind))))
        forget()
        yield
    forget()


def test_a_file_of_lists_is_read_and_written_as_it_is() -> None:
    space = parse_space(LISTS, "clinic.yaml")
    assert space.names == ("complaint", "patient_mood", "doctor_habit")
    assert (
        space.roles
        == list_layout_roles(space.names)
        == tuple(SpaceRole(name, sees) for name, sees in CLINIC.roles.items())
    )
    assert parse_space(dump_space(space), "copy") == space
    assert "complaints:" in dump_space(space)
    opened = parse_space(dump_space(space, lists=False), "copy")
    assert opened == space
    assert digest_content(opened) == digest_content(space)


def test_a_wrong_file_is_refused_in_the_words_of_its_layout() -> None:
    with pytest.raises(SpaceError, match="only complaints have a urgency"):
        parse_space(LISTS.replace("[calm, scared]", "[{value: calm, urgency: low}]"), "clinic.yaml")
    with pytest.raises(SpaceError, match=r"doctor_habits: this key is missing"):
        parse_space(LISTS.replace("doctor_habits: [hurries, listens]\n", ""), "clinic.yaml")
    with pytest.raises(SpaceError, match=r"five lists .* or with the three lists of clinics"):
        parse_space("- nothing", "clinic.yaml")


def test_its_fields_have_bare_names() -> None:
    space = parse_space(LISTS, "clinic.yaml")
    assert template_variables(space, ("complaint",)) == ("index", "complaint", "urgency")
    assert {"complaint", "urgency", "topic", "level"} <= {*list_usual_variables()}
    values = {"complaint": "Burn", "patient_mood": "calm", "doctor_habit": "listens"}
    scenario = Scenario(0, values, {"complaint": {"urgency": "high", "where": "hand"}})
    assert scenario_variables(scenario)["urgency"] == "high"
    assert scenario.as_row() == {"index": 0, **values, "urgency": "high", "complaint.where": "hand"}


def test_its_groups_strata_and_templates_count() -> None:
    space = parse_space(LISTS, "clinic.yaml")
    scenario = Scenario(0, {"complaint": "Burn", "patient_mood": "calm", "doctor_habit": "listens"})
    other = Scenario(1, {**scenario.values, "complaint": "Headache"})
    assert explain_split_problem("characters", space) is None
    assert hash_group("characters", 1, scenario) == hash_group("characters", 2, other)
    assert "no dimension persona" in (explain_split_problem("persona", space) or "")
    assert [names for names, _ in list_strata(space)] == [space.names, ("patient_mood", "doctor_habit")]
    assert find_turn_templates(space.names) == {"doctor": "clinic_doctor"}


def test_edgens_own_layout_stays_the_usual_one() -> None:
    assert [role.name for role in list_layout_roles()] == ["Teacher", "Student"]
