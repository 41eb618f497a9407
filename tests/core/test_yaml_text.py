"""YAML to values: the same values as PyYAML's safe loader, with work bounded by the text's size."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.config import load_job
from edgen.core.errors import JobError
from edgen.core.yaml_text import MAX_SIZE, PARSERS, Parser, YamlError, read_values
from edgen.core.yaml_values import build, read_yaml
from tests.dose import dose


@pytest.fixture(params=PARSERS, ids=lambda parser: parser.__name__)
def parser(request: pytest.FixtureRequest) -> Parser:
    return request.param  # type: ignore[no-any-return]


def refused(text: str, parser: Parser | None = None) -> str:
    with pytest.raises(YamlError) as caught:
        read_values(text, parser)
    return str(caught.value)


def bomb(levels: int) -> str:
    """Return levels that each merge the one before nine times: nine to the power of `levels` in all."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}], k{i}: 1}}" for i in range(1, levels)]
    return "\n".join(lines)


def test_merge_keys_that_multiply_take_little_memory(parser: Parser) -> None:
    """Memory stays small; PyYAML's own loader needs gigabytes, as it lists merged keys once per merge."""
    text = bomb(8)
    assert len(text) < 500
    tracemalloc.start()
    try:
        assert read_values(text, parser)["a7"] == {"x": 1} | {f"k{i}": 1 for i in range(1, 8)}
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [1]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    assert "line 7" in (said := refused("\n".join(lines)))
    assert "more than 400,000 values, aliases expanded" in said


def test_aliases_of_one_long_text_are_refused(parser: Parser) -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 50)}]\n"
    assert "line 2" in (said := refused(text, parser))
    assert "aliases repeat more than 4 MiB" in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &a {x: 1, y: 1}\nb: {<<: *a, y: 2}", {"a": {"x": 1, "y": 1}, "b": {"x": 1, "y": 2}}),
        ("a: {y: 2, <<: {y: 1, z: 3}}", {"a": {"y": 2, "z": 3}}),
        ("a: {<<: [{y: 1}, {y: 2, z: 2}]}", {"a": {"y": 1, "z": 2}}),
        ("a: {<<: [{x: {<<: {y: 1}}}]}", {"a": {"x": {"y": 1}}}),
        ("a: {'<<': 1}", {"a": {"<<": 1}}),
    ],
)
def test_merge_keys_mean_what_they_mean_to_pyyaml(text: str, expected: Any, parser: Parser) -> None:
    assert read_values(text, parser) == expected == yaml.safe_load(text)


def test_an_alias_is_a_copy(parser: Parser) -> None:
    value = read_values("a: &a {x: [1]}\nb: *a\n", parser)
    value["b"]["x"].append(2)
    assert value["a"] == {"x": [1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 0x" + "f" * 6000, "line 1, column 4: a number of 6,002 characters is too long"),
        ("a:\n  - 1" + ":59" * 5000, "line 2, column 5: a number of 15,001 characters is too long"),
        ("a: !!bool abc", "line 1, column 4: 'abc' is not true or false"),
        ("a: !!int abc", "line 1, column 4: 'abc' is not a whole number"),
        ("a: !!int ''", "'' is not a whole number"),
        ("a: !!float nonsense", "'nonsense' is not a number"),
        ("a: 0x_", "'0x_' is not a whole number"),
        (
            "a: !!timestamp nonsense",
            "line 1, column 4: the tag 'tag:yaml.org,2002:timestamp' is unsupported",
        ),
        ("a: !!binary x", "the tag 'tag:yaml.org,2002:binary' is unsupported"),
        ("a: !!set {x}", "is unsupported"),
        ("a: !!seq {x: 1}", "is unsupported"),
        ("!!python/object/apply:os.getcwd []", "is unsupported"),
        ("a: *b", "line 1, column 4: there is nothing with the anchor '&b' above"),
        ("a: &a [*a]", "line 1, column 8: the alias '*a' is recursive"),
        ("a: &a {<<: *a}", "the alias '*a' is recursive"),
        ("a: {<<: 1}", "the merge key << takes a mapping or a list of mappings"),
        ("{a: 1}: 2", "line 1, column 1: a key is a text"),
        ("a: {{x}}", "column 5: a key is a text; a text that begins with a brace"),
        ("yes: 1\nyes: 2", "line 2, column 1: the key 'yes' is given twice"),
        ("a: 1\n---\nb: 2", "line 2, column 1: a second document begins"),
        ("[" * 100_000, "column 42: it is nested too deeply"),
        ("- " * 100_000, "column 83: it is nested too deeply"),
        ("a: b\x07", "line 1: it holds a character that YAML forbids (U+0007)"),
        ("a: \ud800", "line 1: it holds a character that YAML forbids (U+D800)"),
        ('a: "\\ud800"', "half of a character"),
        ("x" * (MAX_SIZE + 1), "it is larger than 4 MiB"),
        (
            "".join(f"%TAG !a{i}! x\n# c\n" for i in range(20_000)) + "--- a\n",
            "it declares more than 10 tags (%TAG)",
        ),
        ("a: [\n", "line 2, column 1"),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_wrong_is_one_sentence_with_its_line(text: str, said: str, parser: Parser) -> None:
    problem = refused(text, parser)
    assert said in problem
    assert "\n" not in problem
    assert len(problem) < 300


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))), inner)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(PLAIN, st.booleans())
def test_what_pyyaml_writes_is_read_as_it_was(value: Any, flow: bool) -> None:
    text = yaml.safe_dump(value, allow_unicode=flow, default_flow_style=flow)
    for parser in PARSERS:
        assert read_values(text, parser) == value


