"""Layouts of chats, programs, tables and markup, written before the reader was changed or read for them."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape, quoteattr

from bench.reply_layouts import Layout
from bench.unseen_layouts import _dumps, _each, _values

_NAMES = ("Ms. Lee", "Tom")
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n<conversation>\n'


def _quoted(text: str) -> str:
    """Return a cell of CSV, between quotation marks only where it needs them."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _columns(role: str, text: str, _: int) -> tuple[str, str]:
    return role, text


def _pairs(between: str, *, write: str = "{}") -> Layout:
    """Return a layout in which a row has what each speaker says."""
    return _values(
        lambda _r, text, _: write.format(text.replace('"', '""') if write != "{}" else text),
        lambda said, p: (
            between.join(
                ["Teacher,Student" if write != "{}" else "| Turn | Teacher | Student |\n|:-:|:--|:--|"]
                + [
                    f"{one},{other}" if write != "{}" else f"| {number} | {one} | {other} |"
                    for number, (one, other) in enumerate(zip(said[::2], said[1::2], strict=True), 1)
                ]
            )
            + f"\n\nProbability: {p}"
        ),
    )


ASKED: dict[str, Layout] = {
    # chats
    "names before roles, a time, the text below": _each("Ms. Lee (Teacher)  9:{m} AM\n{t}", "Tom (Student)  9:{m} AM\n{t}"),
    "IRC with times, a starred probability": _each("[09:{m}] <{o}> {t}", foot="\n[09:40] * probability: {p}"),
    "key-value log": _each("ts=09:{m} role={o} msg={t}", write=_dumps, foot="\nts=09:40 probability={p}"),
    "subtitles with voices that close": _each(
        "00:{m}.000 --> 00:{m}.900\n<v {r}>{t}</v>", head="WEBVTT\n\n", between="\n\n", foot="\n\nNOTE\nProbability: {p}", write=escape
    ),
    "CHILDES": _each("*TEA:\t{t}", "*STU:\t{t}", head="@Begin\n@Participants:\tTEA Teacher, STU Student\n", foot="\n@End\n\nProbability: {p}"),
    # names
    "a name, a comma, the role": _each("Ms. Lee, Teacher: {t}", "Tom, Student: {t}"),
    "a role, a dash, a name": _each("Teacher - Ms. Lee: {t}", "Student - Tom: {t}"),
    "a role in brackets, a name": _each("[Teacher] Ms. Lee: {t}", "[Student] Tom: {t}", foot="\n\n[Probability] {p}"),
    "a role and a name": _each("Teacher Ms. Lee: {t}", "Student Tom: {t}"),
    "names that a sentence explains": _each("{r}: {t}", names=_NAMES, head="Ms. Lee is the teacher, Tom is the student.\n\n"),
    "names and ages at the head": _each("{r}: {t}", names=_NAMES, head="Setting: a classroom\nTeacher: Ms. Lee, 42\nStudent: Tom, 15\n\n"),
    "TCH/STU": _each("{r}: {t}", names=("TCH", "STU"), foot="\n\nPROB: {p}"),
    # marks
    "links as labels": _each("[{r}](#turn-{n}): {t}", foot="\n\n[Probability](#end): {p}"),
    "sequence diagram": _each("    {r}->>{x}: {t}", head="```mermaid\nsequenceDiagram\n", foot="\n```\n\nProbability: {p}"),
    "AsciiDoc, line breaks": _each("*{r}*: {t} +", foot="\n\n*Probability*: {p}"),
    "Yarn script": _each("{r}: {t} #line:{m}", head="title: Lesson\n---\n", foot="\n===\nProbability: {p}"),
    "an emotion in italics after the name": _each("**{r}** _calm_: {t}", "**{r}** _bored_: {t}", foot="\n\n**Probability**: {p}"),
    "capitals, a direction in italics": _each("**{R}** *(calm)* {t}", "**{R}** *(bored)* {t}", between="\n\n", foot="\n\n**PROBABILITY** {p}"),
    "pictures before bold names, no colon": _each("👩‍🏫 **{r}** 💬 {t}", "👦 **{r}** 💬 {t}", foot="\n\n🎯 **Probability** {p}"),
    "a number, a bar, a role": _each("{m} | {R} | {t}", foot="\n17 | PROBABILITY | {p}"),
    "numbered exchanges, lettered turns": _each("{k}. Exchange {k}\n   a. {r}: {t}", "   b. {r}: {t}", foot="\n9. Probability: {p}"),
    "notes about the student below each exchange": _each("{r}: {t}", "{r}: {t}\n[Understanding so far: {n}%]\n"),
    "roles in columns": _each("{n:>2}  {r:<10}{t}"),
    # one line
    "one line, double bars": _each("{r}: {t}", between=" || ", foot=" || Probability: {p}"),
    "one line, slashes": _each("{r}: {t}", between=" / ", foot=" / Probability: {p}"),
    "one line, bold": _each("**{r}:** {t}", between=" ", foot=" **Probability:** {p}"),
    "one line, brackets": _each("[{r}] {t}", between=" ", foot=" [Probability] {p}"),
    # tables
    "table, a column for each speaker and one for numbers": _pairs("\n"),
    "CSV, a column for each speaker": _pairs("\n", write='"{}"'),
    "CSV, quoted where needed": _each("{n},{r},{t}", head="turn,speaker,text\n", write=_quoted),
    "CSV, moods, words quoted": _each('{n},"{r}","calm","{t}"', head='"turn","speaker","mood","text"\n', plain=True),
    "a box of lines": _each("│ {r} │ {t:<150} │", foot="\n\nProbability: {pc}"),
    # markup
    "HTML, custom elements": _each("<{o}-turn>{t}</{o}-turn>", write=escape, foot="\n<understanding-probability>{p}</understanding-probability>"),
    "HTML, a fold for each turn": _each("<details><summary>Turn {n} ({r})</summary>{t}</details>", write=escape),
    "HTML, a meter": _each("<p><strong>{r}</strong>: {t}</p>", write=escape, foot='\n<p>Probability: <meter value="{p}">{pc}</meter></p>'),
    "XML, capitals inside of names": _each("  <{r}Turn>{t}</{r}Turn>", head="<Dialogue>\n", write=escape, foot="\n</Dialogue>\n<ProbabilityUnderstood>{p}</ProbabilityUnderstood>"),
    "XML, the text as an attribute": _each('  <turn role="{o}" text={t}/>', head=_XML, write=quoteattr, foot='\n  <result probability="{p}"/>\n</conversation>'),
    "XML, a probability in an empty element": _each('  <turn role="{r}">{t}</turn>', head=_XML, write=escape, foot='\n  <understanding prob="{p}"/>\n</conversation>'),
    "property list": _each(
        "<dict><key>role</key><string>{r}</string><key>text</key><string>{t}</string></dict>", write=escape,
        head="<array>\n", foot="\n</array>\n<key>probability</key><real>{p}</real>",
    ),
    "BBCode, quotations": _each("[quote={r}]{t}[/quote]", foot="\n[b]Probability:[/b] {p}"),
    "LaTeX, quotation marks": _each("\\item \\textit{{{r}}}: ``{t}''", head="\\begin{itemize}\n", plain=True, foot="\n\\end{{itemize}}\nProbability: \\boxed{{{p}}}"),
    # programs
    "print with the label in the text": _each('print("{r}: {t}")', plain=True, foot='\nprint("Probability: {p}")'),
    "Java": _each('conversation.add(new Turn(Role.{R}, {t}));', write=_dumps, foot="\ndouble probability = {p};"),
    "JavaScript, pushed": _each('conversation.push({{role: "{r}", text: {t}}});', write=_dumps, foot="\nlet probability = {p};"),
    "R, rows": _each('  "{r}", {t},', head="tribble(\n  ~speaker, ~text,\n", write=_dumps, foot="\n)\nprobability <- {p}"),
    "Scala": _each('  "{r}" -> {t},', head="val conversation = Seq(\n", write=_dumps, foot="\n)\nval probability = {p}"),
    "HCL": _each('turn "{n}" {{\n  speaker = "{o}"\n  text    = {t}\n}}', between="\n\n", write=_dumps, foot="\n\nprobability = {p}"),
    "Haskell, constructors": _each("[ {r} {t}", *["  , {r} {t}"] * 15, names=("Teacher", "Student"), head="conversation =\n  ", write=_dumps, foot="\n  ]\nprobability = {p}"),
    # JSON
    "JSON, says in capitals inside of keys": _values(
        _columns, lambda v, p: _dumps({"exchanges": [{"teacherSays": t[1], "studentSays": s[1]} for t, s in zip(v[::2], v[1::2], strict=True)], "probability": p}, 2)
    ),
    "JSON, names of persons in objects": _values(
        lambda r, t, _: {"speaker": _NAMES[r == "Student"], "text": t},
        lambda v, p: _dumps({"teacher": {"name": "Ms. Lee"}, "student": {"name": "Tom"}, "dialogue": v, "probability": p}, 2),
    ),
    "JSON, parts of content": _values(
        lambda r, t, _: {"author": {"role": r.lower(), "name": _NAMES[r == "Student"]}, "content": {"type": "text", "parts": [t]}},
        lambda v, p: _dumps({"messages": v, "probability": p}, 2),
    ),
    "JSON, columns by number": _values(
        _columns, lambda v, p: json.dumps({"speaker": {i: r for i, (r, _) in enumerate(v)}, "text": {i: t for i, (_, t) in enumerate(v)}}, ensure_ascii=False) + f"\nProbability: {p}"
    ),
    # languages
    "Swahili": _each("{r}: {t}", names=("Mwalimu", "Mwanafunzi"), foot="\n\nUwezekano: {p}"),
    "Persian": _each("{r}: {t}", names=("معلم", "دانش‌آموز"), foot="\n\nاحتمال: {p}"),
    "Thai": _each("{r}: {t}", names=("ครู", "นักเรียน"), foot="\n\nความน่าจะเป็น: {p}"),
    "Tamil": _each("{r}: {t}", names=("ஆசிரியர்", "மாணவர்"), foot="\n\nநிகழ்தகவு: {p}"),
    "Russian, dashes": _each("{r} — {t}", names=("Учительница", "Ученица"), foot="\n\nВероятность — {pc}"),
    # probabilities
    "probability as a score of one": _each("{r}: {t}", foot="\n\nUnderstanding score: {p}/1"),
    "probability of what the student has": _each("{r}: {t}", foot="\n\nStudent's understanding: {pc}"),
    "an outcome with its probability": _each("{r}: {t}", foot="\n\nOutcome: the student understood with probability {p}"),
}  # fmt: skip
