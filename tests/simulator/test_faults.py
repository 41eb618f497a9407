"""Faults on demand: valid specifications, and the rate of each fault."""

from __future__ import annotations

import json

import pytest

from edgen.core.errors import InputError
from edgen.core.values import Message
from edgen.simulator import layout_defects
from edgen.simulator.faults import (
    BATCH,
    CONTENT,
    TRANSPORT,
    Fault,
    choose_transport_fault,
    describe_faults,
    list_fault_names,
    parse,
    render_canonical,
)
from edgen.simulator.text import make_request_key, respond
from tests.simulator.prompts import AS_JSON, every_scenario, prompt, turns_of


def test_specification() -> None:
    faults = parse(" 429=0.1:2.5, refusal = 0.02,503=.05,,slow=0.2")
    assert faults.content == (Fault("refusal", 0.02),)
    assert faults.transport == (Fault("429", 0.1, 2.5), Fault("503", 0.05), Fault("slow", 0.2, 1.0))
    both = parse("batch_create_lost=1:5,batch_503=1").batch
    assert both == (Fault("batch_503", 1.0), Fault("batch_create_lost", 1.0, 5.0)), (
        "each has a share of its own"
    )
    assert parse("") == parse(" , ") == parse("")
    assert parse("empty=0").content == (Fault("empty", 0.0),)


def test_order_of_a_specification_is_nothing() -> None:
    assert parse("empty=0.5,garbage=0.25") == parse("garbage=0.25,empty=0.5")
    assert render_canonical(parse("refusal=0.10,defects=1e-1,500=0.3").content) == "defects=0.1,refusal=0.1"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rudeness=0.1", "no fault 'rudeness'.*refusal.*code_fence.*429"),
        ("=0.1", "no fault ''"),
        ("refusal", "needs a share between 0 and 1"),
        ("refusal=", "needs a share"),
        ("refusal=often", "needs a share"),
        ("refusal=1.5", "needs a share"),
        ("refusal=-0.1", "needs a share"),
        ("refusal=nan", "needs a share"),
        ("refusal=0.1:3", "takes a share and nothing else"),
        ("500=0.1:3", "takes a share and nothing else"),
        ("batch_503=0.1:3", "takes a share and nothing else"),
        ("429=0.1:soon", "needs seconds"),
        ("429=0.1:", "needs seconds"),
        ("429=0.1:1e9", "needs seconds"),
        ("empty=0.1,empty=0.2", "given twice"),
        ("empty=0.6,garbage=0.6", "content faults add up to 1.2"),
        ("500=0.6,hang=0.6", "transport faults add up to 1.2"),
    ],
)
def test_bad_specification_is_a_sentence(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=f"(?s)^faults: .*{words}") as caught:
        parse(spec)
    assert str(caught.value).endswith(".")


def test_classes_have_shares_of_their_own() -> None:
    assert parse("empty=0.6,500=0.6").content[0].share == 0.6


def test_content_faults_strike_as_often_as_told() -> None:
    faults = parse("refusal=0.1,truncated=0.1,garbage=0.1,empty=0.1,filtered=0.1,one_speaker=0.1")
    replies = [respond(messages, seed=7, faults=faults) for messages in every_scenario(2000)]
    clean = [respond(messages, seed=7) for messages in every_scenario(2000)]
    counts = {
        "refusal": sum(r.refusal is not None and r.finish_reason == "stop" for r in replies)
        + sum("Conversation" not in r.text and has_refusal_words(r.text) for r in replies),
        "truncated": sum(r.finish_reason == "length" for r in replies),
        "empty": sum(r.text == "" and r.refusal is None for r in replies),
        "filtered": sum(r.finish_reason == "content_filter" for r in replies),
        "one_speaker": sum(
            bool(turns_of(r.text))
            and {role for role, _ in turns_of(r.text)} == {"Teacher"}
            and r.finish_reason == "stop"
            for r in replies
        ),
        "untouched": sum(r == c for r, c in zip(replies, clean, strict=True)),
    }
    # Three standard deviations about 200 of 2000 are 40; 800 are left alone, with 66.
    assert all(160 <= counts[name] <= 240 for name in counts if name != "untouched"), counts
    assert 734 <= counts["untouched"] <= 866, counts


def has_refusal_words(text: str) -> bool:
    return any(words in text for words in ("can't", "cannot", "not able to", "must decline"))


def test_both_ways_to_refuse() -> None:
    replies = [respond(prompt(), seed=seed, faults=parse("refusal=1")) for seed in range(100)]
    in_field = sum(reply.refusal is not None for reply in replies)
    assert 10 < in_field < 60
    assert all((reply.text == "") == (reply.refusal is not None) for reply in replies)


