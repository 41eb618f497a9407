"""Prompt templates: their renderings, their errors, and bounds on every template."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import TemplateError
from edgen.core.forms import list_answer_kinds
from edgen.core.resources import find, list_shipped
from edgen.core.values import MAX_TEXT, Message
from edgen.planning import catalogue
from edgen.prompting import FrontMatter, Prompt, load_prompt, scenario_variables
from edgen.prompting.front_matter import read_front
from edgen.prompting.prompt import MAX_TEMPLATE
from tests.scenarios import DEFAULT_VARIABLES, scenario_of
from tests.timing import takes_under

SCENARIO = scenario_of(
    137,
    "photosynthesis",
    "hands-on work",
    "loses focus in a lecture",
    "lecturing",
    "keeps to the plan",
)
# Of the published prompt with SCENARIO's values in place of its five placeholders.
PUBLISHED_SHA256 = "e45e97b6ca2a6f54499e9208c6fe4bbf6c3565263c83cd60bb2678f1c6f2256b"


def prompt(tmp_path: Path, text: str) -> Prompt:
    path = tmp_path / "mine.j2"
    path.write_bytes(text.encode())
    return load_prompt(path, DEFAULT_VARIABLES)


def render(tmp_path: Path, text: str, **more: Any) -> str:
    (message,) = prompt(tmp_path, text).messages({**scenario_variables(SCENARIO), **more})
    return message.content


def refusal(tmp_path: Path, text: str, **more: Any) -> str:
    """Return the error message for a template that cannot be loaded or rendered."""
    with pytest.raises(TemplateError) as caught:
        render(tmp_path, text, **more)
    message = str(caught.value)
    assert message.startswith(f"template {tmp_path / 'mine.j2'}: ")
    return message


class TestShippedTemplates:
    def test_the_published_prompt_word_for_word(self) -> None:
        (message,) = load_prompt(find("prompts", "education_dialogue"), DEFAULT_VARIABLES).messages(
            scenario_variables(SCENARIO)
        )
        assert message.role == "user"
        assert hashlib.sha256(message.content.encode()).hexdigest() == PUBLISHED_SHA256

    def test_the_published_prompt_against_its_source(self, shared_data: Path) -> None:
        published = (shared_data / "ed_prompt.txt").read_text().removesuffix("\n")
        expected = (
            published.replace("{topic}", SCENARIO["topic"])
            .replace("{student_pref}", SCENARIO["student_preference"])
            .replace("{student_reaction}", SCENARIO["student_reaction"])
            .replace("{teacher_pref}", SCENARIO["teacher_preference"])
            .replace("{teacher_reaction}", SCENARIO["teacher_reaction"])
        )
        (message,) = load_prompt(find("prompts", "education_dialogue"), DEFAULT_VARIABLES).messages(
            scenario_variables(SCENARIO)
        )
        assert message.content == expected

    @pytest.mark.parametrize("name", ["education_dialogue", "education_dialogue_json"])
    def test_every_oneshot_template_uses_the_whole_scenario(self, name: str) -> None:
        template = load_prompt(find("prompts", name), DEFAULT_VARIABLES)
        assert set(template.list_unused_variables(DEFAULT_VARIABLES)) <= {"index", "subject", "level"}
        (message,) = template.messages(scenario_variables(SCENARIO))
        for value in ("photosynthesis", "hands-on work", "loses focus", "lecturing", "keeps to the plan"):
            assert message.content.count(value) >= 1

    def test_the_json_template_asks_for_json(self) -> None:
        template = load_prompt(find("prompts", "education_dialogue_json"), DEFAULT_VARIABLES)
        values = scenario_variables(SCENARIO) | {"level": "primary", "subject": "Biology"}
        (message,) = template.messages(values)
        assert "The level is primary, the school subject Biology.\n\nThe student:" in message.content
        assert '{"conversation": [{"role": "Teacher", "text": "..."}' in message.content
        assert "[end of conversation]" in message.content


class TestRendering:
    def test_the_file_to_the_letter_but_for_its_last_newline(self, tmp_path: Path) -> None:
        text = "  On {{ topic }}:\n\n  - one\t\n  - <b>&amp;\n\n"
        assert render(tmp_path, text) == "  On photosynthesis:\n\n  - one\t\n  - <b>&amp;\n"

    @pytest.mark.parametrize(
        "value",
        [
            "{{ 7*7 }}",
            "{% for x in range(9) %}",
            "\x1b[31mred\x1b[0m",
            "<i>&</i>",
            "%s %(topic)s {0.__class__}",
            "  two\nlines ",
            "分数",
            "\u202e",
        ],
    )
    def test_values_are_data(self, tmp_path: Path, value: str) -> None:
        assert render(tmp_path, "[{{ topic }}]", topic=value) == f"[{value}]"

    @given(value=st.text())
    def test_any_value_comes_out_to_the_letter(
        self, tmp_path_factory: pytest.TempPathFactory, value: str
    ) -> None:
        assert render(tmp_path_factory.getbasetemp(), "[{{ topic }}]", topic=value) == f"[{value}]"

    def test_blocks_make_a_system_and_a_user_message(self, tmp_path: Path) -> None:
        text = (
            "{# mine #}\n\n{% block system %}\nYou write lessons.\n{% endblock %}\n"
            "{% block user %}\n{% set t = topic|upper %}\n  About {{ t }}.\n{% endblock %}\n"
        )
        assert prompt(tmp_path, text).messages(scenario_variables(SCENARIO)) == (
            Message("system", "You write lessons."),
            Message("user", "  About PHOTOSYNTHESIS."),
        )

    def test_what_templates_can_do(self, tmp_path: Path) -> None:
        text = (
            "{% macro item(name, value) %}*{{ name }}={{ value }};{% endmacro %}"
            "{% macro wrap() %}({{ caller() }}){% endmacro %}{% set pairs = {'a': topic, 'b': index} %}"
            "{% for name, value in pairs.items() %}{{ item(name, value) }}{% if not loop.last %} {% endif %}{% endfor %}"
            "|{{ ['x', 'y']|join('-') ~ 1 }}|{{ topic[:5] }}|{{ level or 'any level' }}"
            "|{{ topic|replace('o', '0')|title }}|{{ 'b' in ['a', 'b'] }}|{{ index + 1 }}|{{ '-' * 3 }}"
            "|{% for i in range(5) if i is odd %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% endfor %}"
            "|{% call wrap() %}{{ topic.split('s')[0] }}{% endcall %}{% filter upper %}up{% endfilter %}"
        )
        assert render(tmp_path, text) == (
            "*a=photosynthesis; *b=137;|x-y1|photo|any level|Ph0t0synthesis|True|138|---"
            "|1:1/2 2:3/2 |(photo)UP"
        )

    def test_digest_name_and_variables(self, tmp_path: Path) -> None:
        text = "Größe: {{ topic }}{% for level in [index] %}{{ level }}{% endfor %}"
        template = prompt(tmp_path, text)
        assert template.sha256 == hashlib.sha256(text.encode()).hexdigest()
        assert (template.name, template.text) == ("mine", text)
        assert template.variables_used == {"topic", "index"}
        assert template.list_unused_variables(DEFAULT_VARIABLES) == [
            n for n in DEFAULT_VARIABLES if n not in ("topic", "index")
        ]

    def test_a_template_may_be_given_other_variables(self, tmp_path: Path) -> None:
        path = tmp_path / "turn.j2"
        path.write_text("{% for turn in turns %}{{ turn.role }}: {{ turn['text'] }}\n{% endfor %}")
        template = load_prompt(path, available=("turns",))
        (message,) = template.messages({"turns": [{"role": "Teacher", "text": "Hi"}]})
        assert message.content == "Teacher: Hi\n"

    def test_a_render_takes_microseconds(self) -> None:
        template = load_prompt(find("prompts", "education_dialogue"), DEFAULT_VARIABLES)
        values = scenario_variables(SCENARIO)
        # 500 µs each; compiling each time would take over 1,700
        assert takes_under(10e-3, lambda: [template.messages(values) for _ in range(20)])


class TestFilesThatCannotBeUsed:
    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(TemplateError, match=r"nope\.j2: there is no such file"):
            load_prompt(tmp_path / "nope.j2", DEFAULT_VARIABLES)

    def test_not_utf8(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.j2"
        path.write_bytes(b"caf\xe9")
        with pytest.raises(TemplateError, match="byte 3 is not UTF-8"):
            load_prompt(path, DEFAULT_VARIABLES)

    @pytest.mark.parametrize("text", ["", " \n\t\n"])
    def test_empty(self, tmp_path: Path, text: str) -> None:
        assert "it is empty" in refusal(tmp_path, text)

    def test_too_large(self, tmp_path: Path) -> None:
        assert "it is longer than 250,000 characters" in refusal(tmp_path, "x" * (MAX_TEMPLATE + 1))

    def test_nothing_but_a_comment(self, tmp_path: Path) -> None:
        assert "it renders to an empty user message" in refusal(tmp_path, "{# later #}")

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("a\n{{ topic }\n", 2, "unexpected '}'"),
            ("{% if topic %}\nno end", 2, "Unexpected end of template"),
            (
                "a\nb\n{{ topik }}",
                3,
                "there is no variable 'topik' (did you mean 'topic'?); known: index, level",
            ),
            ("{{ zzz }}", 1, "there is no variable 'zzz' (known: index, level"),
            ("\n{% if notes is defined %}x{% endif %}", 2, "there is no variable 'notes'"),
            ("{% for x in 'ab' %}{% set y = x %}{% endfor %}\n{{ y }}", 2, "there is no variable 'y'"),
            ("\n{{ topic|uper }}", 2, "there is no filter 'uper' (did you mean 'upper'?)"),
            ("{% if topic is oddly %}{% endif %}", 1, "there is no test 'oddly'"),
            ("x\n{% include 'other.j2' %}", 2, "{% include %} is refused: a prompt is one file"),
            ("{% import 'm.j2' as m %}x", 1, "{% import %} is refused"),
            ("{% from 'm.j2' import m %}x", 1, "is refused"),
            ("{% extends '/etc/passwd' %}", 1, "{% extends %} is refused"),
            ("{% autoescape true %}x{% endautoescape %}", 1, "{% autoescape %} is refused"),
            ("{% do topic %}", 1, "unknown tag 'do'"),
            ("{% for x in 'a' recursive %}x{% endfor %}", 1, "'recursive' is refused"),
            ("{% macro m() %}{{ varargs }}{% endmacro %}", 1, "'varargs' is refused"),
            ("{% block user %}{{ self.user() }}{% endblock %}", 1, "'self' is refused"),
            ("{% block body %}x{% endblock %}", 1, "there is no block 'body' (known: system, user)"),
            ("{% block system %}x{% endblock %}", 1, "needs {% block user %}"),
            ("{% block user %}x{% endblock %}\n\nlost", 3, "outside the blocks"),
            ("{% block user %}x{% endblock %}\n{{ topic }}", 2, "outside the blocks"),
            ("{% set a = 1 %}\n{% block user %}{{ a }}{% endblock %}", 1, "outside the blocks"),
            ("{% if topic %}{% block user %}x{% endblock %}{% endif %}", 1, "is nested; move it"),
            ("{% block user %}x{% endblock %}\n{% block user %}y{% endblock %}", 2, "defined twice"),
            ("a\n{{ level.upper() }}", 2, "'None' has no attribute 'upper'"),
            ("a\n{{ level }}", 2, "this value is empty (None) in this scenario"),
            ("a\n{{ ['x'] }}", 2, "only texts and numbers can be printed"),
            ("\n{% macro m(x) %}\n{{ x + 1 }}{% endmacro %}{{ m(topic) }}", 3, "can only concatenate str"),
            ("{% for a, b in ['xyz'] %}{{ a }}{% endfor %}", 1, "too many values to unpack"),
            ("{{ 1 / (index - 137) }}", 1, "division by zero"),
            ("{% for x in index %}x{% endfor %}", 1, "'int' object is not iterable"),
        ],
    )
    def test_the_line_and_what_is_wrong(self, tmp_path: Path, text: str, line: int, words: str) -> None:
        message = refusal(tmp_path, text)
        assert f"line {line}: " in message
        assert words in message

    def test_every_problem_at_once(self, tmp_path: Path) -> None:
        message = refusal(tmp_path, "{{ topik }}\n{{ topic }}\n{{ levle }}")
        assert "2 problems:" in message
        assert "line 1: " in message
        assert "line 3: " in message

    def test_a_value_that_was_not_handed_over(self, tmp_path: Path) -> None:
        with pytest.raises(TemplateError, match=r"line 1: 'topic' is undefined"):
            prompt(tmp_path, "{{ topic }}").messages({})

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{{ " + "(" * 50_000, "more than 10,000 names, numbers, signs and stretches of text"),
            ("{{ " + "(" * 5_000, "it cannot be compiled: it is nested too deeply"),
            (
                "\n{% for a in 'x' %}" * 12 + "{% endfor %}" * 12,
                "line 13: tags are nested more than 10 deep here",
            ),
        ],
    )
    def test_nested_too_deeply(self, tmp_path: Path, text: str, said: str) -> None:
        assert said in refusal(tmp_path, text)


ESCAPES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ ''['__class__'] }}",
    "{{ topic|attr('__class__') }}",
    "{{ topic.format }}",
    "{{ '{0.__class__}'.format(topic) }}",
    "{{ '{x.__class__}'.format_map({'x': topic}) }}",
    "{{ [''.format, 1][0]('x') }}",
    "{{ ''.join.__self__ }}",
    "{{ lipsum.__globals__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ joiner }}",
    "{{ namespace() }}",
    "{{ dict(a=1) }}",
    "{{ range.__class__ }}",
    "{{ range(3).__class__ }}",
    "{% macro m() %}{% endmacro %}{{ m.__class__ }}",
    "{% macro m() %}{% endmacro %}{{ m._func }}",
    "{% for x in 'a' %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in 'a' %}{{ loop._iterator }}{% endfor %}",
    "{{ {}.__class__ }}",
    "{{ {}.update({'a': 1}) }}",
    "{{ ['a'].append('b') }}",
    "{{ topic.encode() }}",
    "{{ topic.zfill(10 ** 9) }}",
    "{{ (1).__class__ }}",
    "{{ (1).to_bytes(10 ** 9, 'big') }}",
    "{{ self }}",
    "{{ caller }}",
    "{{ environment }}",
    "{{ ['a']|map('upper')|list }}",
    "{{ topic|tojson }}",
    "{{ topic|_spend(-1000000) }}",
    "{{ topic|_each(-1)|list }}",
    "{% set x = 'a' %}{% set x.y = 1 %}x",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_nothing_of_python_is_in_reach(tmp_path: Path, text: str) -> None:
    assert "line 1: " in refusal(tmp_path, text)


_DOUBLING = "{% set a = 'ab' %}" + "{% set a = a ~ a %}" * 40
_BIG = "{% set big = 'abcdefghij' * 90000 %}"
BOMBS = [
    "{{ 'a' * 10**10 }}",
    "{{ 10**10 * 'a' }}",
    "{{ ['a'] * 10**9 }}",
    "{{ 10**(10**10) }}",
    "{{ (2**4000) * (2**4000) }}",
    "{{ 9 ** (9 ** 9) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:1000000000}'.format('a') }}",
    "{{ ''['format']('a') }}",
    "{{ 'a'|center(10**10) }}",
    "{{ 'a'|indent(10**10) }}",
    "{{ 'a'.ljust(10**10) }}",
    "{{ range(10**9)|list }}",
    "{{ range(10**30)|join }}",
    "{{ (range(10000)|join('a' * 100000)) }}",
    "{{ ('a' * 1000000)|replace('a', 'a' * 1000000) }}",
    "{{ ('a' * 1000000)|replace('', 'aa') }}",
    _DOUBLING + "{{ a }}",
    _DOUBLING.replace("a ~ a", "a + a") + "{{ a }}",
    _DOUBLING.replace("a ~ a", "[a, a]") + "{{ a == a }}",
    _DOUBLING.replace("a ~ a", "(a, a)") + "x",
    _DOUBLING.replace("a ~ a", "{'k': a}") + "x",
    (
        "{% for i in range(10000) %}{% for j in range(10000) %}{% for k in range(10000) %}"
        "{% endfor %}{% endfor %}{% endfor %}x"
    ),
    "{% for i in range(10000) %}{% for j in range(10000) if false %}{% endfor %}{% endfor %}x",
    "{% for i in range(10000) %}{% if range(10000)|list|length == 7 %}{% endif %}{% endfor %}x",
    "{% for i in range(10000) %}{{ topic }} {{ topic }} {{ topic }} {{ topic }} {{ topic }}{{ topic }} "
    "and so on {{ topic }}{{ topic }} {% endfor %}{% for i in range(9000) %}" + "x" * 300 + "{% endfor %}",
    "{% for i in range(10000) %}" + "x" * 2000 + "{% endfor %}",
    "{% set s %}{% for i in range(10000) %}{% for j in range(10) %}" + "x" * 2000 + "{% endfor %}{% endfor %}"
    "{% endset %}x",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}"
    + "x" * 5000
    + "{% endmacro %}{% for i in range(10000) %}{% set y = m() %}{% endfor %}x",
    "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}"
    + "{% call m() %}" * 18
    + "x"
    + "{% endcall %}" * 18,
    _BIG + "{% for i in range(10000) %}{% if big == big ~ '' %}{% endif %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% if 'ja' in big %}{% endif %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = big[1:] %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = big.split('zz') %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = 'a'.startswith(big) %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = big|lower %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = big|trim %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = big|replace('x', 'y') %}{% endfor %}x",
    _BIG + "{% for i in range(10000) %}{% set x = big is string and big|length %}{% endfor %}x",
    _BIG + "{% set x %}{% for i in range(10000) %}{{ big }}{% endfor %}{% endset %}x",
    _BIG + "{% for c in big %}{% for d in big %}{% endfor %}{% endfor %}x",
    _BIG + "".join(f"{{% set b{i} = big ~ {i} %}}" for i in range(3000)) + "x",
    "{{ " + "9" * 5000 + " }}",
    "{{ 'a'" + ".upper()" * 3000 + " }}",
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_no_template_runs_away(tmp_path: Path, text: str) -> None:
    assert takes_under(5, lambda: refusal(tmp_path, text), tries=3)


def test_output_is_capped_at_the_character(tmp_path: Path) -> None:
    assert len(render(tmp_path, f"{{{{ 'a' * {MAX_TEXT} }}}}")) == MAX_TEXT
    assert "it renders to more than 1,000,000 characters" in refusal(tmp_path, f"{{{{ 'a' * {MAX_TEXT} }}}}b")


def test_a_large_honest_template_renders(tmp_path: Path) -> None:
    text = "{% for i in range(1000) %}{{ i }}. Something about {{ topic }} and {{ index }}.\n{% endfor %}"
    assert render(tmp_path, text).count("\n") == 1000


FRONT = """{#
---
name: My study
version: "1.2"
source: >-
  A paper,
  and another
licence: CC-BY-4.0
expects: conversation
notes: none
---
What I tell others about it: #
#}
"""


class TestFrontMatter:
    def test_it_is_read_and_never_rendered(self, tmp_path: Path) -> None:
        mine = prompt(tmp_path, FRONT + "  Hello {{ topic }}")
        (message,) = mine.messages({"topic": "Zeus"})
        assert message.content == "  Hello Zeus"
        assert mine.front == FrontMatter(
            name="My study",
            version="1.2",
            source="A paper, and another",
            licence="CC-BY-4.0",
            expects="conversation",
            notes="none",
        )

    @pytest.mark.parametrize(
        "text",
        [
            "Hello",
            "{# name: x #}Hello",
            "{# A comment\n---\nname: x\n---\n#}Hello",
            "Hello {#\n---\nversoin: 1\n---\n#}",
            "{#----- a banner -----#}Hello",
            "{#\n----\nversoin: 1\n----\n#}Hello",
            "{#\n---\n---\n#}Hello",
        ],
    )
    def test_other_comments_are_comments(self, tmp_path: Path, text: str) -> None:
        assert prompt(tmp_path, text).front == FrontMatter()

    @pytest.mark.parametrize("key", ["licence", "license"])
    def test_a_licence_in_both_spellings(self, tmp_path: Path, key: str) -> None:
        assert prompt(tmp_path, f"{{#\n---\n{key}: MIT\n---\n#}}Hello").front == FrontMatter(licence="MIT")

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_line_ends_of_any_system(self, tmp_path: Path, newline: str) -> None:
        mine = prompt(tmp_path, (FRONT + "Hello").replace("\n", newline))
        assert mine.front.licence == "CC-BY-4.0"
        assert mine.messages({})[0].content == "Hello"

    @pytest.mark.parametrize(
        ("front", "line", "sentence"),
        [
            ("name: x\nversoin: '1'", 4, "versoin: unknown key (did you mean 'version'?)"),
            ("licence: x\nlicense: x", 4, "licence and license are the same key; keep one of them"),
            ("notes: |\n  name: of whom?\n  versions\nname: [x]", 6, "name: expected a text"),
            ("source: x\nnames: x\nname: [x]", 5, "name: expected a text"),
            ("notes: names\nsourced: x\nsource: [x]", 5, "source: expected a text"),
            ("name: x\nlicense: [x]", 4, "licence: expected a text"),
            ("expects: verdicts", 3, "expects: unknown value 'verdicts' (did you mean 'verdict'?)"),
            ("name: x\nversion: 1.10", 4, "a version is a text; put it in quotes"),
            ("name: [1, 2]", 3, "name: expected a text"),
            ("name: x\nname: y", 4, "the key 'name' is given twice"),
            ("name: [x", 4, "it is not valid YAML"),
            ("- a list", 3, "front matter is a list of keys with values"),
            ("a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]\n? {}\n: 1", 3, ""),
            ("name: " + "x" * 30_000, 2, "longer than 20,000 characters"),
        ],
    )
    def test_what_is_wrong_is_said_with_its_line(
        self, tmp_path: Path, front: str, line: int, sentence: str
    ) -> None:
        message = refusal(tmp_path, f"{{#\n---\n{front}\n---\n#}}\nHello")
        assert f"line {line}" in message or not sentence
        assert sentence in message

    @pytest.mark.parametrize(
        "text",
        ["{#---\nname: x\n---#}\n  Hello", "{#\n---\nname: x\n---#}\n  Hello", "{#\n---\nname: x\n#}Hello"],
    )
    def test_what_jinja_would_take_otherwise_is_refused(self, tmp_path: Path, text: str) -> None:
        assert "on lines of their own" in refusal(tmp_path, text) or "has no end" in refusal(tmp_path, text)

    def test_a_template_for_another_use_is_refused(self, tmp_path: Path) -> None:
        mine = prompt(tmp_path, FRONT + "Hello").source
        assert load_prompt(Path(mine), DEFAULT_VARIABLES, expects="conversation").front.name == "My study"
        with pytest.raises(TemplateError) as caught:
            load_prompt(Path(mine), DEFAULT_VARIABLES, expects="verdict")
        assert "it says `expects: conversation` (a whole conversation" in str(caught.value)
        assert "would be read as `verdict` here (1 or 2" in str(caught.value)

    def test_every_shipped_template_says_what_it_is(self) -> None:
        for name in list_shipped("prompts"):
            front = catalogue.load(find("prompts", name)).front
            assert front.name, name
            assert front.version, name
            assert front.source, name
            assert front.expects in list_answer_kinds(), name

    @given(st.text(max_size=200))
    def test_no_front_matter_crashes(self, text: str) -> None:
        with contextlib.suppress(TemplateError):
            read_front(f"{{#\n---\n{text}\n---\n#}}", "x")
        with contextlib.suppress(TemplateError):
            read_front(text, "x")


def test_a_field_that_a_value_lacks_is_named_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "prompt.j2"
    path.write_text("About {{ topic }} for {{ topic.grade }}")
    prompt = load_prompt(path, ("index", "topic"))
    with pytest.raises(TemplateError) as caught:
        prompt.messages({"index": 0, "topic": "Tides"})
    assert "has no field 'grade'" in str(caught.value)
    assert "is defined" in str(caught.value)
