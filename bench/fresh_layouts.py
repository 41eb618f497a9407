"""Forty layouts written on 2026-11-29, before the reader was changed or read for them."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from bench.reply_layouts import Layout
from bench.unseen_layouts import _dumps, _each, _grouped, _in_front, _in_parts, _in_the_middle, _values


def _wrapped(text: str) -> str:
    """Return a text in lines of about forty characters."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + len(word) > 40:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


FRESH: dict[str, Layout] = {
    "small model: hash before the name": _each("# {r}: {t}", between="\n", foot="\n# Probability: {p}"),
    "small model: repeated heading": _each(
        "{r}: {t}", head="Conversation:\nConversation:\n\n", foot="\n\nProbability: Probability: {p}"
    ),
    "small model: numbered names": _each("{n}. {r} - \"{t}\"", plain=True, foot="\n\nProbability - {p}"),
    "small model: colon in bold, blank before it": _each("**{r}** : {t}", between="\n\n", foot="\n\n**Probability** : {pc}"),
    "large model: rule, heading, bold, summary": _each(
        "**{r}:** {t}", between="\n\n",
        head="# Teaching Session: A Simulated Dialogue\n\n---\n\n## Dialogue\n\n",
        foot="\n\n---\n\n## Assessment\n\n**Probability that the student understood the material:** **{p}**\n\n**Rationale:** The student asked good questions but stayed unsure about the details.",
    ),
    "large model: bullets for the assessment": _each(
        "**{r}:** {t}", between="\n\n", foot="\n\n### Evaluation\n\n- **Engagement:** moderate\n- **Probability of understanding:** {pc}\n- **Next step:** more examples"
    ),
    "large model: a table of the assessment": _each(
        "**{r}:** {t}", between="\n\n", foot="\n\n| Measure | Value |\n|---|---|\n| Probability | {p} |"
    ),
    "large model: boxed": _each("**{r}:** {t}", between="\n\n", foot="\n\n$\\boxed{{{p}}}$"),
    "large model: notes between": _in_parts("**{r}:** {t}", 5, "*[The class moves on to part {n}.]*"),
    "chat, time behind the name in small brackets": _each("{r} (10:{m}): {t}"),
    "chat, time at the end of the line": _each("{r}: {t} [10:{m}]", between="\n"),
    "chat, ISO and level": _each("2027-03-04T10:{m}:11Z INFO {o}: {t}", foot="\n2027-03-04T11:00:00Z INFO probability: {p}"),
    "chat, joined and left": _each(
        "<{r}> {t}", head="*** Teacher has joined\n*** Student has joined\n", foot="\n*** Student has left\n\nProbability: {p}"
    ),
    "play, names in capitals, stage directions on a line": _each(
        "{R}\n(quietly)\n{t}", between="\n\n", head="ACT ONE\n\n", foot="\n\nCURTAIN\n\nPROBABILITY: {p}"
    ),
    "play, italic directions after the name": _each("**{R}.** *(smiling)* {t}", between="\n\n", foot="\n\n**PROBABILITY.** {p}"),
    "numbered list, nested letters": _each("{k}a. {r}: {t}", "{k}b. {r}: {t}"),
    "numbered list, Turn in bold then role": _each("**{n}.** *{r}:* {t}", between="\n\n"),
    "table, number, speaker, text, no edges": _each("{n} | {r} | {t}", head="# | Speaker | Text\n--|--|--\n"),
    "table, code for names": _each("| `{o}` | {t} |", head="| role | content |\n| :--- | :--- |\n"),
    "transcript, time on its own line": _each("00:{m}\n{r}: {t}", between="\n\n"),
    "transcript, wrapped lines": _each("{r}: {t}", between="\n\n", write=_wrapped),
    "transcript, indented continuation": _each("{r}:\t{t}", between="\n", write=lambda t: _wrapped(t).replace("\n", "\n\t")),
    "JSON, turns as objects with role first, in braces": _values(
        lambda r, t, i: {"turn_number": i + 1, "speaker_role": r, "dialogue_text": t, "emotion": "curious"},
        lambda v, p: _dumps({"scenario": "A lesson.", "conversation_turns": v, "understanding": {"score": p, "reason": "asked"}}, 2),
    ),
    "JSON, minified, short keys": _values(
        lambda r, t, _: {"s": r[0], "t": t},
        lambda v, p: json.dumps({"c": v, "p": p}, separators=(",", ":"), ensure_ascii=False),
    ),
    "JSON, lists of four": _grouped(lambda some: [{"role": r, "content": t} for r, t in some], lambda v, p: {"rounds": v, "prob": p}),
    "JSON, single quotes": _values(
        lambda r, t, _: {"role": r, "content": t}, lambda v, p: repr({"conversation": v, "probability": p})
    ),
    "YAML, folded, role as key": _each("- {o}: >\n    {t}", head="dialogue:\n", foot="\nprobability_understood: {p}"),
    "YAML, a dash on its own": _each("-\n  role: {o}\n  content: {t}", write=_dumps, head="messages:\n", foot="\nprobability: {p}"),
    "XML, nested turn with id and attributes": _each(
        '<utterance id="u{n}"><speaker type="{o}"/><text>{t}</text></utterance>',
        head='<?xml version="1.0"?>\n<dialogue>\n', foot='\n<outcome probability="{p}"/>\n</dialogue>', write=escape,
    ),
    "XML, Speaker in capitals with attributes": _each('<SPEAKER NAME="{r}">\n{t}\n</SPEAKER>', write=escape, foot="\n<PROBABILITY>{p}</PROBABILITY>"),
    "TOML, keys by number": _each('{o}_{n} = {t}', head="[conversation]\n", foot="\n\n[outcome]\nprobability = {p}", write=_dumps),
    "CSV, role last": _each('{n},"{t}",{o}', plain=True, head="id,text,role\n", foot="\n\nprobability,{p}"),
    "German, bold, percent in words": _each("**{r}:** {t}", names=("Lehrkraft", "Schüler"), between="\n\n", foot="\n\n**Wahrscheinlichkeit, dass der Schüler es verstanden hat:** {pn} %"),
    "Polish, dashes": _each("– {r}: {t}", names=("Nauczyciel", "Uczeń"), foot="\n\nPrawdopodobieństwo: {p}"),
    "Swedish": _each("{r}: {t}", names=("Lärare", "Elev"), foot="\n\nSannolikhet: {p}"),
    "Vietnamese, numbers": _each("{n}. {r}: {t}", names=("Giáo viên", "Học sinh"), foot="\n\nXác suất: {pc}"),
    "probability first, one number": _in_front("{p}\n\n", _each("{r}: {t}", foot="\n")),
    "probability as a fraction of ten in bold": _each("**{r}** — {t}", between="\n\n", foot="\n\n**Probability:** ~{pc} (roughly)"),
    "probability with P of understood": _each("{r}: {t}", foot="\n\nP(understood) = {p}"),
    "probability in the middle, in a bracketed line": _in_the_middle(
        "(Estimated probability of understanding: {pc})\n", _each("{n}) {r}: {t}", foot="\n"), mark="9) Teacher"
    ),
}  # fmt: skip