def test_truncated_reply_is_the_start_of_the_whole_one() -> None:
    whole = respond(prompt(), seed=4)
    cut = respond(prompt(), seed=4, faults=parse("truncated=1"))
    assert cut.finish_reason == "length"
    assert whole.text.startswith(cut.text)
    assert 0.15 < len(cut.text) / len(whole.text) < 0.85


def test_garbage_holds_no_conversation() -> None:
    for seed in range(50):
        text = respond(prompt(), seed=seed, faults=parse("garbage=1")).text
        assert text.strip()
        assert "Teacher" not in text
        assert "Student" not in text


def test_same_request_meets_the_same_content_fault() -> None:
    faults = parse("defects=0.5,empty=0.2")
    for seed in range(30):
        assert respond(prompt(), seed=seed, faults=faults) == respond(prompt(), seed=seed, faults=faults)


def test_faults_leave_the_other_answers_as_they_were() -> None:
    for seed in range(200):
        spoiled = respond(prompt(), seed=seed, faults=parse("empty=0.3"))
        assert spoiled.text in ("", respond(prompt(), seed=seed).text)


@pytest.mark.parametrize("name", layout_defects.NAMES)
def test_every_defect_keeps_what_was_said(name: str) -> None:
    """Each family changes the layout in some samples, and every clean word remains."""
    changed = 0
    for seed in range(40):
        clean = respond(prompt(), seed=seed).text
        spoiled = respond(prompt(), seed=seed, faults=parse(f"{name}=1")).text
        changed += spoiled != clean
        words = letters(" ".join(said for _, said in turns_of(clean)))
        assert words - letters(spoiled) <= letters("end of conversation"), (name, seed)
    assert changed >= 25


def letters(text: str) -> set[str]:
    """Return the words of a text, without marks."""
    return {"".join(c for c in word if c.isalnum()) for word in text.replace('\\"', "").split()} - {""}


def test_defects_mixes_all_families() -> None:
    texts = [respond(prompt(), seed=seed, faults=parse("defects=1")).text for seed in range(400)]
    signs = {
        "code_fence": lambda t: t.startswith("```"),
        "thinking": lambda t: t.startswith("<"),
        "preamble": lambda t: t.startswith(("Sure!", "Certainly", "Here's", "Okay, here")),
        "json": lambda t: t.startswith(("{", "[\n  {", "[{")),
        "numbered": lambda t: "\n2" in t or "\n[2]" in t or "\nTurn 2" in t,
        "bulleted": lambda t: "\n- Teacher" in t or "\n* Teacher" in t or "\n• Teacher" in t,
        "bold": lambda t: "**Teacher" in t or "__Teacher" in t,
        "named": lambda t: "Teacher (" in t or "Teacher [" in t,
        "curly": lambda t: "“" in t,
        "percent": lambda t: "%" in t,
        "hollow": lambda t: '"..."' in t or '""' in t,
        "after": lambda t: "bell rings" in t or "one more thing" in t,
        "other marker": lambda t: "[End of conversation]" in t or "(end of conversation)" in t,
    }
    for name, sign in signs.items():
        assert any(sign(text) for text in texts), name


def test_defects_of_a_json_prompt() -> None:
    texts = [respond(prompt(layout=AS_JSON), seed=i, faults=parse("loose_json=1")).text for i in range(20)]
    for text in texts:
        with pytest.raises(ValueError, match=r".+"):
            json.loads(text)
    assert respond(prompt(layout=AS_JSON), seed=1, faults=parse("code_fence=1")).text.startswith("```json\n{")


def test_plain_answers_have_no_layout_to_spoil() -> None:
    hello = (Message("user", "hello"),)
    assert respond(hello, seed=1, faults=parse("defects=1")) == respond(hello, seed=1)


def test_transport_faults_are_drawn_anew_at_each_try() -> None:
    faults = parse("429=0.2,500=0.2")
    keys = [make_request_key(prompt(), seed) for seed in range(2000)]
    first = [choose_transport_fault(faults, key, 0) for key in keys]
    again = [choose_transport_fault(faults, key, 1) for key in keys]
    for drawn in (first, again):
        assert 330 <= sum(f is not None and f.name == "429" for f in drawn) <= 470
        assert 330 <= sum(f is not None and f.name == "500" for f in drawn) <= 470
    both = sum(a is not None and b is not None for a, b in zip(first, again, strict=True))
    assert 240 <= both <= 400, "independent: 0.4 * 0.4 of 2000 are 320"


def test_every_name_is_described() -> None:
    text = describe_faults()
    for name in list_fault_names():
        assert f"  {name}: " in text
    assert set(list_fault_names()) == {*CONTENT, *TRANSPORT, *BATCH, *layout_defects.NAMES}