PIECES = (
    "a", "b: ", "- ", "\n", "\n  ", "{", "}", "[", "]", ", ", ": ", "'", '"', "x y", "*a", "<<: ", "!!str ", "1", "0x1f",
    "1:30", "~", "null", "yes", "#c", "|\n  t\n", ">-\n  t\n", "---\n", "...\n", "? ", "http://x:8/y", "{{x}}", ":", "é",
    "%", "@", "1e3", ".inf", "k1: v\n", "k2: [1, 2]\n", "'k3': \"v\\u00e9\"\n", "&a {q: 1}\n",
)  # fmt: skip


@settings(deadline=None, max_examples=dose(30, 300))
@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_what_is_read_at_all_is_read_as_pyyaml_reads_it(text: str) -> None:
    """A text that both loaders accept has the same values, without libyaml too.

    Where one of them refuses a text, the other may take it; their messages differ as well. A key that YAML
    1.1 calls a truth value is a text here.
    """
    try:
        expected = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, LookupError, TypeError):
        return
    for parser in PARSERS:
        try:
            value = read_values(text, parser)
        except YamlError:
            continue
        assert repr(value) == repr(keys_as_texts(expected))


def keys_as_texts(value: Any) -> Any:
    """Return the value with the key `yes`, the only truth value of the pieces, where PyYAML has True."""
    if isinstance(value, dict):
        return {"yes" if key is True else key: keys_as_texts(one) for key, one in value.items()}
    return [keys_as_texts(one) for one in value] if isinstance(value, list) else value


def test_a_key_is_its_text_where_yaml_calls_it_a_truth_value(parser: Parser) -> None:
    assert read_values("on: ray\nno: off\ntrue: yes", parser) == {"on": "ray", "no": False, "true": True}


def test_no_parser_of_the_machine_is_left_out() -> None:
    assert PARSERS[-1] is yaml.SafeLoader
    assert len(PARSERS) == 1 + yaml.__with_libyaml__


def test_a_large_space_reads_in_steps_that_grow_as_it_does(parser: Parser) -> None:
    """The steps are counted in events, not in seconds: one value each."""
    text = "topics:\n" + "".join(f"  - {{value: topic {i}, weight: 2}}\n" for i in range(2_000))
    asked = 0

    def counting(text: str) -> Any:
        inner = parser(text)

        class Counting:
            def get_event(self) -> Any:
                nonlocal asked
                asked += 1
                return inner.get_event()

        return Counting()

    assert len(read_values(text, counting)["topics"]) == 2_000
    assert asked < 2_000 * 6 + 20


def test_set_and_files_are_read_by_the_same_reader(tmp_path: Any) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: x\nconversations: 1\nspace: education_dialogue\nprompt: education_dialogue\n"
                    "backends: {default: {type: simulator}}\n")  # fmt: skip
    for value, said in (
        ("!!bool abc", "'abc' is not true or false"),
        ("0x" + "f" * 6000, "too long"),
        ("{a: &a [*a]}", "recursive"),
        ("\udc80", "U+DC80"),
    ):
        with pytest.raises(Exception, match=r".") as caught:
            load_job(path, [f"limits={value}"])
        assert caught.type.__mro__[1].__name__ == "FileError"
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("value", "path"),
    [("{a: 1e400}", None), ("{a: .nan}", ".a"), ("{a: [99999999999999999999]}", ".a[0]"), ("{1: 2}", ""), ("{a: {null: 2}}", ".a")],
)  # fmt: skip
def test_what_is_handed_on_as_it_is_can_be_written_as_json(
    tmp_path: Any, value: str, path: str | None
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: x\nconversations: 1\nspace: education_dialogue\nprompt: education_dialogue\n"
                   f"backends: {{default: {{type: openai, model: m, extra_body: {value}}}}}\n")  # fmt: skip
    if path is None:
        load_job(job)
        return
    with pytest.raises(JobError) as caught:
        load_job(job)
    assert f"$.backends.default.extra_body{path}: " in str(caught.value)


def test_thousands_of_unknown_keys_are_told_in_few_words() -> None:
    from edgen.config import Limits

    text = "".join(f"inflight_{i}: 1\n" for i in range(20_000)) + f"? {'k' * 100_000}\n: 1\n"
    with pytest.raises(JobError) as caught:
        build(read_yaml(text, "job.yaml", JobError), Limits, "job.yaml", JobError)
    assert len(caught.value.problems) == 20_001
    said = str(caught.value)
    assert len(said) < 20_000
    assert "… and 19,901 more" in said
    assert max(map(len, map(str, caught.value.problems))) < 500
