"""More layouts of the lesson in `bench.replies`: a model's choice when the prompt sets no layout."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from bench.replies import END, LAYOUTS, TURNS, lesson

Layout = Callable[[int], str]
Names = tuple[str, str]
_ROMAN = (
    "i",
    "ii",
    "iii",
    "iv",
    "v",
    "vi",
    "vii",
    "viii",
    "ix",
    "x",
    "xi",
    "xii",
    "xiii",
    "xiv",
    "xv",
    "xvi",
)
NAMES: Names = ("Teacher", "Student")


def _each(
    form: str,
    *,
    between: str = "\n",
    head: str = "",
    foot: str = "\n\nProbability: {p}",
    names: Names = NAMES,
    end: str = END,
    plain: bool = False,
    write: Callable[[str], str] = str,
) -> Layout:
    """Return a layout in which every turn is written in one form.

    {r} is its role, {R} in capitals, {o} in lower case, {n} its number, {t} its text; {x} the other role, {m}
    the number in two digits, {l} as a letter, {i} Roman, {c} in a circle. `plain`: without quotation marks in
    the texts.
    """

    def layout(number: int) -> str:
        _, turns, probability = lesson(number)
        said = [text.replace('"', "'") if plain else text for _, text in turns]
        said[-1] = f"{said[-1]} {end}"
        lines = [
            form.format(
                r=name,
                R=name.upper(),
                o=name.lower(),
                x=names[1 - i % 2],
                n=i + 1,
                m=f"{i:02d}",
                t=write(text),
                l=chr(97 + i),
                i=_ROMAN[i],
                c=chr(0x2460 + i),
            )
            for i, (name, text) in enumerate(zip(names * (TURNS // 2), said, strict=True))
        ]
        return head + between.join(lines) + foot.format(p=probability)

    return layout


def _values(make: Callable[[str, str, int], object], wrap: Callable[[list[object], float], str]) -> Layout:
    """Return a layout in JSON: a value for each turn, and the object around their list."""

    def layout(number: int) -> str:
        _, turns, probability = lesson(number)
        values = [
            make(role, f"{text} {END}" if i == TURNS - 1 else text, i) for i, (role, text) in enumerate(turns)
        ]
        return wrap(values, float(probability))

    return layout


def _paragraphs(text: str) -> str:
    middle = text.find(" ", len(text) // 2)
    return text if middle < 0 else f"{text[:middle]}\n\n{text[middle + 1 :]}"


def _pairs(values: Sequence[object], probability: float) -> str:
    pairs = [{"teacher": a, "student": b} for a, b in zip(values[::2], values[1::2], strict=True)]
    return json.dumps({"exchanges": pairs, "probability": probability}, ensure_ascii=False)


_INTRODUCTION = "Of course! Below you find a simulated conversation in which the student slowly warms up to the subject.\n\n"
_FAREWELL = "\n\nProbability: {p}\n\nI hope this helps! Let me know if you would like another one."
_TABLE = "| Speaker | Text |\n|---|---|\n"
_XML_FOOT = "\n</conversation>\n<probability>{p}</probability>"
_HTML_FOOT = "\n<p><b>Probability:</b> {p}</p>"

# Layouts that were once read ten times more slowly than those of `bench.replies`, or not at all.
LISTED: dict[str, Layout] = {
    "[CONVERSATION] blocks, numbered capitals": _each(
        "{n}. {R}: {t}", head="[CONVERSATION]\n", foot="\n[/CONVERSATION]\n\n[PROBABILITY]\n{p}\n[/PROBABILITY]\n"
    ),
    "capitals": _each("{R}: {t}", foot="\n\nPROBABILITY: {p}"),
    "bold headings with rules": _each("**{r}**\n\n{t}", between="\n\n---\n\n", foot="\n\n---\n\n**Probability:** {p}"),
    "an introduction and a farewell": _each("{r}: {t}", head=_INTRODUCTION, foot=_FAREWELL),
    "table": _each("| {r} | {t} |", head=_TABLE),
    "quoted lines": _each("> **{r}:** {t}", between="\n>\n", foot="\n\n**Probability:** {p}"),
    "role on its own line": _each("{r}\n{t}", between="\n\n"),
    "two paragraphs per turn": _each("{r}: {t}", between="\n\n", write=_paragraphs),
    "a heading, quoted turns, a heading": _each(
        '{r}: "{t}"', between="\n\n", head="## Conversation\n\n", foot="\n\n## Probability\n\n{p}", plain=True
    ),
    "XML turns": _each(
        '  <turn role="{o}">{t}</turn>', head="<conversation>\n", foot=_XML_FOOT, write=escape
    ),
    "XML roles": _each("<{o}>{t}</{o}>", head="<conversation>\n", foot=_XML_FOOT, write=escape),
    "HTML bold": _each("<b>{r}:</b> {t}<br>", foot="\n<b>Probability:</b> {p}"),
    "YAML": _each(
        "  - role: {o}\n    text: {t}", head="conversation:\n", foot="\nprobability: {p}\n",
        write=lambda text: json.dumps(text, ensure_ascii=False),
    ),
    "The teacher": _each('The {o}: "{t}"', plain=True),
}  # fmt: skip

OWN: dict[str, Layout] = {
    "headings": _each("### {r}\n\n{t}", between="\n\n", foot="\n\n### Probability\n\n{p}"),
    "numbered headings": _each("### Turn {n}: {r}\n{t}", between="\n\n", head="# Conversation\n\n"),
    "turn headings above labels": _each("**Turn {n}**\n{r}: {t}", between="\n\n"),
    "rules and turn headings": _each("### Turn {n}\n\n**{r}:** {t}", between="\n\n---\n\n"),
    "underlined names": _each("{r}\n-------\n{t}", between="\n\n"),
    "time stamps": _each("[10:{m}] {r}: {t}"),
    "long time stamps": _each("[2024-05-01 10:{m}:00] {r}: {t}"),
    "dashes": _each("{r} — {t}"),
    "square brackets": _each("[{r}] {t}", between="\n\n"),
    "round brackets": _each("({r}) {t}"),
    "angle brackets": _each("<{r}> {t}"),
    "arrows": _each("{r} -> {t}"),
    "screenplay": _each("                {R}\n    {t}", between="\n\n"),
    "states of mind": _each("{r} (thoughtful): {t}"),
    "people": _each("{r}: {t}", names=("Ms. Rivera (Teacher)", "Kim (Student)")),
    "other words": _each("{r}: {t}", names=("Tutor", "Pupil")),
    "other words in bold": _each("**{r}:** {t}", between="\n\n", names=("Instructor", "Learner")),
    "initials": _each("{r}: {t}", names=("T", "S")),
    "emoji": _each("{r}: {t}", names=("👩‍🏫 **Teacher**", "🧑‍🎓 **Student**"), between="\n\n"),
    "bullets with stars": _each("* **{r}**: {t}"),
    "numbered bold": _each("{n}. **{r}:** {t}", head="**Conversation**\n\n", foot="\n\n**Probability:** {p}"),
    "numbered, role on its own line": _each("{n}. **{r}**\n   {t}"),
    "says": _each('{r} says: "{t}"', plain=True),
    "said": _each('The {o} said, "{t}"', between="\n\n", plain=True),
    "single quotes": _each("{r}: '{t}'", plain=True),
    "curly quotes": _each("{r}: “{t}”", plain=True),
    "guillemets": _each("{r}: «{t}»"),
    "list with commas": _each('"{r}: {t}",', head="[\n", foot="\n]\nProbability: {p}", plain=True),
    "fenced lines": _each("{r}: {t}", head="Here it is:\n\n```text\n", foot="\n```\n\nProbability: {p}"),
    "indented": _each("    {r}: {t}", head="Transcript\n\n"),
    "table with numbers": _each(
        "| {n} | **{r}** | {t} |", head="| # | Speaker | Text |\n|---|---|---|\n", foot="\n\n**Probability:** {p}"
    ),
    "German": _each("{r}: {t}", names=("Lehrerin", "Schüler"), foot="\n\nWahrscheinlichkeit: {p}", end="[Ende des Gesprächs]"),
    "Spanish in bold": _each("**{r}:** {t}", names=("Profesora", "Alumno"), foot="\n\n**Probabilidad:** {p}"),
    "French": _each("{r} : « {t} »", names=("Professeur", "Élève"), foot="\n\nProbabilité : {p}"),
    "Chinese": _each("{r}：{t}", names=("老师", "学生"), foot="\n\n概率：{p}", end="【对话结束】"),
    "Russian": _each("**{r}:** {t}", names=("Учитель", "Ученик"), foot="\n\nВероятность: {p}"),
    "JSON, other keys": _values(
        lambda role, text, i: {"turn": i + 1, "speaker": role.lower(), "utterance": text},
        lambda v, p: json.dumps({"dialogue": v, "metadata": {"likelihood": p}}, ensure_ascii=False, indent=2),
    ),
    "JSON, roles as keys": _values(
        lambda role, text, _: {role: text},
        lambda v, p: f"Here is the JSON:\n\n```json\n{json.dumps({'turns': v, 'probability': f'{p:.0%}'}, indent=2)}\n```\n",
    ),
    "JSON, pairs": _values(lambda _role, text, _: text, _pairs),
    "JSON, strings": _values(
        lambda role, text, _: f"{role}: {text}", lambda v, p: f"{json.dumps(v, indent=1)}\nProbability: {p}"
    ),
    "JSON lines": _values(
        lambda role, text, _: {"role": role, "content": text},
        lambda v, p: "\n".join([*map(json.dumps, v), json.dumps({"probability": p})]),
    ),
    "JSON with a comma too many": _values(
        lambda role, text, _: {"role": role, "text": text},
        lambda v, p: json.dumps({"conversation": v, "probability": p}, indent=1)[:-2] + ",\n}",
    ),
    "Python tuples": _values(
        lambda role, text, _: f"    ({role!r}, {text!r}),",
        lambda v, p: "conversation = [\n" + "\n".join(map(str, v)) + f"\n]\nprobability = {p}",
    ),
    "CSV": _each('{o},"{t}"', head="role,text\n", write=lambda text: text.replace('"', '""')),
    "tabs": _each("{r}\t{t}"),
    "pipes": _each("{r} | {t}"),
    "YAML, roles as keys": _each("- {o}: {t}", foot="\nprobability: {p}", write=json.dumps),
    "YAML, blocks": _each("- speaker: {r}\n  text: |\n    {t}", head="turns:\n", foot="\nprobability: {p}"),
    "TOML": _each('[[turn]]\nrole = "{o}"\ntext = {t}', between="\n\n", foot="\n\n[result]\nprobability = {p}", write=json.dumps),
    "keys and values": _each("Speaker: {r}\nText: {t}", between="\n\n"),
    "HTML paragraphs": _each(
        "<p><strong>{r}:</strong> {t}</p>", head="<h2>Conversation</h2>\n", foot=_HTML_FOOT, write=escape
    ),
    "HTML list": _each(
        "  <li><b>{r}</b>: {t}</li>", head="<ul>\n", foot="\n</ul>\n<p>Probability: {p}</p>", write=escape
    ),
    "HTML table": _each(
        "<tr><td>{r}</td><td>{t}</td></tr>", head="<table>\n", foot="\n</table>" + _HTML_FOOT, write=escape
    ),
    "HTML definitions": _each("<dt>{r}</dt>\n<dd>{t}</dd>", head="<dl>\n", foot="\n</dl>" + _HTML_FOOT, write=escape),
    "HTML classes": _each('<div class="turn {o}">{t}</div>', foot=_HTML_FOOT, write=escape),
    "XML on several lines": _each(
        "<message>\n  <speaker>{r}</speaker>\n  <text>{t}</text>\n</message>", head="<conversation>\n", foot=_XML_FOOT,
        write=escape,
    ),
    "XML with names": _each(
        '<turn speaker="Ms. Rivera" role="{o}" n="{n}">\n{t}\n</turn>', head="<dialogue>\n", foot="\n</dialogue>\n<probability>{p}</probability>",
        write=escape,
    ),
    "BBCode": _each("[b]{r}:[/b] {t}", between="\n\n", foot="\n\n[b]Probability:[/b] {p}"),
    "chat template": _each("<|im_start|>{o}\n{t}<|im_end|>"),
    "LaTeX": _each("\\textbf{{{r}:}} {t}", between="\n\n", foot="\n\n\\textbf{{Probability:}} {p}"),
    "LaTeX items": _each("\\item[{r}] {t}", head="\\begin{description}\n", foot="\n\\end{{description}}\n\nProbability: {p}"),
    "definition list": _each("{r}:: {t}"),
    "thinking, then bold names": lambda number: f"<think>\nLet me plan it.\nTeacher: ...\n</think>\n\n{LAYOUTS['bold names'](number)}",
    "a title and a setting": _each(
        "**{r}:** {t}", between="\n\n",
        head="# A Lesson\n\n**Setting:** a classroom, early in the morning.\n\n---\n\n", foot="\n\n---\n\n**Probability of understanding:** {p}\n\n*Note: this is a simulation.*",
    ),
    "an explanation behind it": _each(
        "{r}: {t}", foot="\n\nProbability: {p}\n\nExplanation: The teacher explained well, and the student asked questions."
    ),
    "a sentence for the probability": _each(
        "{r}: {t}", foot="\n\nThe probability that the student understood the material is {p}."
    ),
}  # fmt: skip

_PEOPLE = ("Ms. Okafor", "Jonas")

# Layouts that no part of the reader was written for.
INVENTED: dict[str, Layout] = {
    "colon, then its own line": _each("{r}:\n{t}", between="\n\n"),
    "bold role, blank line, indented": _each("**{r}**:\n\n    {t}", between="\n\n"),
    "roles in capitals in square brackets": _each("[{R}]\n{t}", between="\n\n", foot="\n\n[PROBABILITY]\n{p}"),
    "hashes around roles": _each("## {r} ##\n{t}", between="\n\n", foot="\n\n## Probability ##\n{p}"),
    "role, number, own line": _each("{r} #{n}\n{t}", between="\n\n"),
    "numbers in brackets": _each("({n}) {r}: {t}"),
    "turn numbers with a slash": _each("Turn {n}/16 | {r}: {t}"),
    "time in round brackets": _each("(09:{m}) {r}: {t}", head="Lesson transcript, recorded in the morning.\n\n"),
    "quotation of roles": _each('"{r}": "{t}"', plain=True),
    "doubled colons and quotes": _each('{r} :: "{t}"', plain=True),
    "arrows before roles": _each(">>> {r}: {t}", between="\n\n"),
    "stars around all": _each("*** {r}: {t}", between="\n***\n"),
    "a plus list": _each("+ {r}: {t}", head="Dialogue:\n\n"),
    "a check list": _each("- [x] **{r}**: {t}"),
    "letters as a list": _each("{n}) {r} - {t}", head="Conversation\n------------\n"),
    "role in italics with a dash": _each("*{r}* – {t}", between="\n\n"),
    "underscores": _each("__{r}__: {t}", between="\n\n", foot="\n\n__Probability__: {p}"),
    "backticks": _each("`{r}`: {t}", between="\n"),
    "three columns": _each("| Turn {n} | {r} | {t} |", head="| Turn | Who | What |\n|:--|:--|:--|\n"),
    "a table without bars at its ends": _each("{r} | {t}", head="Speaker | Text\n--- | ---\n"),
    "semicolons": _each("{o};{t}", head="speaker;text\n", write=lambda text: f'"{text.replace(chr(34), chr(39))}"'),
    "INI": _each("[{o}]\ntext = {t}", between="\n\n", foot="\n\n[result]\nprobability = {p}"),
    "YAML, quoted blocks": _each(
        "  - speaker: {o}\n    utterance: >-\n      {t}", head="dialogue:\n", foot="\nprobability: {p}\n"
    ),
    "YAML, one line": _each("- {{role: {o}, text: {t}}}", foot="\nprobability: {p}\n", write=json.dumps),
    "XML, upper case": _each(
        "<{R}>{t}</{R}>", head="<DIALOGUE>\n", foot="\n</DIALOGUE>\n<PROBABILITY>{p}</PROBABILITY>", write=escape
    ),
    "XML, one line each, numbered": _each(
        '<line id="{n}" who="{r}">{t}</line>', head="<scene>\n", foot="\n</scene>\n<probability>{p}</probability>",
        write=escape,
    ),
    "HTML, headings": _each(
        "<h3>{r}</h3>\n<p>{t}</p>", head="<h1>Lesson</h1>\n", foot=_HTML_FOOT, write=escape
    ),
    "HTML, spans": _each(
        '<p><span class="who">{r}:</span> <span class="said">{t}</span></p>', foot=_HTML_FOOT, write=escape
    ),
    "JSON, arrays": _values(
        lambda role, text, _: [role, text],
        lambda v, p: json.dumps({"conversation": v, "probability": p}, ensure_ascii=False),
    ),
    "JSON, roles in capitals": _values(
        lambda role, text, i: {"id": i + 1, "from": role.upper(), "message": text, "emotion": "calm"},
        lambda v, p: json.dumps({"result": {"messages": v, "probability_understood": p}}, indent=4),
    ),
    "Llama template": _each(
        "<|start_header_id|>{o}<|end_header_id|>\n\n{t}<|eot_id|>", between="", foot="\n\nProbability: {p}"
    ),
    "wiki": _each("'''{r}:''' {t}", between="\n\n", foot="\n\n'''Probability:''' {p}"),
    "Org mode": _each("* {r}\n  {t}", head="#+TITLE: Lesson\n\n", foot="\n\n* Probability\n  {p}"),
    "a theatre play": _each("{R}. {t}", between="\n\n"),
    "people declared": _each(
        "{r}: {t}", names=_PEOPLE, head="Teacher: Ms. Okafor\nStudent: Jonas\n\n", between="\n"
    ),
    "Dutch": _each("{r}: {t}", names=("Docent", "Leerling"), foot="\n\nWaarschijnlijkheid: {p}"),
    "Italian, own line": _each(
        "**{r}**\n{t}", names=("Insegnante", "Studente"), between="\n\n", foot="\n\n**Probabilità:** {p}"
    ),
    "Japanese": _each("{r}：「{t}」", names=("先生", "生徒"), foot="\n\n確率：{p}", end="（会話終了）", plain=True),
    "Turkish": _each("- {r}: {t}", names=("Öğretmen", "Öğrenci"), foot="\n\nOlasılık: {p}"),
    "Der Lehrer sagt": _each('Der {r}: "{t}"', names=("Lehrer", "Schüler"), foot="\n\nWahrscheinlichkeit: {p}", plain=True),
}  # fmt: skip

# Layouts that a reader without any of INVENTED's misread or could not read.
FURTHER: dict[str, Layout] = {
    "the separator is an arrow": _each("{r} ➜ {t}", foot="\nProbability ➜ {p}"),
    "guillemets around roles": _each("«{r}» {t}"),
    "two angles": _each("{r} >> {t}", foot="\nProbability >> {p}"),
    "assignments": _each('{r} = "{t}"', foot="\nProbability = {p}", plain=True),
    "a tilde": _each("{r} ~ {t}", foot="\nProbability ~ {p}"),
    "a clock behind roles": _each("{r} 10:{m}\n{t}", between="\n\n"),
    "a clock, a comma, a colon": _each("{r}, 10:{m} AM:\n{t}", between="\n\n"),
    "two blanks and a clock": _each("{r}  9:{m} pm\n{t}", between="\n\n"),
    "roles to each other": _each("{r} to the {x}: {t}"),
    "steps": _each("**Step {n} — {r} speaks:** {t}", between="\n\n", foot="\n\n**Probability:** {p}"),
    "letters in brackets": _each("({l}) {r}: {t}"),
    "Roman numbers": _each("{i}. {r}: {t}"),
    "circled numbers": _each("{c} {r}: {t}"),
    "values with semicolons": _each("{n};{r};{t}", foot="\nProbability;{p}"),
    "values with commas": _each('"{r}","{t}"', head="speaker,text\n", foot="\n\nprobability,{p}", plain=True),
    "tab-separated probability": _each("{r}\t{t}", foot="\nprobability\t{p}"),
    "all in brackets": _each("[{r} #{n}] {t}", foot="\n[Probability] {p}"),
    "roles with a full stop": _each("{R}. {t}", foot="\nPROBABILITY. {p}"),
    "all in angles": _each("<{r}: {t}>", foot="\n<Probability: {p}>"),
    "quoted below a heading": _each("#### {r}\n> {t}", between="\n\n", foot="\n\n#### Probability\n> {p}"),
    "wiki definitions": _each("; {r}\n: {t}", foot="\n\nProbability: {p}"),
    "a wiki table": _each("|-\n| {r} || {t}", head="{|\n", foot="\n|}}\nProbability: {p}"),
    "INI sections of turns": _each(
        "[turn{n}]\nspeaker = {r}\ntext = {t}", between="\n\n", foot="\n\n[result]\nprobability = {p}"
    ),
    "all speech in italics": _each("**{r}** — *{t}*", between="\n\n", foot="\n\n**Probability** — {p}"),
    "brackets that close": _each("[{R}]{t}[/{R}]", foot="\n[PROBABILITY]{p}[/PROBABILITY]"),
    "HTML, a dash behind bold": _each("<p><strong>{r}</strong> – {t}</p>", foot=_HTML_FOOT, write=escape),
    "HTML, definitions": _each("<dl>\n<dt>{r}</dt><dd>{t}</dd>", foot="</dl>\nProbability: {p}", write=escape),
    "HTML, classes": _each(
        '<div class="m"><span class="name">{r}</span><span class="text">{t}</span></div>',
        foot='\n<div class="probability">{p}</div>', write=escape,
    ),
    "XML, TEI": _each(
        '<sp who="#{o}"><speaker>{r}</speaker><p>{t}</p></sp>', foot="\nProbability: {p}", write=escape
    ),
    "XML, CDATA": _each(
        '<turn speaker="{r}"><![CDATA[{t}]]></turn>', head="<lesson>\n", foot="\n</lesson>\n<probability>{p}</probability>"
    ),
    "XML, a bare number behind it": _each('<say speaker="{r}" n="{n}">{t}</say>', foot="\n<p>{p}</p>", write=escape),
    "XML, escaped": lambda number: escape(LISTED["XML roles"](number)),
    "LaTeX, a description": _each(
        "\\item[{r}] {t}", head="\\begin{description}\n", foot="\n\\end{{description}}\nProbability: {p}"
    ),
    "LaTeX, a dialogue": _each(
        "\\speak{{{r}}} {t}", head="\\begin{dialogue}\n", foot="\n\\end{{dialogue}}\nProbability: {p}"
    ),
    "subtitles": _each("{n}\n00:00:{m},000 --> 00:00:{m},900\n{r}: {t}", between="\n\n"),
    "subtitles with voices": _each("00:{m}.000 --> 00:{m}.900\n<v {r}>{t}", head="WEBVTT\n\n", between="\n\n"),
    "JSON, contents in parts": _values(
        lambda role, text, _: {"role": role.lower(), "content": [{"type": "text", "text": text}]},
        lambda v, p: json.dumps({"messages": v, "probability": p}),
    ),
    "JSON, objects in turns": _values(
        lambda role, text, _: {"speaker": {"role": role}, "utterance": {"text": text}},
        lambda v, p: json.dumps({"result": {"dialog": {"turns": v}, "probability_of_understanding": p}}),
    ),
    "JSON, a list of lines": _values(
        lambda role, text, _: f"{role}: {text}", lambda v, p: json.dumps([*v, f"Probability: {p}"])
    ),
    "YAML, lists of texts": _each(
        "- {r}:\n    - {t}", head="dialogue:\n", foot="\nprobability: {p}", write=json.dumps
    ),
    "a table of four columns": _each(
        "| {n} | {r} | {t} | calm |", head="| Turn | Role | Text | Mood |\n|--|--|--|--|\n"
    ),
    "arrows to each other": _each("{r} → {x}: {t}"),
    "ISO times": _each("[2027-01-31T10:{m}:00Z] {r}: {t}"),
    "a clock before all": _each("10:{m} {r}: {t}", foot="\n11:00 Probability: {p}"),
    "black brackets": _each("【{r}】{t}", foot="\n【Probability】{p}"),
    "corner brackets around speech": _each("{r}「{t}」"),
    "a raya": _each("{r}: — {t}", foot="\nProbability: — {p}"),
    "roles and their turns": _each("{r}'s turn: {t}"),
    "identifiers": _each("{R}_TURN_{n}: {t}"),
    "a full stop and a dash": _each("{R}.—{t}", between="\n\n", foot="\n\nPROBABILITY.—{p}"),
    "AsciiDoc": _each("|{r} |{t}", head="|===\n|Speaker |Text\n", foot="\n|===\nProbability: {p}"),
    "a formula for the probability": _each("{r}: {t}", foot="\n$$P(\\text{{understood}}) = {p}$$"),
    "line breaks of HTML alone": _each("{r}: {t}", between="<br/>", foot="<br/>Probability: {p}"),
    "line breaks written out": _each("{r}: {t}", between="\\n", foot="\\nProbability: {p}"),
    "JSON, a sender": _values(
        lambda role, text, i: {"id": str(i), "sender": role, "content": text},
        lambda v, p: json.dumps([*v, {"probability": p}]),
    ),
    "JSON, types": _values(
        lambda role, text, _: {"type": role.lower(), "mood": "calm", "text": text},
        lambda v, p: json.dumps([*v, {"probability": p}]),
    ),
    "JSON, unknown keys": _values(
        lambda role, text, _: {"voice": role, "passage": text},
        lambda v, p: json.dumps({"output": {"dialogue_history": v, "understanding_probability": str(p)}}),
    ),
    "JSON, turns under numbers": _values(
        lambda role, text, _: {"role": role, "text": text},
        lambda v, p: json.dumps({**{f"turn_{i + 1}": one for i, one in enumerate(v)}, "probability": p}),
    ),
    "JavaScript": _values(
        lambda role, text, _: f"  {{ role: '{role}', text: {json.dumps(text)} }}",
        lambda v, p: "const conversation = [\n" + ",\n".join(map(str, v)) + f"\n];\nconst probability = {p};",
    ),
}  # fmt: skip
