"""Space files: accepted files, the messages for refused ones, and the coverage of the content hash."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgen.core.errors import SpaceError
from edgen.core.text import is_forbidden
from edgen.space import Dimension, Entry, Space, digest_content, dump_space, load_space, parse_space
from edgen.space.entries import MAX_ENTRIES, MAX_TOTAL, is_blank, normalize_likeness
from tests import ROOT
from tests.dose import dose
from tests.scenarios import DIMENSIONS, ROLES

LISTS = {
    "topics": "- Tides",
    "student_preferences": "- games",
    "student_reactions": "- and gets bored otherwise",
    "teacher_preferences": "- lectures",
    "teacher_reactions": "- and gives up otherwise",
}


def written(head: str = "name: small", **lists: str | None) -> str:
    """Return a small, valid space file with the given changes.

    A list that is None is left out.
    """
    parts = [head]
    for dimension, text in {**LISTS, **lists}.items():
        if text is not None:
            parts.append(f"{dimension}:\n{text}" if text.startswith("-") else f"{dimension}: {text}")
    return "\n".join(parts) + "\n"


def refused(text: str) -> str:
    with pytest.raises(SpaceError) as caught:
        parse_space(text, "mine.yaml")
    return str(caught.value)


def small(**entries: tuple[Entry, ...]) -> Space:
    """Return a small space with other entries in some dimensions."""
    space = parse_space(written(), "mine.yaml")
    for name, new in entries.items():
        space = space.replace_entries(name, new)
    return space


def test_a_space_is_read_with_all_it_holds() -> None:
    space = parse_space(
        written(
            "# a comment\nname: mine\ndescription: |\n  Two\n  lines\nsource: a book",
            topics="- Tides\n- {value: Waves, weight: 3, subject: Physics, level: secondary}",
        ),
        "mine.yaml",
    )
    assert (space.name, space.description, space.source) == ("mine", "Two\nlines\n", "a book")
    assert space["topic"].entries == (
        Entry("Tides"),
        Entry("Waves", 3.0, {"subject": "Physics", "level": "secondary"}),
    )
    assert space["student_preference"].entries == (Entry("games", 1.0, {}),)
    assert space.duplicates == "refuse"
    assert space.product == 2


def test_a_bare_date_is_the_text_that_stands_there() -> None:
    """Numbers lose their spelling (1_984, 007), and YAML's truth values are words; a date loses nothing."""
    for text in ("1989-11-09", "2026-02-31", "2001-12-14 21:59:43.10 -5"):
        space = parse_space(written(topics=f"- {text}"), "mine.yaml")
        assert space["topic"].values[0] == text
        assert parse_space(dump_space(space), "dumped") == space


def test_cells_is_the_product_of_the_sizes() -> None:
    sizes = (7, 2, 3, 5, 11)
    lists = (tuple(Entry(str(i)) for i in range(size)) for size in sizes)
    assert small(**dict(zip(DIMENSIONS, lists, strict=True))).product == 2310


@pytest.mark.parametrize(
    "value", ["{{ 7*7 }}", "{% raw %}", "100 %", "a: b", "- c", "no", "Été 夏 🌞", "می‌خواهم"]
)
def test_values_are_kept_to_the_letter(value: str) -> None:
    space = parse_space(written(topics=f'- "{value}"'), "mine.yaml")
    assert space["topic"].values[0] == value
    assert parse_space(dump_space(space), "dumped") == space


