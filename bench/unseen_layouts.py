"""Layouts of chats, plays, mails, programs, tables and legends that were new to the reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from bench.replies import END, TURNS, lesson
from bench.reply_layouts import NAMES, Layout, Names

_FOOT = "\n\nProbability: {p}"
_XML_FOOT = "\n</conversation>\n<probability>{p}</probability>"


def _dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _each(
    *forms: str,
    between: str = "\n",
    head: str = "",
    foot: str = _FOOT,
    names: Names = NAMES,
    plain: bool = False,
    write: Callable[[str], str] = str,
) -> Layout:
    """Return a layout in which turns are written in these forms, one after the other.

    {r} is the role, {R} in capitals, {o} in lower case, {x} the other role, {n} the turn's number, {k} its
    pair's, {m} two digits, {N} three, {l} and {L} a letter, {c} a clock, {v} a verb, {t} the text. In the
    foot {p} is the probability, {pc} its percentage, {pn} the same without a sign.
    """

    def layout(number: int) -> str:
        _, turns, probability = lesson(number)
        said = [text.replace('"', "'") if plain else text for _, text in turns]
        said[-1] = f"{said[-1]} {END}"
        lines = [
            form.format(
                r=(name := names[i % 2]), R=name.upper(), o=name.lower(), x=names[1 - i % 2], n=i + 1, k=i // 2 + 1,
                m=f"{i:02d}", N=f"{i + 1:03d}", l=chr(97 + i), L=chr(65 + i), t=write(said[i]),
                c=f"11:{44 + i} AM", v=("said", "explained", "replied", "asked", "answered", "added")[i % 6],
            )
            for i, form in enumerate(islice(cycle(forms), TURNS))
        ]  # fmt: skip
        percent = round(float(probability) * 100)
        return head + between.join(lines) + foot.format(p=probability, pc=f"{percent}%", pn=percent)

    return layout


def _values(make: Callable[[str, str, int], Any], wrap: Callable[[list[Any], float], object]) -> Layout:
    """Return a layout in JSON: a value for each turn, and the object that contains their list."""

    def layout(number: int) -> str:
        _, turns, probability = lesson(number)
        said = [f"{text} {END}" if i == TURNS - 1 else text for i, (_, text) in enumerate(turns)]
        values = [make(role, text, i) for i, ((role, _), text) in enumerate(zip(turns, said, strict=True))]
        whole = wrap(values, float(probability))
        return whole if isinstance(whole, str) else json.dumps(whole, ensure_ascii=False)

    return layout


def _in_parts(form: str, every: int, title: str) -> Layout:
    """Return a layout with headings between some turns, which belong to no speaker."""

    def layout(number: int) -> str:
        _, turns, probability = lesson(number)
        pieces = []
        for i, (role, text) in enumerate(turns):
            pieces += [title.format(n=i // every + 1)] if i % every == 0 else []
            pieces.append(form.format(r=role, t=f"{text} {END}" if i == TURNS - 1 else text))
        return "\n\n".join(pieces) + _FOOT.format(p=probability)

    return layout


UNSEEN: dict[str, Layout] = {
    "list letters with dots": _each("{l}. {r}: {t}"),
    "capital list letters": _each("{L}) **{r}:** {t}"),
    "WhatsApp, iOS": _each("[12/05/24, 09:{m}:12] {r}: {t}"),
    "Slack": _each("{r}  [{c}]\n{t}", between="\n\n"),
    "Discord": _each("**{r}** — Today at {c}\n{t}", between="\n\n"),
    "IRC with times": _each("09:{m} <{r}> {t}"),
    "IRC operators": _each("<@{o}> {t}"),
    "Telegram export": _each("{r}, [12.05.24 09:{m}]\n{t}", between="\n\n"),
    "Teams": _each("{r}    {c}\n{t}\n", between="\n"),
    "meeting transcript": _each("{r}  0:{m}\n{t}", between="\n\n", head="Transcript\nDuration: 12 min\n\n"),
    "mentions": _each("@{r}: {t}", between="\n\n"),
    "mentions, lower case, no colon": _each("@{o} {t}"),
    "Fountain": _each(
        "@{R}\n{t}", between="\n\n", head="Title: A Lesson\nAuthor: an assistant\n\nINT. CLASSROOM - DAY\n\n"
    ),
    "radio script with cue numbers": _each("{N}  {R}:  {t}"),
    "stage play with acts": _in_parts("{r}. {t}", 4, "SCENE {n}"),
    "parts as headings": _in_parts("**{r}:** {t}", 4, "### Part {n}: Next step"),
    "phases as dashes": _in_parts("{r}: {t}", 6, "--- Phase {n} ---"),
    "e-mail": _each("From: {r}\nTo: {x}\n\n{t}", between="\n\n-----\n\n"),
    "forum, wrote": _each("**{r}** wrote:\n> {t}", between="\n\n"),
    "forum, wrote on": _each("{r} wrote on 12 May at 09:{m}:\n{t}", between="\n\n"),
    "forum posts": _each("Post #{n} by {r}\n{t}", between="\n\n----\n\n"),
    "comments with votes": _each("**{o}** · {n} points\n\n{t}", between="\n\n"),
    "said the teacher": _each('"{t}" said the {o}.', between="\n\n", plain=True),
    "the teacher said, behind": _each("“{t}” the {o} {v}.", between="\n\n"),
    "varying verbs before": _each('The {o} {v}: "{t}"', between="\n\n", plain=True),
    "verb with adverb": _each('The {o} {v} patiently, "{t}"', between="\n\n", plain=True),
    "P1/P2 with a legend": _each("{r}: {t}", names=("P1", "P2"), head="P1 = Teacher, P2 = Student\n\n"),
    "Q/A with a legend": _each("{r}: {t}", names=("Q", "A"), head="Q: the teacher; A: the student\n\n"),
    "speaker numbers with roles": _each(
        "Speaker 1 (Teacher): {t}",
        "Speaker 2 (Student): {t}",
    ),
    "T1, S1, T2": _each(
        "T{k}: {t}",
        "S{k}: {t}",
    ),
    "role with initial": _each(
        "Teacher (T): {t}",
        "Student (S): {t}",
    ),
    "Tea./Stu.": _each("{r}: {t}", names=("Tea.", "Stu.")),
    "initials in bold, legend": _each(
        "**{r}** – {t}", names=("T", "S"), head="*(T = teacher, S = student)*\n\n", between="\n\n"
    ),
    "Teacher_1": _each(
        "Teacher_{k}: {t}",
        "Student_{k}: {t}",
    ),
    "JSON parallel lists": _values(
        lambda _r, t, _: t, lambda v, p: _dumps({"teacher": v[::2], "student": v[1::2], "probability": p})
    ),
    "JSON turn_1_teacher": _values(
        lambda r, t, i: (f"turn_{i + 1}_{r.lower()}", t),
        lambda v, p: _dumps({**dict(v), "probability": p}, indent=2),
    ),
    "JSON numbers then roles": _values(
        lambda r, t, i: (str(i + 1), {r: t}), lambda v, p: _dumps({"conversation": dict(v), "probability": p})
    ),
    "JSON repeated keys": _values(
        lambda r, t, _: f"  {_dumps(r)}: {_dumps(t)}",
        lambda v, p: "{\n" + ",\n".join(v) + f',\n  "probability": {p}\n}}',
    ),
    "JSON probability first": _values(
        lambda r, t, _: {"role": r.lower(), "content": t},
        lambda v, p: _dumps({"probability_understood": f"{p:.0%}", "dialogue": v}),
    ),
    "JSON nested exchanges": _values(
        lambda r, t, _: {"speaker": r, "says": t},
        lambda v, p: _dumps(
            {
                "lesson": {
                    "parts": [{"title": "Start", "turns": v[:8]}, {"title": "End", "turns": v[8:]}],
                    "probability": p,
                }
            }
        ),
    ),
    "YAML keys with blocks": _each("- {o}: |\n    {t}", head="conversation:\n", foot="\nprobability: {p}\n"),
    "YAML flow pairs": _each("- [{r}, {t}]", write=_dumps, head="turns:\n", foot="\nprobability: {p}\n"),
    "YAML documents": _each("---\nspeaker: {o}\nsays: {t}", write=_dumps, foot="\n---\nprobability: {p}\n"),
    "TOML inline tables": _each(
        '  {{ role = "{o}", text = {t} }},', write=_dumps, head="turns = [\n", foot="\n]\nprobability = {p}"
    ),
    "CSV with numbers": _each(
        '{n},{r},"{t}"', write=lambda s: s.replace('"', '""'), head="turn,speaker,text\n"
    ),
    "TSV with numbers": _each("{n}\t{r}\t{t}", head="turn\tspeaker\ttext\n"),
    "two-column table": _each(
        "| {t} |",
        " {t} |\n",
        between="",
        head="| Teacher | Student |\n|---|---|\n",
        foot="\nProbability: {p}",
    ),
    "Python constructor": _each(
        '    Turn(role="{o}", text={t}),',
        write=_dumps,
        head="conversation = [\n",
        foot="\n]\nprobability = {p}",
    ),
    "SQL": _each(
        "({n}, '{r}', '{t}'),",
        write=lambda s: s.replace("'", "''"),
        head="INSERT INTO turns VALUES\n",
        foot="\n\nProbability: {p}",
    ),
    "Lisp": _each("({o} {t})", write=_dumps, head="(conversation\n", foot=")\n(probability {p})"),
    "PHP": _each(
        "    ['role' => '{o}', 'text' => {t}],",
        write=_dumps,
        head="$turns = [\n",
        foot="\n];\n$probability = {p};",
    ),
    "nested list": _each("{n}. **{r}**\n   - {t}"),
    "nested bullets": _each("- {r}\n  - {t}"),
    "bullets, turn, role": _each("- **Turn {n}**\n  - **Speaker:** {r}\n  - **Text:** {t}"),
    "headings with turn and dash": _each(
        "## Turn {n} — {r}\n\n{t}", between="\n\n", foot="\n\n## Probability\n\n{p}"
    ),
    "emoji headings says": _each("### 👩‍🏫 {r} says:\n{t}", between="\n\n"),
    "equals around": _each("=== {r} ===\n{t}", between="\n\n", foot="\n\n=== Probability ===\n{p}"),
    "dashes around": _each("--- {R} ---\n{t}", between="\n\n", foot="\n\n--- PROBABILITY ---\n{p}"),
    "box drawing": _each("┌─ {r}\n│ {t}\n└─", between="\n"),
    "details": _each("<details><summary>{r}</summary>\n\n{t}\n\n</details>", between="\n"),
    "exchanges with labels": _each("Exchange {k}\n  {r}: {t}", "  {r}: {t}\n", between="\n"),
    "Turn n (role)": _each("Turn {n} ({r}): {t}", between="\n\n"),
    "[Turn n] bold": _each("[Turn {n}] **{r}**: {t}"),
    "slashes": _each("{n} / {r} / {t}", foot="\n\nProbability / {p}"),
    "RST fields": _each(":{r}: {t}", foot="\n:Probability: {p}"),
    "braces": _each("{{{r}}}: {t}", foot="\n{{Probability}}: {p}"),
    "hash around": _each("#{r}# {t}", foot="\n#Probability# {p}"),
    "equals arrow": _each("{r} ==> {t}", foot="\nProbability ==> {p}"),
    "speech balloon": _each("🗨️ {r}: {t}", between="\n\n", foot="\n\n📊 Probability: {p}"),
    "emoji between": _each("{r} 💬 {t}", foot="\n\nProbability 📊 {p}"),
    "role after a clock and a bar": _each("09:{m} | {r} | {t}", foot="\n\nProbability: {p}"),
    "XML speaker tags with numbers": _each(
        "<teacher_turn>{t}</teacher_turn>\n".replace("teacher", "{o}"),
        write=escape,
        between="",
        head="<conversation>\n",
        foot=_XML_FOOT,
    ),
    "XML attributes only": _each(
        '<turn role="{o}" text={t}/>', write=quoteattr, head="<conversation>\n", foot=_XML_FOOT
    ),
    "XML from to": _each(
        '<msg from="{o}" to="{x}">{t}</msg>',
        write=escape,
        head="<chat>\n",
        foot="\n</chat>\nProbability: {p}",
    ),
    "XML role content": _each(
        "<turn><role>{o}</role><content>{t}</content></turn>",
        write=escape,
        head="<conversation>\n",
        foot=_XML_FOOT,
    ),
    "XML teacher numbered": _each(
        "<{o}{k}>{t}</{o}{k}>", write=escape, foot="\n<probability>{p}</probability>"
    ),
    "HTML data-role": _each(
        '<div data-role="{o}"><p>{t}</p></div>', write=escape, foot="\n<p>Probability: {p}</p>"
    ),
    "HTML cite": _each(
        "<blockquote><cite>{r}</cite> {t}</blockquote>", write=escape, foot="\n<p>Probability: {p}</p>"
    ),
    "special tokens": _each("<|{o}|>\n{t}</s>", foot="\nProbability: {p}"),
    "turn tags in lines": _each("<Turn {n}>\n{r}: {t}\n</Turn {n}>"),
    "Korean": _each("{r}: {t}", names=("선생님", "학생"), foot="\n\n확률: {p}"),
    "Hindi": _each("**{r}:** {t}", names=("शिक्षक", "छात्र"), between="\n\n", foot="\n\n**संभावना:** {p}"),
    "Portuguese, dash": _each("— {r}: {t}", names=("Professora", "Aluno"), foot="\n\nProbabilidade: {pc}"),
    "Arabic": _each("{r}: {t}", names=("المعلم", "الطالب"), foot="\n\nالاحتمال: {p}"),
    "Spanish, said": _each(
        "—{t} —dijo la {o}.", names=("profesora", "alumna"), between="\n", foot="\n\nProbabilidad: {p}"
    ),
    "French, heading": _each(
        "### {r}\n{t}", names=("L'enseignante", "L'élève"), between="\n\n", foot="\n\n### Probabilité\n{pc}"
    ),
    "p per cent in words": _each(
        "{r}: {t}", foot="\n\nI would put the chance that the student understood at {pn} per cent."
    ),
    "p out of 100": _each("{r}: {t}", foot="\n\nProbability of understanding: {pn}/100"),
    "p out of 20 words": _each(
        "{r}: {t}", foot="\n\nThe student understood with a likelihood of {pn} out of 100."
    ),
    "p approx sign": _each("{r}: {t}", foot="\n\nP(understood) ≈ {p}"),
    "p number alone": _each("{r}: {t}", foot="\n\n**{p}**"),
    "p in brackets": _each("{r}: {t}", foot="\n\n[Probability: {p}]"),
    "p double brackets": _each("{r}: {t}", foot="\n\nFinal answer: [[{p}]]"),
    "p with reason before": _each(
        "{r}: {t}",
        foot="\n\nReasoning: the student asked good questions but remained unsure.\n\nTherefore, probability ≈ {p}",
    ),
    "p table": _each("{r}: {t}", foot="\n\n| Metric | Value |\n|---|---|\n| Probability | {p} |"),
    "p confidence": _each("{r}: {t}", foot="\n\nEstimated understanding: {pc} ({p})"),
    "p with ratings": _each(
        "{r}: {t}", foot="\n\nEngagement: 4/5\nClarity: 5/5\nProbability that the student understood: {p}"
    ),
    "p fenced": _each("{r}: {t}", foot="\n\n```\nprobability = {p}\n```"),
    "meta comment between": _each(
        "{r}: {t}",
        head="Sure, here's a dialogue where the student prefers hands-on work.\n\n(Teacher is strict; student is shy.)\n\n",
        foot="\n\nProbability: {p}\n\nNote that the teacher adapts only at the end, and the student's doubts stay.",
    ),
    "analysis tags": _each(
        "{r}: {t}",
        head="<analysis>\nTeacher: will begin.\nStudent: will object.\n</analysis>\n\n<dialogue>\n",
        foot="\n</dialogue>\n\n<probability>{p}</probability>",
    ),
    "planning in a list": _each(
        "**{r}:** {t}",
        between="\n\n",
        head="**Plan**\n1. The teacher opens.\n2. The student objects.\n3. They agree.\n\n**Dialogue**\n\n",
    ),
    "characters listed": _each(
        "{r}: {t}",
        names=("Ms. Lindqvist", "Tomas"),
        head="Characters:\n- Ms. Lindqvist (teacher)\n- Tomas (student)\n\n",
    ),
    "names with roles in bold heading": _each(
        "**{r}:** {t}",
        names=("Mrs. Adeyemi", "Lena"),
        between="\n\n",
        head="**Teacher:** Mrs. Adeyemi  \n**Student:** Lena\n\n---\n\n",
    ),
    "fence with language": _each("{r}: {t}", head="```dialogue\n", foot="\n```\n**Probability:** {p}"),
    "minutes of a meeting": _each(
        "{n}.  {r} – {t}",
        head="MINUTES\nPresent: one teacher, one student\n\n",
        foot="\n\nLikelihood that the student understood: {p}",
    ),
    "court transcript": _each("{N}    THE {R}: {t}", foot="\n\nProbability: {p}"),
    "podcast": _each("**[00:{m}] {r}:** {t}", between="\n\n", foot="\n\n*Probability: {p}*"),
    "interview, em dash lists": _each("— {r}: {t}", foot="\n\nProbability — {p}"),
    "Mastodon": _each("{r} @{o}@school\n{t}\n", between="\n", foot="\nProbability: {p}"),
    "Signal export": _each(
        "From: {r}\nSent: 2024-05-01 09:{m}\n{t}", between="\n\n", foot="\n\nProbability: {p}"
    ),
    "SMS": _each("{r} ({c}): {t}", foot="\n\nProbability: {p}"),
    "key=value": _each("turn={n} role={o} text={t}", write=_dumps, foot="\nprobability={p}"),
    "Ruby hash": _each(
        "  {{ role: :{o}, text: {t} }},", write=_dumps, head="turns = [\n", foot="\n]\nprobability = {p}"
    ),
    "JSON speaker ids": _values(
        lambda r, t, i: {"speaker_id": i % 2, "speaker_role": r, "content": t},
        lambda v, p: _dumps({"turns": v, "probability": p}),
    ),
    "YAML numbered keys": _each(
        "  {n}:\n    {r}: {t}", write=_dumps, head="conversation:\n", foot="\nprobability: {p}"
    ),
    "YAML role says": _each("- who: {o}\n  says: >\n    {t}", foot="\nprobability: {p}"),
    "CSV semicolon header": _each(
        '{n};{o};"{t}"', plain=True, head="id;role;text\n", foot="\n\nprobability;{p}"
    ),
    "table with header bold cells": _each(
        "| **{n}** | *{r}* | “{t}” |",
        head="| Turn | Speaker | Utterance |\n|:-:|:--|:--|\n",
        foot="\n\n**Probability of understanding:** {p}",
    ),
    "grid table": _each("+----+\n| {r} | {t} |", foot="\n+----+\n\nProbability: {p}"),
    "HTML ul strong em": _each(
        "<li><strong>{r}</strong> <em>{t}</em></li>",
        write=escape,
        head="<ul>\n",
        foot="\n</ul>\n<p>Probability: {p}</p>",
    ),
    "XML speaker element with id": _each(
        '<speech id="s{n}"><who>{r}</who><what>{t}</what></speech>',
        write=escape,
        head="<scene>\n",
        foot="\n</scene>\n<probability>{p}</probability>",
    ),
    "XML Teacher_Turn": _each(
        "<{r}_{n}>\n{t}\n</{r}_{n}>", write=escape, foot="\n<Probability>{p}</Probability>"
    ),
    "headings with emoji numbers": _each(
        "#### {n}️⃣ {r}\n{t}", between="\n\n", foot="\n\n#### 📈 Probability\n{p}"
    ),
    "bold role in brackets": _each("**[{r}]** {t}", between="\n\n", foot="\n\n**[Probability]** {p}"),
    "dialogue after slash": _each("//{r}: {t}", foot="\n//Probability: {p}"),
    "pipes around": _each("|{r}| {t}", foot="\n|Probability| {p}"),
    "tilde heading": _each("~~~ {r} ~~~\n{t}", between="\n\n", foot="\n\n~~~ Probability ~~~\n{p}"),
    "replied by, prose": _each('The {o} {v}, "{t}"', between="\n\n", plain=True),
    "prose, names first": _each("{r} {v}: “{t}”", between="\n\n"),
    "novel, he said tag before": _each("“{t}” {v} the {o}.", between="\n\n", foot="\n\nProbability: {p}"),
    "initials dot": _each("{r} {t}", names=("T.", "S."), between="\n"),
    "tch/std": _each("{r}: {t}", names=("TCH", "STD"), head="TCH = Teacher, STD = Student\n\n"),
    "A/B with legend list": _each("{r}: {t}", names=("A", "B"), head="- A: Teacher\n- B: Student\n\n"),
    "names, legend in brackets": _each(
        "{r}: {t}", names=("Ines", "Paul"), head="*Ines is the teacher, Paul is the student.*\n\n"
    ),
    "Portuguese numbered": _each(
        "{n}. {r}: {t}", names=("Professora", "Aluno"), foot="\n\nProbabilidade de compreensão: {pc}"
    ),
    "Vietnamese bold": _each(
        "**{r}:** {t}", names=("Giáo viên", "Học sinh"), between="\n\n", foot="\n\n**Xác suất:** {p}"
    ),
    "Turkish heading": _each(
        "## {r}\n{t}", names=("Öğretmen", "Öğrenci"), between="\n\n", foot="\n\n## Olasılık\n{p}"
    ),
    "Ukrainian dash": _each("— {r}: {t}", names=("Вчитель", "Учень"), foot="\n\nЙмовірність: {p}"),
    "p in prose end": _each(
        "{r}: {t}",
        foot="\n\nIn summary, I estimate that the student has understood the topic with a probability of about {p}.",
    ),
    "p ratio": _each("{r}: {t}", foot="\n\nUnderstanding: {pn} out of 100"),
    "p yaml foot": _each("{r}: {t}", foot="\n\n---\nprobability_understood: {p}\n---"),
    "p json foot": _each("{r}: {t}", foot='\n\n{{"probability": {p}}}'),
    "p json fenced foot": _each("{r}: {t}", foot='\n\n```json\n{{"probability": {p}}}\n```'),
    "acts numbered roman": _in_parts("{r}: {t}", 6, "ACT {n}: THE LESSON"),
    "stage business between": _in_parts("**{r}:** {t}", 5, "*Scene {n}: later that day*"),
    "numbered with hash headings and colon": _each("# {n}: {r}\n{t}", between="\n\n"),
    "quote blocks then name": _each("> {t}\n— {r}", between="\n\n", plain=True),
    "right-aligned name after text": _each("{t} [{r}]", between="\n"),
    "text then role in brackets": _each("{t} ({r})", between="\n\n"),
    "speech verbs German": _each(
        "Der {r} sagt: „{t}“",
        names=("Lehrer", "Schüler"),
        between="\n\n",
        foot="\n\nWahrscheinlichkeit: {p}",
        plain=True,
    ),
    "German inverted": _each(
        "„{t}“, sagte der {r}.",
        names=("Lehrer", "Schüler"),
        between="\n\n",
        foot="\n\nWahrscheinlichkeit: {p}",
        plain=True,
    ),
    "WhatsApp dots": _each("[01.05.24, 09:{m}:00] ~ {r}: {t}"),
    "Slack markdown": _each("*{r}*  `9:{m}`\n>{t}", between="\n"),
    "Skype": _each("[{n}/5/2024 9:{m} AM] {r} : {t}"),
    "ticket comments": _each("Comment {n} — {r} (2024-05-01 09:{m})\n\n{t}", between="\n\n---\n\n"),
    "git style": _each("Author: {r}\nDate: 2024-05-01 09:{m}\n\n    {t}", between="\n\n"),
    "man page": _each("{R}\n       {t}", between="\n\n", foot="\n\nPROBABILITY\n       {p}"),
    "jupyter": _each("In [{n}]: {r}\n{t}", between="\n\n"),
    "latex verse": _each("\\{o}{{{t}}}", foot="\n\\probability{{{p}}}"),
    "typst": _each("#turn[{r}][{t}]", foot="\n#probability[{p}]"),
    "RTF-like": _each("{{\\b {r}:}} {t}\\par", foot="\n{{\\b Probability:}} {p}\\par"),
    "markdown footnotes": _each("[^{n}]: **{r}** {t}"),
    "markdown links": _each("[{r}](#turn-{n}): {t}"),
    "checkbox numbers": _each("☐ {n}. {r}: {t}"),
    "stars as bullets with emoji role": _each("* 👨‍🏫 *{r}*: {t}", "* 👧 *{r}*: {t}"),
    "XML entity attributes single quotes": _each(
        "<turn by='{o}' n='{n}'>{t}</turn>", write=escape, head="<talk>\n", foot="\n</talk>\n<p>{p}</p>"
    ),
    "XML speaker sibling": _each(
        "<speaker>{r}</speaker>\n<line>{t}</line>", write=escape, foot="\n<probability>{p}</probability>"
    ),
    "JSON text blob": _values(
        lambda r, t, _: f"{r}: {t}", lambda v, p: _dumps({"conversation": "\n".join(v), "probability": p})
    ),
    "YAML dialogue string": _each("  {r}: {t}", head="dialogue: |\n", foot="\nprobability: {p}"),
    "Speaker A with roles in list": _each(
        "A: {t}", "B: {t}", head="Participants:\nA (teacher)\nB (student)\n\n"
    ),
    "Speaker ids with legend at the end": _each(
        "S1: {t}", "S2: {t}", foot="\n\nS1 is the teacher and S2 is the student.\nProbability: {p}"
    ),
    "log lines": _each(
        "2024-05-01 09:{m}:00 INFO {o} - {t}", foot="\n2024-05-01 10:00:00 INFO probability - {p}"
    ),
    "log brackets level": _each("[INFO] [{o}] {t}", foot="\n[INFO] [probability] {p}"),
    "Go struct": _each(
        '\t{{Role: "{o}", Text: {t}}},',
        write=_dumps,
        head="var turns = []Turn{{\n".replace("{{", "{"),
        foot="\n}}\nvar probability = {p}",
    ),
    "JSON dict of dicts": _values(
        lambda r, t, i: (f"message_{i + 1}", {"sender": r.lower(), "body": t}),
        lambda v, p: _dumps({"messages": dict(v), "p_understood": p}),
    ),
    "JSON teacher says pairs": _values(
        lambda _r, t, _: t,
        lambda v, p: _dumps(
            {
                "rounds": [
                    {"round": k + 1, "teacher_says": a, "student_says": b}
                    for k, (a, b) in enumerate(zip(v[::2], v[1::2], strict=True))
                ],
                "probability": p,
            }
        ),
    ),
    "p roughly words": _each("{r}: {t}", foot="\n\nRoughly {pn}% likely that the student understood."),
    "p boxed": _each("{r}: {t}", foot="\n\n$\\boxed{{{p}}}$"),
    "Line app": _each(
        "09:{m}\t{r}\t{t}", head="[LINE] Chat history\nSaved on: 2026/11/02\n\n2026/11/02(Mon)\n"
    ),
    "zoom chat": _each("09:{m}:12 From {r} to Everyone:\n\t{t}"),
    "otter": _each(
        "{r}  00:{m}  \n{t}",
        between="\n\n",
        head="Lesson\nMon, Nov 2, 2026 9:00AM • 12:03\n\nSUMMARY KEYWORDS\nlesson, question\n\nSPEAKERS\nTeacher, Student\n\n",
    ),
    "VTT speaker colon": _each(
        "{n}\n00:{m}:01.000 --> 00:{m}:04.000\n{r}: {t}", between="\n\n", head="WEBVTT\n\n"
    ),
    "comic script": _each("PANEL {n}\n{R}: {t}", between="\n\n"),
    "visual novel": _each('{o} "{t}"', plain=True),
    "she said after, em dash": _each("—{t} —{v} the {o}.", between="\n\n"),
    "answered the student, in the middle": _each("“{t}” — {r}", between="\n\n"),
    "asks in passive": _each("{r} ({v}): “{t}”", between="\n"),
    "Then the teacher": _each("Then the {o} {v}: “{t}”", between="\n"),
    "HTML aside": _each(
        '<section class="turn"><h4>{r}</h4><blockquote>{t}</blockquote></section>',
        write=escape,
        foot="\n<footer>Probability: {p}</footer>",
    ),
    "HTML chat bubbles": _each(
        '<div class="bubble {o}-side"><span>{r}</span><p>{t}</p></div>',
        write=escape,
        foot='\n<div class="probability">Probability: {p}</div>',
    ),
    "GitHub alerts": _each("> [!NOTE]\n> **{r}:** {t}", between="\n\n"),
    "admonitions": _each('!!! note "{r}"\n    {t}', between="\n\n"),
    "RST directive": _each(".. {o}::\n\n   {t}", between="\n\n", foot="\n\n.. probability:: {p}"),
    "troff": _each(".TP\n.B {r}\n{t}", foot="\n.SH PROBABILITY\n{p}"),
    "TTML": _each(
        '<p begin="{n}s" end="{n}.9s" ttm:agent="{o}">{t}</p>',
        write=escape,
        head="<body><div>\n",
        foot="\n</div></body>\nProbability: {p}",
    ),
    "JSON speakers and texts": _values(
        lambda _r, t, _: t,
        lambda v, p: _dumps({"speakers": ["teacher", "student"] * 8, "texts": v, "probability": p}),
    ),
    "JSON OpenAI assistant user": _values(
        lambda r, t, _: {"role": "assistant" if r == "Teacher" else "user", "name": r.lower(), "content": t},
        lambda v, p: _dumps({"messages": v, "probability": p}, indent=2),
    ),
    "JSON5 unquoted": _each(
        "  {{ role: '{o}', text: {t} }},",
        write=_dumps,
        head="{\n conversation: [\n",
        foot="\n ],\n probability: {p}\n}}",
    ),
    "Prolog": _each("said({n}, {o}, {t}).", write=_dumps, foot="\nprobability({p})."),
    "S-expr plist": _each("(:role {o} :text {t})", write=_dumps, head="(\n", foot="\n)\n(:probability {p})"),
    "protobuf text": _each("turn {{\n  role: {R}\n  text: {t}\n}}", write=_dumps, foot="\nprobability: {p}"),
    "env": _each("TURN_{n}_{R}={t}", write=_dumps, foot="\nPROBABILITY={p}"),
    "logfmt": _each("ts=09:{m} speaker={o} msg={t}", write=_dumps, foot="\nprobability={p}"),
    "CSV pipe quoted": _each(
        '"{n}"|"{r}"|"{t}"', plain=True, head='"n"|"who"|"text"\n', foot='\n\n"probability"|"{p}"'
    ),
    "CSV text first": _each('"{t}",{r}', plain=True, head="text,speaker\n", foot="\n\nProbability: {p}"),
    "table text first": _each("| {t} | {r} |", head="| Text | Speaker |\n|---|---|\n"),
    "SQL full": _each(
        "INSERT INTO turns (n, role, text) VALUES ({n}, '{o}', '{t}');",
        write=lambda s: s.replace("'", "''"),
        foot="\n\nProbability: {p}",
    ),
    "deposition": _each("{r}.  {t}", names=("Q", "A"), head="BY THE TEACHER (Q) TO THE STUDENT (A)\n\n"),
    "ASCII arrows in": _each("{r} <- {t}", foot="\nProbability <- {p}"),
    "dots leader": _each("{r} ..... {t}", foot="\nProbability ..... {p}"),
    "double slash number": _each("{n}// {R} // {t}"),
    "name in the middle of table w index letters": _each(
        "| {L} | **{r}** says | {t} |", head="| | | |\n|-|-|-|\n"
    ),
    "bold both": _each("**{r}: {t}**", between="\n\n", foot="\n\n**Probability: {p}**"),
    "italics all": _each("*{r}: {t}*", between="\n\n", foot="\n\n*Probability: {p}*"),
    "emoji alone": _each(
        "{r} {t}", names=("👩‍🏫", "🧑‍🎓"), head="👩‍🏫 = Teacher, 🧑‍🎓 = Student\n\n", between="\n"
    ),
    "Chinese bold own line": _each(
        "**{r}**\n{t}", names=("老师", "学生"), between="\n\n", foot="\n\n**概率**：{p}"
    ),
    "French dialogue dash verbs": _each(
        "— {t}, dit le {o}.", names=("professeur", "élève"), foot="\n\nProbabilité : {p}"
    ),
    "mixed headings then prose frames": _in_parts("**{r}** said:\n\n> {t}", 4, "## Section {n}"),
    "json in fences per turn": _each('```json\n{{"{o}": {t}}}\n```', write=_dumps, between="\n"),
    "first person blocks": _each("[{r} speaking]\n{t}\n[/{r} speaking]", between="\n"),
    "start end": _each("BEGIN {R}\n{t}\nEND {R}", between="\n", foot="\nPROBABILITY {p}"),
    "kv with dashes": _each(
        "speaker: {r}\nemotion: calm\nutterance: {t}\n---", between="\n", foot="\nprobability: {p}"
    ),
}


def _closed(percent: int) -> str:
    """Return a percentage in words, tens and units apart."""
    tens = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
    units = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    teens = (
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    )
    if 10 < percent < 20:
        return teens[percent - 11]
    return "-".join(filter(None, (tens[percent // 10], units[percent % 10])))


def _with_words(layout: Layout) -> Layout:
    """Return a layout whose probability is in words: `%words%` in its text becomes `seventy-two`."""

    def write(number: int) -> str:
        percent = round(float(lesson(number)[2]) * 100)
        return layout(number).replace("%words%", _closed(percent))

    return write


def _in_front(form: str, layout: Layout) -> Layout:
    """Return a layout with its probability before everything else: {p}, {pc} and {pn} as in a foot."""

    def write(number: int) -> str:
        probability = lesson(number)[2]
        percent = round(float(probability) * 100)
        return form.format(p=probability, pc=f"{percent}%", pn=percent) + layout(number)

    return write


def _in_the_middle(form: str, layout: Layout, *, mark: str) -> Layout:
    """Return a layout with its probability before the turn that begins with this mark."""

    def write(number: int) -> str:
        before, found, after = layout(number).partition(mark)
        probability = lesson(number)[2]
        percent = round(float(probability) * 100)
        return before + form.format(p=probability, pc=f"{percent}%", pn=percent) + found + after

    return write


def _grouped(make: Callable[[list[Any]], Any], wrap: Callable[[list[Any], float], Any]) -> Layout:
    """Return a layout in JSON: a value for four turns, each as [role, text]."""
    return _values(
        lambda role, text, _: [role, text],
        lambda v, p: wrap([make(v[i : i + 4]) for i in range(0, TURNS, 4)], p),
    )


# Written on 2026-11-29, before the reader was changed for them.
UNMET: dict[str, Layout] = {
    "minutes with times in front and agenda": _each(
        "10:{m}  {r}: {t}",
        head="MINUTES\nDate: 3 March 2027\nPresent: the teacher, the student\nApologies: none\n\n1. Discussion\n\n",
        foot="\n\n2. Outcome\n\nProbability that the student understood: {p}\n\nMeeting closed at 11:02.",
    ),
    "minutes, initials": _each(
        "{r}: {t}", names=("TE", "ST"), head="Participants: TE (teacher), ST (student)\n\n", foot="\n\nProbability: {pc}"
    ),
    "chat export with dashes and times": _each(
        "03/03/2027, 09:{m} - {r}: {t}",
        head="03/03/2027, 08:59 - Messages and calls are end-to-end encrypted.\n",
        foot="\n\nProbability of understanding: {pc}",
    ),
    "chat export, edited and read marks": _each("{r} ({c}): {t} ✓✓", between="\n\n"),
    "chat export, reply arrows": _each("{r} ↩ {x}\n{t}", between="\n\n", foot="\n\nProbability ≈ {p}"),
    "screenplay, parentheticals and slug lines": _each(
        "          {R}\n     (thinking)\n{t}", between="\n\n", head="INT. CLASSROOM – MORNING\n\n", foot="\n\nFADE OUT.\n\nProbability: {p}"
    ),
    "screenplay, continued": _each("{R} (CONT'D)\n    {t}", between="\n\n", foot="\n\nTHE END\n\nPROBABILITY: {p}"),
    "teleplay table of shots": _each("SHOT {n} | {R} | {t}", foot="\n\nPROBABILITY | {p}"),
    "markdown, horizontal bold bullets and sub-bullets": _each(
        "* **Turn {n}**\n    * *Speaker:* {r}\n    * *Line:* {t}", foot="\n\n* **Probability:** {p}"
    ),
    "markdown, headings with times": _each("### {r} · 00:{m}\n\n{t}", between="\n\n", head="# Session 4\n\n", foot="\n\n## Rating\n\n{p}"),
    "markdown, block quotes with the name behind": _each("> {t}\n>\n> — *{r}*", between="\n\n", foot="\n\n**Probability:** {p}"),
    "markdown, bold and line breaks": _each("**{r}**<br>{t}", between="\n\n", foot="\n\n**Probability**<br>{p}"),
    "markdown, keyboard": _each("<kbd>{r}</kbd> {t}", between="\n\n"),
    "JSON, sections of turns": _grouped(
        lambda some: {"section": "part", "turns": [{"who": role, "says": text} for role, text in some]},
        lambda v, p: _dumps({"lesson": {"title": "A lesson", "sections": v}, "assessment": {"probability": p}}, 2),
    ),
    "JSON, events with nested speaker and payload": _values(
        lambda role, text, i: {"event": "utterance", "seq": i, "actor": {"kind": role.lower(), "id": i % 2}, "payload": {"body": text}},
        lambda v, p: {"events": v, "outcome": {"understood": {"probability": p}}},
    ),
    "JSON, percent in words of a key": _values(
        lambda role, text, _: {"speaker": role, "line": text},
        lambda v, p: _dumps({"dialogue": v, "understanding": f"{round(p * 100)} percent"}, 1),
    ),
    "JSON, one object per exchange with numbers": _values(
        lambda role, text, i: (f"{role.lower()}_{i // 2 + 1}", text),
        lambda v, p: _dumps({"exchanges": {f"exchange_{i // 2 + 1}": dict(v[i : i + 2]) for i in range(0, TURNS, 2)}, "probability": p}),
    ),
    "TOML, tables by number": _each(
        '[turns.{n}]\nspeaker = "{o}"\nline = {t}', between="\n\n", foot="\n\n[assessment]\nprobability = {p}", write=_dumps
    ),
    "TOML, arrays of pairs": _each('  ["{o}", {t}],', head="turns = [\n", foot="\n]\nprobability = {p}", write=_dumps),
    "CSV, all quoted, four columns": _each(
        '"{n}","00:{m}","{r}","{t}"', head='"no","time","speaker","utterance"\n', foot='\n"","","probability","{p}"',
        write=lambda text: text.replace('"', '""'),
    ),
    "CSV, tabs and quotes": _each('{n}\t"{r}"\t"{t}"', head="no\tspeaker\ttext\n", write=lambda text: text.replace('"', '""')),
    "HTML, classes on articles": _each(
        '<article class="msg msg--{o}"><header>{r}</header><div class="body">{t}</div></article>',
        head='<section class="chat">\n', foot='\n</section>\n<footer>Probability: {p}</footer>', write=escape,
    ),
    "HTML, a figure and captions": _each(
        "<figure><blockquote>{t}</blockquote><figcaption>{r}</figcaption></figure>", foot="\n<p>Probability: {pc}</p>", write=escape
    ),
    "HTML, data attributes": _each(
        '<li data-speaker="{o}" data-turn="{n}"><span>{t}</span></li>', head="<ol>\n",
        foot='\n</ol>\n<data value="{p}">probability</data>', write=escape,
    ),
    "LaTeX, commands for roles": _each("\\{o}{{{t}}}", head="\\begin{dialogue}\n", foot="\n\\end{{dialogue}}\n\\probability{{{p}}}"),
    "LaTeX, small capitals": _each("\\textsc{{{r}}}: {t}\\\\", foot="\n\n\\textsc{{Probability}}: {p}"),
    "org-mode, drawers": _each(
        "** {r}\n:PROPERTIES:\n:TURN: {n}\n:END:\n{t}", head="* Conversation\n", foot="\n* Probability\n{p}"
    ),
    "org-mode, descriptions": _each("- {r} :: {t}", head="#+title: Lesson\n\n", foot="\n- Probability :: {p}"),
    "scenes with numbers": _in_parts("{r}: {t}", 4, "Scene {n}: Back at the desk"),
    "scenes with settings in brackets": _in_parts("{r}: {t}", 4, "[Scene {n}. The same room, later.]"),
    "initials, full stops, no legend": _each("{r}. {t}", names=("T", "S"), between="\n\n", foot="\n\nProb.: {p}"),
    "initials in brackets, times": _each("[{r} 00:{m}] {t}", names=("T", "S"), foot="\n\nProbability: {p}"),
    "times from and to": _each("[00:{m}.0 - 00:{m}.9] {r}: {t}", foot="\n\nProbability: {p}"),
    "an introduction, closing remarks, a fraction": _each(
        "**{r}**: {t}", between="\n\n",
        head="Sure — here is the lesson you asked for. I kept both voices apart.\n\n---\n\n",
        foot="\n\n---\n\nMy estimate of the probability that the student understood: {pn}/100.\n\nTell me if you want it longer or shorter!",
    ),
    "probability in front, a percentage": _in_front(
        "**Estimated probability of understanding:** {pc}\n\n", _each("**{r}:** {t}", between="\n\n", foot="\n")
    ),
    "probability in front, in a sentence": _in_front(
        "There is a {pc} chance that the student understood.\n\nConversation:\n\n", _each("{r}: {t}", foot="\n")
    ),
    "probability in words behind": _with_words(
        _each("{r}: {t}", foot="\n\nProbability that the student understood: %words% percent.")
    ),
    "probability in a note in the middle": _in_the_middle(
        "[Probability: {p}]\n", _each("{r} ({n}): {t}", foot="\n"), mark="Teacher (9)"
    ),
    "turn, slash, role in small letters": _each("{n}/16 {o} — {t}", between="\n\n", foot="\n\nprobability — {p}"),
    "roles right of a tab and a number": _each("{n}\t{r}\t{t}", head="Lesson log (exported)\n\n", foot="\n\nEnd of log. Probability: {p}"),
}  # fmt: skip

# Twenty more, written after the reader had read those.
LATER: dict[str, Layout] = {
    "minutes, bullets with times and verbs": _each(
        "- *10:{m}* – **{r}** noted: {t}",
        head="# Minutes of the lesson\n\n**Attendees:** Teacher, Student\n\n",
        foot="\n\n**Decision:** probability of understanding {pc}",
    ),
    "HTML, exported messages": _each(
        '<div class="message"><div class="from_name">{r}</div><div class="text">{t}</div></div>',
        foot="\n<div>Probability: {p}</div>",
        write=escape,
    ),
    "screenplay behind tabs": _each(
        "\t\t\t{R}\n\t\t{t}",
        between="\n\n",
        head="FADE IN:\n\nINT. CLASSROOM - DAY\n\n",
        foot="\n\nFADE OUT.\n\nProbability of understanding: {p}",
    ),
    "markdown, numbered quotations": _each(
        '{n}. **{r}**: "{t}"', between="\n\n", plain=True, foot="\n\n> Probability: **{p}**"
    ),
    "markdown, call-outs": _each(
        "> [!quote] {r}\n> {t}", between="\n\n", foot="\n\n> [!info] Probability\n> {p}"
    ),
    "JSON, objects in parts": _grouped(
        lambda some: {
            "exchange": [{"speaker": {"role": r.lower(), "name": "X"}, "said": {"text": t}} for r, t in some]
        },
        lambda v, p: _dumps(
            {"data": {"conversation": {"parts": v}, "eval": {"probability_student_understood": p}}}, 2
        ),
    ),
    "JSON, letters with a legend": _values(
        lambda role, text, _: {"r": role[0], "t": text},
        lambda v, p: {"legend": {"T": "Teacher", "S": "Student"}, "turns": v, "probability": p},
    ),
    "TOML, triple quotes": _each(
        '[[conversation.turns]]\nspeaker = "{r}"\nutterance = """{t}"""',
        between="\n\n",
        foot="\n\n[conversation]\nprobability = {p}",
    ),
    "CSV, semicolons and quotes": _each(
        '"{n}";"{r}";"{t}"',
        head='"id";"who";"what"\n',
        write=lambda t: t.replace('"', '""'),
        foot='\n"";"probability";"{p}"',
    ),
    "HTML, definitions with classes": _each(
        '<dt class="who {o}">{r}:</dt>\n<dd class="what">{t}</dd>',
        head="<dl class='chat'>\n",
        foot="\n</dl>\n<p class='prob'>Probability: {p}</p>",
        write=escape,
    ),
    "LaTeX, environments for turns": _each(
        "\\begin{{turn}}{{{r}}}\n{t}\n\\end{{turn}}", foot="\n\\probability{{{p}}}"
    ),
    "org-mode, tables": _each(
        "| {n} | {r} | {t} |",
        head="#+TITLE: Lesson\n| # | who | what |\n|---+-----+------|\n",
        foot="\n\n#+PROBABILITY: {p}",
    ),
    "scenes with dashes": _in_parts("{r}: {t}", 4, "SCENE {n}.—A classroom."),
    "initials before slashes, legend": _each(
        "{r}/ {t}", names=("T", "S"), head="T/ = teacher, S/ = student\n\n"
    ),
    "date stamps and tabs": _each(
        "2027-01-31 10:{m}:00\t{r}\t{t}", foot="\n2027-01-31 11:00:00\tprobability\t{p}"
    ),
    "probability in front, a heading": _in_front(
        "## Probability: {pc}\n\n## Conversation\n\n", _each("**{r}** {t}", between="\n\n", foot="\n")
    ),
    "probability in a sentence of an estimate": _each(
        "{r}: {t}", foot="\n\nI would put the probability that the student understood at {pc}."
    ),
    "probability in the title": _in_front(
        "# A lesson (probability of understanding: {p})\n\n", _each("{r} — {t}", between="\n\n", foot="\n")
    ),
    "YAML, flow with numbers": _each(
        "  - {{speaker: {r}, n: {n}, said: {t}}}",
        head="conversation:\n",
        foot="\nprobability: {p}",
        write=_dumps,
    ),
    "closing remarks with an offer": _each(
        "**{r}:** {t}",
        between="\n\n",
        head="Certainly! Here's the conversation:\n\n",
        foot="\n\n---\n**Likelihood the student understood:** {pc}\n\nIf you'd like, I can adjust the tone, or make the student more curious.",
    ),
}

UNSEEN |= UNMET | LATER