BAD = {
    "unknown key": (
        written("name: x\nstudent_prefrences: [a]"),
        "$.student_prefrences: unknown key (did you mean 'student_preferences'?)",
    ),
    "missing list": (written(topics=None), "$.topics: this key is missing"),
    "missing name": (written("description: x"), "$.name: this key is missing"),
    "blank name": (written("name: ' '"), "$.name: this text is empty or blank"),
    "name of two lines": (written('name: "a\\nb"'), "$.name: 'a\\nb' holds U+000A; remove it"),
    "escape in the description": (written('description: "a\\e[2Jb"\nname: x'), "$.description: 'a\\x1b[2Jb'"),
    "wrong type of name": (written("name: 5"), "$.name: expected a text, got a whole number (it is 5)"),
    "bad duplicates": (
        written("name: x\nduplicates: drop"),
        "$.duplicates: expected refuse (the default) or keep",
    ),
    "empty list": (written(topics="[]"), "$.topics: this list is empty; give it at least one entry"),
    "no list": (written(topics="Tides"), "$.topics: expected a list, each entry on a line of its own"),
    "nothing": (written(topics="~"), "$.topics: expected a list"),
    "a bare no": (
        written(topics="- a\n- no"),
        "$.topics[1]: expected a text, and YAML reads this as true or false",
    ),
    "a bare number": (
        written(topics="- 1984"),
        "$.topics[0]: expected a text, and YAML reads this as a number",
    ),
    "a bare no in a mapping": (
        written(topics="- {value: no}"),
        "$.topics[0].value: expected a text, got true or",
    ),
    "an empty entry": (written(topics="- a\n-"), "$.topics[1]: expected a text, got nothing"),
    "a nested list": (written(topics="- [a]"), "$.topics[0]: expected a text or a mapping, got a list"),
    "entry without value": (written(topics="- {weight: 2}"), "$.topics[0].value: this key is missing"),
    "unknown key of an entry": (
        written(topics="- {value: a, wieght: 2}"),
        "$.topics[0].wieght: unknown key (did you mean 'weight'?)",
    ),
    "duplicate": (
        written(topics="- Tides\n- Waves\n- {value: Tides, weight: 2}"),
        "$.topics[2]: 'Tides' is listed already, at $.topics[0]; remove one",
    ),
    "negative weight": (
        written(topics="- {value: a, weight: -1}"),
        "$.topics[0].weight: a weight is a finite number from 0 upwards, not -1.0",
    ),
    "weight nan": (
        written(topics="- {value: a, weight: .nan}"),
        "$.topics[0].weight: expected a finite number",
    ),
    "weight inf": (
        written(topics="- {value: a, weight: .inf}"),
        "$.topics[0].weight: expected a finite number",
    ),
    "weight a text": (
        written(topics="- {value: a, weight: heavy}"),
        "$.topics[0].weight: expected a number, got a text (it is 'heavy')",
    ),
    "weight a truth value": (
        written(topics="- {value: a, weight: yes}"),
        "$.topics[0].weight: expected a number",
    ),
    "weight beyond floats": (
        written(topics=f"- {{value: a, weight: {10**400}}}"),
        "$.topics[0].weight: number out",
    ),
    "weights that sum to zero": (
        written(topics="- {value: a, weight: 0}\n- {value: b, weight: 0}"),
        "$.topics: every weight is 0; give at least one entry a positive weight",
    ),
    "subject of no topic": (
        written(student_preferences="- {value: a, subject: Physics}"),
        "$.student_preferences[0].subject: only topics have a subject; remove it",
    ),
    "blank level": (
        written(topics="- {value: a, level: ''}"),
        "$.topics[0].level: this text is empty or blank",
    ),
    "blank value": (written(topics="- '  '"), "$.topics[0]: this text is empty or blank"),
    "leading blank": (written(topics="- ' Tides'"), "$.topics[0]: ' Tides' begins or ends with a blank"),
    "terminal escape": (written(topics='- "\\e[31mTides"'), "$.topics[0]: '\\x1b[31mTides' holds U+001B"),
    "line break": (written(topics='- "a\\nb"'), "$.topics[0]: 'a\\nb' holds U+000A"),
    "bidi override": (written(topics='- "a\\u202eb"'), "$.topics[0]: 'a\\u202eb' holds U+202E"),
    "lone surrogate": (
        written(topics='- "a\\ud800b"'),
        "line 3, column 7: this escape is half of a character",
    ),
    "key given twice": (written(topics="- {value: a, value: b}"), "the key 'value' is given twice"),
    "not YAML": ("name: [", "it is not valid YAML: line 2, column 1"),
    "no mapping": ("- Tides", "a space is a mapping with a name and dimensions, or with Education Dialogue"),
    "empty": ("", "and this file holds none."),
    "only a comment": ("# topics\n", "and this file holds none."),
    "a tag that builds objects": ("!!python/object/apply:os.getcwd []", "it is not valid YAML"),
    "control character in the file": ("name: a\x07b", "it holds a character that YAML forbids"),
    "aliases that explode": (
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{n}: &{n} [{','.join([f'*{p}'] * 10)}]\n" for p, n in zip("abcdefg", "bcdefgh", strict=True)
        ),
        "400,000 values, aliases expanded",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_words_that_name_the_place(case: str) -> None:
    text, expected = BAD[case]
    message = refused(text)
    assert message.startswith("space mine.yaml: ")
    assert expected in message
    assert all(line.isprintable() for line in message.splitlines()), "an error must be safe to print"


def test_every_problem_is_reported_at_once() -> None:
    message = refused(
        written(
            "naem: x",
            topics="- {value: ' a', weight: .nan, level: ''}\n- b\n- b\n- no",
            student_reactions=None,
            teacher_reactions="[]",
        )
    )
    assert message.splitlines()[0] == "space mine.yaml: 9 problems:"
    paths = [line.split(": ")[0].strip() for line in message.splitlines()[1:]]
    assert sorted(paths) == [
        "$.naem",
        "$.name",
        "$.student_reactions",
        "$.teacher_reactions",
        "$.topics[0]",
        "$.topics[0].level",
        "$.topics[0].weight",
        "$.topics[2]",
        "$.topics[3]",
    ]


def test_duplicates_are_kept_when_asked_for() -> None:
    space = parse_space(written("name: x\nduplicates: keep", topics="- Tides\n- Tides"), "mine.yaml")
    assert space["topic"].values == ("Tides", "Tides")
    assert space.product == 2


def test_a_list_that_is_too_long_is_refused_before_its_entries_are_looked_at() -> None:
    # A flow list of aliases is the quickest such file to read.
    aliases = ",".join(["*a"] * MAX_ENTRIES)
    assert "$.topics: 20,001 entries are too many" in refused(written(topics=f"[&a {{value: x}},{aliases}]"))


def test_a_space_with_too_many_entries_in_all_is_refused() -> None:
    said = "$: 40,003 entries in all lists are too many; a space holds at most 40,000"
    aliases = ",".join(["*a"] * (MAX_TOTAL // 2 - 1))
    keep = "name: x\nduplicates: keep"
    full = f"[&a x,{aliases}]"
    text = written(keep, topics=full, student_reactions=full.replace("&a x", "*a"))
    assert said in refused(text)


@pytest.mark.only_long
@pytest.mark.integration
def test_the_largest_space_is_read_back() -> None:
    texts = [f"a topic of quite some words, number {i}" for i in range(MAX_ENTRIES)]
    topics = tuple(Entry(text, 2.5, {"subject": "a subject", "level": "a level"}) for text in texts)
    reactions = tuple(Entry(text) for text in texts[4:])
    space = small(topic=topics, student_reaction=reactions)
    assert sum(len(one.entries) for one in space.dimensions) == MAX_TOTAL - 1
    assert parse_space(dump_space(space), "dumped") == space


@pytest.mark.parametrize("value", ["\u200b", " \u200b\u00ad ", "\u2060", "\ufeff", "\u3164", "\u2800"])
def test_a_value_of_which_nothing_can_be_seen_is_blank(value: str) -> None:
    assert "$.topics[0]: this text is empty or blank" in refused(written(topics=f'- "{value}"'))


@pytest.mark.parametrize(
    ("one", "other"),
    [("X", "X\u200b"), ("caf\u00e9", "cafe\u0301"), ("X", "\u00adX"), ("a b", "a\u00a0b"), ("X", "X \u200b")],
)
def test_values_that_look_the_same_are_duplicates(one: str, other: str) -> None:
    topics = f'- "{one}"\n- "{other}"'
    assert "$.topics[1]" in refused(written(topics=topics))
    assert (
        "differs from $.topics[0] only in invisible characters or in the Unicode form of its letters; remove one"
    ) in refused(written(topics=topics))
    kept = parse_space(written("name: x\nduplicates: keep", topics=topics), "mine.yaml")
    assert kept["topic"].values == (one, other)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    latin, large, missing = tmp_path / "latin.yaml", tmp_path / "large.yaml", tmp_path / "none.yaml"
    latin.write_bytes("name: été".encode("latin-1"))
    with large.open("wb") as file:
        file.truncate(8 * 1024 * 1024 + 1)
    for path, expected in {
        latin: "byte 6 is not UTF-8; save the file as UTF-8.",
        large: "it is larger than 8 MiB, the limit.",
        missing: "there is no such file.",
        tmp_path: "this is a folder, not a file.",
    }.items():
        with pytest.raises(SpaceError) as caught:
            load_space(path)
        assert str(caught.value) == f"space {path}: {expected}"
        assert caught.value.exit_code == 2


def test_a_file_is_read_from_disk_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(written(), encoding="utf-8-sig")
    assert load_space(path) == parse_space(written(), "mine.yaml")


# A letter is likely, and so is any character that could break quoting.
_chars = st.one_of(
    st.sampled_from(string.ascii_letters + " \"'\\{}[]:#,&*!|>%@`-~\u200d\u00a0\ufeff\ufffe"),
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")),
).filter(lambda char: not is_forbidden(char))
_texts = st.text(_chars, min_size=1, max_size=20).map(str.strip).filter(lambda text: not is_blank(text))
_weights = st.one_of(st.just(1.0), st.integers(0, 10**20).map(float), st.floats(0, 1e308))
_said = st.fixed_dictionaries({}, optional={"subject": _texts, "level": _texts})
_topics = st.builds(Entry, _texts, _weights, _said)
_others = st.builds(Entry, _texts, _weights)


def _lists(entries: st.SearchStrategy[Entry]) -> st.SearchStrategy[tuple[Entry, ...]]:
    lists = st.lists(entries, min_size=1, max_size=5, unique_by=lambda entry: normalize_likeness(entry.value))
    return lists.filter(lambda found: any(entry.weight > 0 for entry in found)).map(tuple)


_remarks = st.none() | st.lists(_texts, min_size=1, max_size=3).map("\n".join)
spaces = st.builds(
    Space,
    name=_texts,
    description=_remarks,
    source=_remarks,
    duplicates=st.sampled_from(["refuse", "keep"]),
    dimensions=st.tuples(
        *[
            st.builds(Dimension, st.just(name), _lists(_topics if name == "topic" else _others))
            for name in DIMENSIONS
        ]
    ),
    roles=st.just(ROLES),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spaces)
@pytest.mark.integration
def test_parse_of_dump_is_the_space(space: Space) -> None:
    text = dump_space(space)
    assert parse_space(text, "dumped") == space
    assert all(line.isprintable() for line in text.splitlines())
    assert digest_content(parse_space(text, "dumped")) == digest_content(space)


@settings(max_examples=dose(10, 100), deadline=None)
@given(st.text(max_size=200) | st.text("-[]{}:&*!|>%@\"' \n\tab01\x00\x85", max_size=60))
def test_no_text_gets_another_error_than_the_one_promised(text: str) -> None:
    try:
        parse_space(text, "mine.yaml")
    except SpaceError as error:
        assert str(error).startswith("space mine.yaml: ")  # noqa: PT017 - either end is right


def test_the_hash_covers_the_entries_and_nothing_else() -> None:
    plain = written(topics="- Tides\n- Waves")
    same = written(
        "# a comment\nname: another\ndescription: d\nsource: s\nduplicates: keep",
        topics='[{value: "Tides", weight: 1}, Waves] # laid out otherwise',
    )
    different = [
        written(topics="- Waves\n- Tides"),
        written(topics="- Tides\n- Waves\n- Wind"),
        written(topics="- Tides\n- {value: Waves, weight: 2}"),
        written(topics="- Tides\n- {value: Waves, subject: Physics}"),
        written(topics="- Tides\n- {value: Waves, level: Physics}"),
        written(topics="- Tides\n- Waves", student_preferences="- games\n- puzzles"),
        written(topics="- Tides", student_preferences="- Waves\n- games"),
    ]
    hashes = [digest_content(parse_space(text, "mine.yaml")) for text in (plain, same, *different)]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 1 + len(different)
    # Pinned: earlier runs must still match their space.
    assert digest_content(small()) == "647ba785a69aa1367d5f7d602a2e8a9c5535a7e8facc6774973aae2c122b31ff"


def test_minus_zero_weighs_what_zero_weighs() -> None:
    negative, positive = ((Entry("a"), Entry("b", zero)) for zero in (-0.0, 0.0))
    assert digest_content(small(topic=negative)) == digest_content(small(topic=positive))


def test_a_job_in_place_of_a_space_is_named_as_one() -> None:
    with pytest.raises(SpaceError) as caught:
        load_space(ROOT / "jobs" / "quickstart.yaml")
    assert "this file is a job, and its space is education_dialogue" in str(caught.value)
    assert not caught.value.problems
