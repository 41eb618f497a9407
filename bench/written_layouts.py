"""Layouts written on 2026-11-29, before the reader was changed or read for them.

Many have words that change from turn to turn or from reply to reply: moods, times, topics, people. Some have
texts of their own (`SCRIPTS`): other languages, turns of several lines, other numbers of turns.
"""

from __future__ import annotations

import json
import random
import textwrap
from collections.abc import Callable, Sequence
from itertools import cycle
from xml.sax.saxutils import escape

from bench.replies import END, TURNS, Lesson, lesson
from bench.reply_layouts import NAMES, Layout, Names
from bench.unseen_layouts import _dumps, _each, _in_front, _values

# Maps a number to the turns as (role, text), and the probability.
Script = Callable[[int], tuple[Lesson, float | None]]

_FOOT = "\n\nProbability: {p}"
_MOODS = (
    "smiling",
    "thinking",
    "a bit confused",
    "excited",
    "nodding slowly",
    "frustrated",
    "patient",
    "curious",
    "relieved",
)
_TOPICS = (
    "photosynthesis",
    "the water cycle",
    "fractions",
    "the French Revolution",
    "gravity",
    "supply and demand",
    "verbs",
)
_REMARKS = (
    "The student asked good questions but stayed unsure about the details.",
    "There was some confusion at first, which the diagram resolved.",
    "The lesson was too fast for most of it.",
    "The student was bored, and then more engaged.",
)
_TITLES = ("A First Look", "Energy and Matter", "Why Things Change", "Small Steps", "Back to Basics")
_LEVELS = ("beginner", "intermediate", "advanced")
_PEOPLE = (("Ms. Rivera", "Leo"), ("Mr. Kim", "Ana"), ("Dr. Okafor", "Sam"))


def _lesson(number: int) -> tuple[Lesson, float | None]:
    _, turns, probability = lesson(number)
    return turns, float(probability)


def _talk(teacher: Sequence[str], student: Sequence[str]) -> Script:
    """Return a script of sixteen turns of these sentences."""

    def script(number: int) -> tuple[Lesson, float | None]:
        draw = random.Random(number)
        sentences = dict(zip(NAMES, (teacher, student), strict=True))
        turns = [(role, draw.choice(sentences[role])) for role in NAMES * (TURNS // 2)]
        return turns, _lesson(number)[1]

    return script


def _changed(change: Callable[[Lesson, random.Random], Lesson]) -> Script:
    """Return the lesson with changed turns."""

    def script(number: int) -> tuple[Lesson, float | None]:
        turns, probability = _lesson(number)
        return change(turns, random.Random(number)), probability

    return script


def _replaced(*pairs: tuple[str, str]) -> Script:
    """Return the lesson with other words."""

    def change(turns: Lesson, _draw: random.Random) -> Lesson:
        for old, new in pairs:
            turns = [(role, text.replace(old, new)) for role, text in turns]
        return turns

    return _changed(change)


def _continued(every: int, more: str) -> Script:
    """Return the lesson with more text in some turns: {t} is the text of the turn four later."""
    return _changed(
        lambda turns, _: [
            (role, text + more.format(t=turns[(i + 4) % TURNS][1])) if i % every == 0 else (role, text)
            for i, (role, text) in enumerate(turns)
        ]
    )


def _halved(joint: str, every: int = 1) -> Script:
    """Return the lesson with one or two line breaks in the middle of some turns."""

    def halve(text: str) -> str:
        words = text.split(" ")
        return joint.join((" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])))

    return _changed(
        lambda turns, _: [
            (role, halve(text) if i % every == 0 else text) for i, (role, text) in enumerate(turns)
        ]
    )


def _acted(*directions: str) -> Script:
    """Return the lesson with a stage direction in front of about half of the turns."""
    return _changed(
        lambda turns, draw: [
            (role, f"{draw.choice(directions)} {text}" if draw.random() < 0.5 else text)
            for role, text in turns
        ]
    )


def _rated(probability: Callable[[int], float | None]) -> Script:
    """Return the lesson with another probability."""
    return lambda number: (lesson(number)[1], probability(number))


def _drawn(
    *forms: str,
    between: str = "\n",
    head: str = "",
    foot: str = _FOOT,
    names: Sequence[Names] = (NAMES,),
    script: Script = _lesson,
    plain: bool = False,
    write: Callable[[str], str] = str,
    **choices: Sequence[str],
) -> Layout:
    """Return a layout in which turns are written in these forms, one after the other.

    {r} is the name, {R} in capitals, {o} in lower case, {w} the role, {n} the turn's number, {k} its pair's,
    {c} a clock, {t} the text. In the head and foot {T} and {S} are the names, {p} is the probability, {pc}
    its percentage, {pn} the same without a sign. Each of `choices` is drawn again for the head, every turn
    and the foot; the names once. `plain`: without quotation marks in the texts.
    """

    def layout(number: int) -> str:
        turns, probability = script(number)
        draw = random.Random(number)
        people = draw.choice(names)
        start = draw.randrange(10, 60)
        percent = round((probability or 0) * 100)
        known = {
            "T": people[0],
            "S": people[1],
            "p": f"{probability:g}" if probability else "",
            "pc": f"{percent}%",
            "pn": percent,
        }

        def fill(form: str, **values: object) -> str:
            return form.format(
                **known, **{what: draw.choice(words) for what, words in choices.items()}, **values
            )

        above = fill(head)
        lines = []
        for i, (form, (role, text)) in enumerate(zip(cycle(forms), turns, strict=False)):
            name, minute = people[i % 2], start + 2 * i
            said = write(text.replace('"', "'") if plain else text)
            lines.append(
                fill(form, r=name, R=name.upper(), o=name.lower(), w=role, n=i + 1, k=i // 2 + 1, t=said,
                     c=f"{9 + minute // 60:02d}:{minute % 60:02d}")
            )  # fmt: skip
        return above + between.join(lines) + fill(foot)

    return layout


def _joined(*layouts: Layout) -> Layout:
    return lambda number: "".join(layout(number) for layout in layouts)


def _cut_json(number: int) -> str:
    """Return JSON that ends within its last turn."""
    turns, probability = _lesson(number)
    text = _dumps({"probability": probability, "dialogue": [{role: said} for role, said in turns]}, 2)
    last = json.dumps(turns[-1][1], ensure_ascii=False)[1:]
    return text[: text.rindex(last) + 12].rstrip()


def _sections(number: int) -> str:
    """Return turns with rules between them, at other places in every reply."""
    turns, probability = _lesson(number)
    cut = set(random.Random(number).sample(range(1, TURNS), 3))
    lines = [("---\n\n" if i in cut else "") + f"**{role}:** {text}" for i, (role, text) in enumerate(turns)]
    return "\n\n".join(lines) + f"\n\n**Probability:** {probability}"


def _between_turns(number: int) -> str:
    """Return a reply with the probability in italics between the eighth turn and the ninth."""
    turns, probability = _lesson(number)
    lines = [f"**{role}:** {text}" for role, text in turns]
    lines.insert(TURNS // 2, f"\n*(Probability of understanding: {probability})*\n")
    return "\n".join(lines)


def _wrap(text: str) -> str:
    """Wrap a text into lines of at most 40 characters."""
    return textwrap.fill(text, 40, break_on_hyphens=False)


def _broken(joint: str, write: Callable[[str], str] = str) -> Callable[[str], str]:
    """Texts with something else in place of their line breaks."""
    return lambda text: write(text).replace("\n", joint)


def _draw(number: int, some: Sequence[str]) -> str:
    return random.Random(number).choice(some)


def _mood(number: int, i: int) -> str:
    return random.Random(100 * number + i).choice(_MOODS)


def _moody(make: Callable[[str, str, str], object], wrap: Callable[[list[object], float], object]) -> Layout:
    """Return a layout in JSON whose values have a mood that changes."""
    return lambda number: _values(lambda role, text, i: make(role, text, _mood(number, i)), wrap)(number)


_WORDS = (("fifty percent", 0.5), ("seventy-five percent", 0.75), ("twenty percent", 0.2))
_TEACHER_DE = ("Guten Tag, hast du das Kapitel über Brüche gelesen?", "Was ist ein Nenner?", "Richtig, und der Zähler steht oben.", "Wie addiert man zwei Brüche?", "Genau, erst der Hauptnenner.", "Was ist ein Halb plus ein Drittel?", "Sehr gut gemacht!", "Hast du noch Fragen?")  # fmt: skip
_STUDENT_DE = ("Ja, aber nicht alles verstanden.", "Die Zahl unten, glaube ich.", "Ach so, das hatte ich verwechselt.", "Man braucht denselben Nenner.", "Das ist das kleinste gemeinsame Vielfache, oder?", "Fünf Sechstel.", "Danke, das war leichter als gedacht.", "Nein, alles klar.")  # fmt: skip
_TEACHER_FR = ("Bonjour, as-tu révisé la leçon ?", "Quelle est la capitale de l'Italie ?", "Très bien, et celle du Pérou ?", "C'est exact.", "Connais-tu un fleuve de ce pays ?", "L'Amazone, bien sûr !", "Nous verrons la suite demain.", "As-tu une question ?")  # fmt: skip
_STUDENT_FR = ("Oui, un peu hier soir.", "Rome, je crois.", "Lima, non ?", "J'avais un doute.", "Euh... l'Amazone ?", "Il est très long.", "D'accord.", "Non, merci beaucoup.")  # fmt: skip
_TEACHER_RU = ("Здравствуй, ты прочитал параграф о вулканах?", "Что такое магма?", "Верно, а лава?", "Где находится Везувий?", "Правильно.", "Почему он опасен?", "Хорошо сказано.", "Есть вопросы?")  # fmt: skip
_STUDENT_RU = ("Да, но не всё понял.", "Расплавленная порода под землёй.", "Это магма на поверхности.", "В Италии, кажется.", "Я видел фотографии.", "Рядом живёт много людей.", "Спасибо.", "Нет, всё ясно.")  # fmt: skip
_TEACHER_JA = ("こんにちは、宿題は終わりましたか。", "水は何度で沸騰しますか。", "そうですね。では山の上ではどうでしょう。", "なぜだと思いますか。", "よく分かりましたね。", "例を挙げてみましょう。", "富士山では八十七度くらいです。", "質問はありますか。")  # fmt: skip
_STUDENT_JA = ("はい、終わりました。", "百度です。", "もっと低いと思います。", "気圧が低いからですか。", "ありがとうございます。", "富士山はどうですか。", "面白いです。", "いいえ、大丈夫です。")  # fmt: skip
_TEACHER_AR = ("مرحبا، هل قرأت الدرس؟", "ما عاصمة مصر؟", "أحسنت، وما أطول نهر فيها؟", "صحيح.", "أين يصب النيل؟", "ممتاز.", "سنكمل غدا.", "هل عندك سؤال؟")  # fmt: skip
_STUDENT_AR = ("نعم، قرأته أمس.", "القاهرة.", "نهر النيل.", "شكرا.", "في البحر المتوسط.", "كنت أشك في ذلك.", "حسنا.", "لا، شكرا لك.")  # fmt: skip
_TEACHER_ES = ("Hola, ¿hiciste la tarea de ayer?", "¿Qué es un verbo?", "Bien, dame un ejemplo.", "¿Y en pasado?", "Perfecto.", "¿Es regular o irregular?", "Exacto, muy bien.", "¿Tienes alguna duda?")  # fmt: skip
_STUDENT_ES = ("Sí, pero me costó.", "Una acción, creo.", "Correr.", "Corrí.", "Qué bueno.", "Regular, me parece.", "Gracias, profe.", "No, ninguna.")  # fmt: skip

# Of the layouts with texts or probabilities of their own; the others have those of `bench.replies.lesson`.
SCRIPTS: dict[str, Script] = {
    "German, low quotation marks": _talk(_TEACHER_DE, _STUDENT_DE),
    "French, bold, guillemets": _talk(_TEACHER_FR, _STUDENT_FR),
    "Russian, a dash before the text": _talk(_TEACHER_RU, _STUDENT_RU),
    "Japanese, corner brackets": _talk(_TEACHER_JA, _STUDENT_JA),
    "Arabic, texts in Arabic": _talk(_TEACHER_AR, _STUDENT_AR),
    "Spanish, numbers in brackets": _talk(_TEACHER_ES, _STUDENT_ES),
    "Korean, another word": _talk(
        ("안녕하세요, 숙제를 했나요?", "물은 몇 도에서 끓나요?", "좋아요.", "왜 그럴까요?"),
        ("네, 다 했어요.", "백 도예요.", "감사합니다.", "기압이 낮아서요?"),
    ),
    "Hindi, texts in Hindi": _talk(
        ("नमस्ते, क्या तुमने पाठ पढ़ा?", "पानी कितने डिग्री पर उबलता है?", "बहुत अच्छा।", "ऐसा क्यों होता है?"),
        ("हाँ, पढ़ लिया।", "सौ डिग्री पर।", "धन्यवाद।", "दबाव कम होने से?"),
    ),
    "Greek": _talk(
        ("Γεια σου, διάβασες το μάθημα;", "Τι είναι το κλάσμα;", "Πολύ καλά.", "Γιατί το λες αυτό;"),
        ("Ναι, χθες το βράδυ.", "Ένα μέρος του συνόλου.", "Ευχαριστώ.", "Δεν είμαι σίγουρος."),
    ),
    "Polish, bullets": _talk(
        ("Dzień dobry, czy przeczytałeś rozdział?", "Co to jest ułamek?", "Bardzo dobrze.", "Dlaczego tak myślisz?"),
        ("Tak, ale nie wszystko.", "Część całości.", "Dziękuję.", "Nie jestem pewien."),
    ),
    "Italian, an introduction": _talk(
        ("Ciao, hai letto il capitolo?", "Che cos'è una frazione?", "Molto bene.", "Perché dici così?"),
        ("Sì, ma non tutto.", "Una parte dell'intero.", "Grazie.", "Non sono sicuro."),
    ),
    "Chinese, narrow colons": _talk(
        ("你好,你读课文了吗?", "什么是分数?", "很好。", "你为什么这样想?"),
        ("读了,但是没有全懂。", "整体的一部分。", "谢谢老师。", "我不太确定。"),
    ),
    "Hebrew": _talk(
        ("שלום, קראת את הפרק?", "מה זה שבר?", "טוב מאוד.", "למה אתה חושב כך?"),
        ("כן, אבל לא הכול.", "חלק מהשלם.", "תודה.", "אני לא בטוח."),
    ),
    "Turkish, bold": _talk(
        ("Merhaba, bölümü okudun mu?", "Kesir nedir?", "Çok iyi.", "Neden böyle düşünüyorsun?"),
        ("Evet ama hepsini değil.", "Bütünün bir parçası.", "Teşekkürler.", "Emin değilim."),
    ),
    "two lines in every turn": _continued(1, "\n{t}"),
    "two paragraphs in some turns": _continued(3, "\n\n{t}"),
    "lists in turns": _continued(4, "\n- light\n- water\n- air"),
    "formulas in turns": _continued(5, " So $x^2 + 3 = 12$, right?"),
    "quoted words in turns": _replaced(("example", '"example"'), ("water", "“water”")),
    "brackets in turns": _replaced(("sugar", "sugar (glucose)"), ("diagram", "diagram (a sketch)")),
    "brackets in quoted turns": _replaced(("sugar", "sugar (glucose)"), ("minutes", "minutes (really)")),
    "roles in turns": _replaced(("Thanks", "Thanks, teacher"), ("Exactly", "Exactly, student")),
    "actions between stars": _acted("*smiles*", "*nods*", "*pauses*", "*laughs*"),
    "actions between stars, bold names": _acted("*smiles*", "*nods*", "*pauses*"),
    "actions in round brackets": _acted("(smiling)", "(after a pause)", "(confused)"),
    "actions in square brackets": _acted("[smiling]", "[after a pause]", "[confused]"),
    "six turns": lambda number: (_lesson(number)[0][:6], _lesson(number)[1]),
    "six to fourteen turns": lambda number: (_lesson(number)[0][: 6 + 2 * (number % 5)], _lesson(number)[1]),
    "JSON, cut short": lambda number: (_lesson(number)[0][:-1], _lesson(number)[1]),
    "cut short within the probability": _rated(lambda _: None),
    "probability, a fraction of twenty": _rated(lambda number: (number % 10 + 1) / 20),
    "probability, words behind": _rated(lambda number: _WORDS[number % 3][1]),
    "probability, words in front": _rated(lambda number: _WORDS[number % 3][1]),
    "probability, out of ten": _rated(lambda number: number % 10 / 10),
    # Written on 2026-11-30, of the layouts at the end.
    "e-mail bodies of two paragraphs": _halved("\n\n"),
    "HTML breaks in a table": _halved("\n", 2),
    "quote blocks of two lines": _halved("\n"),
    "JSON with escaped breaks": _halved("\n\n", 3),
    "numbered steps in a turn": _continued(5, "\n1. look at the light\n2. write down the time\n3. compare"),
    "XML, text in lines": _halved("\n", 2),
    "square directions, bold": _acted("[smiles]", "[writes on the board]", "[frowns]"),
    "italic actions": _acted("_smiles_", "_thinks for a moment_"),
    "German play with directions": _talk(_TEACHER_DE, _STUDENT_DE),
    "French table": _talk(_TEACHER_FR, _STUDENT_FR),
    "Spanish JSON": _talk(_TEACHER_ES, _STUDENT_ES),
    "Russian numbered": _talk(_TEACHER_RU, _STUDENT_RU),
    "Dutch, a summary below": _talk(("Goedemorgen, heb je het hoofdstuk gelezen?", "Wat is een breuk?", "Heel goed.", "Waarom denk je dat?", "Probeer het nog eens."), ("Ja, maar niet alles.", "Een deel van het geheel.", "Dank u wel.", "Ik weet het niet zeker.", "Zo dan?")),
    "Portuguese YAML": _talk(("Bom dia, leste o capítulo?", "O que é uma fração?", "Muito bem.", "Porque pensas assim?", "Tenta outra vez."), ("Sim, mas não tudo.", "Uma parte do todo.", "Obrigado.", "Não tenho a certeza.", "Assim?")),
    "Chinese, full-width": _talk(("你好，你读课文了吗？", "什么是分数？", "很好。", "你为什么这样想？", "再试一次。"), ("读了，但是没有全懂。", "整体的一部分。", "谢谢老师。", "我不太确定。", "这样吗？")),
    "Japanese, topic": _talk(("こんにちは、宿題は終わりましたか。", "水は何度で沸騰しますか。", "そうですね。", "なぜだと思いますか。"), ("はい、終わりました。", "百度です。", "もっと低いと思います。", "気圧が低いからですか。")),
    "quoted titles in turns": _changed(lambda turns, _: [(r, t.replace("this", 'this "thing"').replace("diagram", "“diagram”")) for r, t in turns]),
    "log with margin": _halved("\n"),
    "paragraphs in some turns": _halved("\n\n", 4),
    "JSON, single line breaks": _halved("\n", 5),
    "quoted, two lines": _changed(lambda turns, _: [(r, t.replace('"', "'")) for r, t in turns]),
    "sub-bullets in turns": _continued(4, "\n  - first\n  - second"),
    "wrapped, names in bold": _changed(lambda turns, _: [(r, _wrap(t)) for r, t in turns]),
    "brackets behind": _changed(lambda turns, draw: [(r, t + draw.choice((" [nods]", " [laughs]", "", ""))) for r, t in turns]),
    "Italian, moods": _talk(("Buongiorno, hai letto il capitolo?", "Che cos'è una frazione?", "Molto bene.", "Perché dici così?", "Prova ancora."), ("Sì, ma non tutto.", "Una parte dell'intero.", "Grazie.", "Non sono sicuro.", "Così?")),
    "Polish table": _talk(("Dzień dobry, czy przeczytałeś rozdział?", "Co to jest ułamek?", "Bardzo dobrze.", "Dlaczego tak myślisz?"), ("Tak, ale nie wszystko.", "Część całości.", "Dziękuję.", "Nie jestem pewien.")),
    "German YAML with a reason": _talk(_TEACHER_DE, _STUDENT_DE),
}  # fmt: skip


def find_expected(layout: str, number: int) -> tuple[Lesson, float | None]:
    """Return the turns as (role, text) and the probability of a reply in one of `WRITTEN`'s layouts."""
    return SCRIPTS.get(layout, _lesson)(number)


def _own(layout: str, *forms: str, **values: object) -> Layout:
    """Return `_drawn` with the layout's own script."""
    return _drawn(*forms, script=SCRIPTS[layout], **values)  # type: ignore[arg-type]


_LINES = _drawn("{r}: {t}", foot="")

WRITTEN: dict[str, Layout] = {
    # YAML
    "YAML, blocks in a fence, probability first": _in_front(
        "```yaml\nprobability: {p}\ndialogue:\n", _each("- {r}: |\n    {t}", foot="\n```")
    ),
    "YAML, folded, document marks": _each(
        "  - speaker: {r}\n    utterance: >-\n      {t}", head="---\nturns:\n", foot="\nunderstanding_probability: {pc}\n..."
    ),
    "YAML, a map of turns": _each(
        "  turn_{n}:\n    who: {r}\n    says: '{t}'", head="dialog:\n", foot="\n\nprobability: {p}", write=lambda text: text.replace("'", "''")
    ),
    "YAML, moods": _drawn(
        "  - speaker: {r}\n    emotion: {e}\n    text: {t}", head="conversation:\n", foot="\nprobability: {p}", write=_dumps, e=_MOODS
    ),
    "YAML, either quotation mark": _in_front(
        "probability: {p}\nconversation:\n",
        _each("- {o}: {t}", foot="\n", write=lambda text: _dumps(text) if "'" in text else f"'{text}'"),
    ),
    "YAML, a topic": _drawn(
        "  - {r}: {t}", head="topic: {topic}\nconversation:\n", foot="\nprobability: {p}", write=_dumps, topic=_TOPICS
    ),
    # JSON
    "JSON, pairs of role and text": _values(
        lambda role, text, _: [role, text], lambda v, p: f"{_dumps(v, 1)}\n\nProbability: {p}"
    ),
    "JSON lines with numbers": _values(
        lambda role, text, i: {"turn": i + 1, "speaker": role, "text": text},
        lambda v, p: "\n".join(map(_dumps, [*v, {"probability": p}])),
    ),
    "JSON, bare keys, cut short": _each(
        "    {{ speaker: '{r}', text: {t} }},", write=_dumps,
        head="Sure! Here is the JSON:\n```json\n{ conversation: [\n", foot="\n  ],\n  probability: {p}\n",
    ),
    "JSON, moods in turn": _values(
        lambda role, text, i: {"id": i, "role": role.upper(), "emotion": ("calm", "nervous", "happy")[i % 3], "message": text},
        lambda v, p: _dumps({"conversation": v, "final": {"probability_understood": p}}, 2),
    ),
    "JSON, a mood before the text": _moody(
        lambda role, text, mood: {"speaker": role, "emotion": mood, "text": text},
        lambda v, p: _dumps({"conversation": v, "probability": p}, 2),
    ),
    "JSON, a tone after the text": _moody(
        lambda role, text, mood: {"speaker": role, "text": text, "tone": mood},
        lambda v, p: {"conversation": v, "probability": p},
    ),
    "JSON, an object of lines": _values(
        lambda role, text, _: f"{role}: {text}", lambda v, p: _dumps({"conversation": v, "probability": p}, 2)
    ),
    "JSON, a fence and a percentage": _values(
        lambda role, text, _: {"role": role.lower(), "content": text},
        lambda v, p: f"```json\n{_dumps({'dialogue': v, 'probability': f'{p:.0%}'}, 4)}\n```",
    ),
    "JSON, a topic and a grade": lambda number: _values(
        lambda role, text, i: {"n": i + 1, "by": role, "said": text},
        lambda v, p: _dumps({"topic": _TOPICS[number % 7], "grade": number % 11 + 1, "turns": v, "probability": p}, 1),
    )(number),
    "JSON, times": lambda number: _values(
        lambda role, text, i: {"timestamp": f"2024-05-{number * (i + 3) % 27 + 1:02d}T10:{i:02d}:00Z", "speaker": role, "message": text},
        lambda v, p: [*v, {"probability": p}],
    )(number),
    "JSON, probability first, text before speaker": _values(
        lambda role, text, _: {"text": text, "speaker": role}, lambda v, p: _dumps({"probability": p, "conversation": v}, 2)
    ),
    "JSON, cut short": _cut_json,
    "Python dictionaries": _values(
        lambda role, text, _: {"role": role.lower(), "content": text}, lambda v, p: f"{v!r}\nProbability: {p}"
    ),
    # Markdown
    "bullets, moods in italics": _drawn(
        "- **{r}** _({e})_: {t}", head="## Dialogue\n\n", foot="\n\n**Probability of understanding:** {p}",
        e=("curious", "patient", "unsure", "cheerful"),
    ),
    "numbered, long dashes, a farewell": _each(
        "{n}. {r} — {t}", foot="\n\nProbability — {p}\n\nLet me know if you'd like another one!"
    ),
    "a table of two columns, and one for the probability": _each(
        "| {t} |", " {t} |\n", between="", head="| Teacher | Student |\n| --- | --- |\n", foot="\n| Probability |\n| --- |\n| {p} |\n"
    ),
    "headings with colons": _each("### {r}:\n{t}", between="\n\n", foot="\n\n### Probability:\n{p}"),
    "quoted, names in bold brackets, probability first": _in_front(
        "*Probability: {p}*\n\n", _each("> **[{r}]** {t}\n>", foot="\n\n---\n*End of conversation*")
    ),
    "nested bullets, also for the probability": _each("* {r}\n    * {t}", foot="\n* Probability\n    * {p}\n"),
    "exchanges in bold": _each("**Exchange {k}**\n\n{r}: {t}", "{r}: {t}", between="\n\n", foot="\n\n**Probability**: {p}"),
    "sections with titles": lambda number: (
        "\n\n".join(
            (f"## {('Introduction', 'Explanation', 'Practice', 'Closing')[i // 4]}\n\n" if i % 4 == 0 else "") + f"**{role}:** {text}"
            for i, (role, text) in enumerate(_lesson(number)[0])
        )
        + f"\n\n## Probability\n\n{_lesson(number)[1]}"
    ),
    "rules at other places": _sections,
    "a table of moods": _drawn("| {r} | {e} | {t} |", head="| Speaker | Emotion | Text |\n|---|---|---|\n", e=_MOODS),
    "details, a summary": _each(
        "{r}: {t}", between="\n\n", head="<details>\n<summary>Conversation</summary>\n\n", foot="\n\n</details>\n\nProbability: {p}"
    ),
    "Org mode, second level": _each("** {r}\n{t}", head="* Conversation\n", foot="\n* Probability\n{p}\n"),
    "underlined names and probability": _each(
        "{r}\n-------\n\n{t}", between="\n\n", foot="\n\nProbability\n-----------\n\n{p}\n"
    ),
    "turns with a hyphen": _each("Turn {n} - {r}: {t}"),
    "indented, also the probability": _each("    {r}: {t}", head="Conversation:\n", foot="\n\nProbability:\n    {p}"),
    # Markup
    "HTML, a class for the role, a bare number": _each(
        '<div class="turn {o}"><span class="name">{r}</span><span class="msg">{t}</span></div>', foot='\n<div class="prob">{p}</div>'
    ),
    "XML, probability as an attribute": _in_front(
        '<dialogue probability="{p}">\n', _each("  <say who='{o}' n='{n}'>{t}</say>", foot="\n</dialogue>")
    ),
    "XML, moods": _drawn(
        '  <turn speaker="{r}" emotion="{e}">{t}</turn>', head="<conversation>\n",
        foot="\n</conversation>\n<probability>{p}</probability>", e=_MOODS,
    ),
    "LaTeX, items with colons": _each(
        "  \\item[{r}:] {t}", head="\\begin{description}\n", foot="\n\\end{{description}}\n\n\\textbf{{Probability:}} ${p}$"
    ),
    "LaTeX, bold items": _each(
        "\\item \\textbf{{{r}:}} {t}", head="\\begin{itemize}\n", foot="\n\\end{{itemize}}\n\\textbf{{Probability:}} {p}"
    ),
    "subtitles with voices and a note": _each(
        "00:{m}:00.000 --> 00:{m}:30.000\n<v {r}>{t}", head="WEBVTT\n\n", between="\n\n", foot="\n\nNOTE Probability: {p}\n"
    ),
    # Templates of models
    "chat template, also for the probability": _each("<|im_start|>{o}\n{t}<|im_end|>", foot="\n<|im_start|>probability\n{p}<|im_end|>"),
    "instruction tags": _each(
        "[INST] {r}: {t} [/INST] ", "{r}: {t}</s>\n", between="", head="<s>", foot="Probability: {p}"
    ),
    "two turns in a line": _each("{R}: {t} ", "{R}: {t}</s>\n", between="", foot="PROBABILITY: {p}"),
    "turn tokens": _each("<start_of_turn>{o}\n{t}<end_of_turn>"),
    "role tokens, also for the probability": _each("<|{o}|>\n{t}<|end|>", foot="\n<|probability|>\n{p}<|end|>"),
    "a token at the end": _each("{r}: {t}", foot="\nProbability: {p}</s>"),
    # Plays, chats and prose
    "screenplay, moods below names": _drawn(
        "          {R}\n     ({e})\n   {t}", between="\n\n", head="INT. CLASSROOM - DAY\n\n",
        foot="\n\nFADE OUT.\n\nPROBABILITY: {p}", e=("smiling", "thinking", "nodding"),
    ),
    "moods below names": _drawn("{R}\n({e})\n{t}", between="\n\n", e=_MOODS),
    "play, moods in square brackets": _drawn(
        "{R}. [{e}] {t}", foot="\n\nProbability. {p}", e=("Smiles", "Looks up", "Pauses")
    ),
    "moods in round brackets": _drawn("{r} ({e}): {t}", e=_MOODS),
    "moods in round brackets, bold names": _drawn(
        "**{r}** ({e}): {t}", between="\n\n", foot="\n\n**Probability:** {p}", e=_MOODS
    ),
    "moods in square brackets, quotation marks": _drawn('{r} [{e}]: "{t}"', plain=True, e=_MOODS),
    "moods in italics before the text": _drawn(
        "**{r}:** *({e})* {t}", between="\n\n", foot="\n\n**Probability:** {p}", e=_MOODS
    ),
    "moods in some labels": _drawn("{r}{e}: {t}", e=("", " (smiling)", " (thoughtfully)")),
    "initials, an angle, a legend": _each(
        "{r}> {t}", names=("T", "S"), head="T = Teacher, S = Student\n\n", foot="\n\nP = {p}"
    ),
    "Q and A with roles": _each(
        "Q (Teacher): {t}\n", "A (Student): {t}\n\n", between="", foot="Probability: {pn} out of 100"
    ),
    "times to the second, also for the probability": _each("[00:{m}:15] {r}: {t}", foot="\n[00:25:00] Probability: {p}"),
    "a clock in brackets below": _each("{r} (10:{m} AM)\n{t}", between="\n\n", foot="\n\nProbability (final)\n{p}"),
    "a clock that skips minutes": _drawn("[{c}] {r}: {t}"),
    "a comma and a clock": _drawn("{r}, {c}: {t}"),
    "two blanks and a clock that skips minutes": _drawn("{r}  {c} AM\n{t}", between="\n\n"),
    "chat log, user names": _each(
        "<{r}> {t}", names=("teacher_ann", "student_bob"), head="Chat transcript\n===============\n", foot="\n* probability is {p}"
    ),
    "prose, verbs in turn": _drawn(
        "The {o} says: “{t}”", "The {o} replies: “{t}”", "The {o} asks: “{t}”", "The {o} answers: “{t}”",
        foot="\n\nThe probability that the student understood is {p}.",
    ),
    "prose, verbs that change": _drawn(
        'The {o} {v}, "{t}"', between="\n\n", plain=True, v=("says", "asks", "replies", "answers", "explains")
    ),
    "emoji before names": _each(
        "{r}: {t}", names=("👩‍🏫 Teacher", "🧑‍🎓 Student"), foot="\n\n📊 Probability: {p}"
    ),
    "people who change, declared": _drawn("{r}: {t}", names=_PEOPLE, head="Teacher: {T}\nStudent: {S}\n\n"),
    "people who change, behind roles": _drawn(
        "{w} {r}: {t}", names=(("Rivera", "Leo"), ("Kim", "Ana"), ("Okafor", "Sam"), ("Li", "Tom"))
    ),
    "people who change, before roles": _drawn("{r} ({w}): {t}", names=_PEOPLE),
    # What stands around the turns
    "an introduction that changes": _drawn(
        "{r}: {t}", head="{hello}\n\n",
        hello=("Sure!", "Here's a conversation for you:", "Of course. The dialogue follows.", "Certainly, here you go:", "Okay, let me write that."),
    ),
    "an introduction with the topic": _drawn(
        "{r}: {t}", head="Here's a conversation about {topic} between a teacher and a student:\n\n", topic=_TOPICS
    ),
    "an introduction with a percentage": _drawn(
        '{r}: "{t}"', plain=True, head="I'd say there's a 20% chance of confusion here. Here's the conversation:\n\n",
        foot="\n\nProbability: {p}\n\nI hope this helps!",
    ),
    "a title that changes": _drawn(
        "**{r}:** {t}", between="\n\n", head="# {title}\n\n", foot="\n\n**Probability:** {p}",
        title=("A Lesson on Plants", "Green Leaves", "How Plants Eat", "Learning about Light", "The Pondweed"),
    ),
    "a topic in bold": _drawn(
        "**{r}:** {t}", between="\n\n", head="**Topic: {topic}**\n\n", foot="\n\n**Probability of understanding:** {p}", topic=_TOPICS
    ),
    "a heading with the topic, a rule": _drawn(
        "**{r}**: {t}", between="\n\n", head="# Conversation on {topic}\n\n", foot="\n\n---\n\n**Probability**: {p}", topic=_TOPICS
    ),
    "a farewell that changes": _drawn(
        "{r}: {t}", foot="\n\nProbability: {p}\n\n{bye}",
        bye=("The student asked good questions.", "Let me know if you want changes.", "Note: this was simulated.", "I hope this helps!",
             "The student seemed to follow well, with some doubts about starch."),
    ),
    "a farewell about the student": _drawn(
        "{r}: {t}", foot="\n\nProbability: {p}\n\n(The student {did} about {topic}.)",
        did=("seemed to follow", "still had doubts", "asked good questions"), topic=_TOPICS,
    ),
    "an explanation that changes": _drawn(
        "{r}: {t}", foot="\n\nProbability: {p}\n\nExplanation: {why}",
        why=("The hands-on example helped a lot.", "There was some confusion at first, but it was solved.", "The pace was too quick for most of the time."),
    ),
    "a reason behind the probability": _drawn(
        "{r}: {t}", foot="\n\nProbability: {p} ({why})", why=("good engagement", "some confusion left", "strong answers")
    ),
    # Probabilities
    "probability, a fraction of twenty": _joined(_LINES, lambda n: f"\n\nProbability: {n % 10 + 1}/20"),
    "probability, words behind": _joined(_LINES, lambda n: f"\n\nProbability: {_WORDS[n % 3][0]}"),
    "probability, words in front": _joined(lambda n: f"Probability of understanding: {_WORDS[n % 3][0]}\n\n", _drawn("- {r}: {t}", foot="")),
    "probability, out of ten": _joined(_LINES, lambda n: f"\n\nProbability: {n % 10} out of 10"),
    "probability, roughly": _each("{r}: {t}", foot="\n\nProbability: ~{pc}"),
    "probability, a line in bold": _each("{r}: {t}", foot="\n\n**Probability that the student understood: {p}**"),
    "probability, a chance": _each("{r}: {t}", foot="\n\nThere is a {pc} chance that the student understood the material."),
    "probability, estimated at around": _each(
        "{r}: {t}", foot="\n\nI would estimate the probability that the student understood at around {pc}."
    ),
    "probability, a line in front": _in_front("Probability: {p}\n\n", _each("{r}: {t}", foot="\n")),
    "probability, quotation marks": _drawn('{r}: "{t}"', plain=True, foot='\nProbability: "{p}"'),
    "probability, between turns in italics": _between_turns,
    "the end after the probability": _drawn('{r}: "{t}"', between="\n\n", plain=True, foot=f"\n\nProbability: {{p}}\n\n{END}"),
    "cut short within the probability": _own("cut short within the probability", "{r}: {t}", foot="\n\nProb"),
    # Turns
    "two lines in every turn": _own("two lines in every turn", "{r}:\n{t}", between="\n\n", foot="\n\nProbability:\n{p}"),
    "two paragraphs in some turns": _own("two paragraphs in some turns", "**{r}**: {t}", between="\n\n", foot="\n\n**Probability**: {p}"),
    "lists in turns": _own("lists in turns", "**{r}:** {t}", between="\n\n", foot="\n\n**Probability:** {p}"),
    "formulas in turns": _own("formulas in turns", "{r}: {t}"),
    "quoted words in turns": _own("quoted words in turns", "{r}: {t}"),
    "brackets in turns": _own("brackets in turns", "{r}: {t}"),
    "brackets in quoted turns": _own("brackets in quoted turns", '{r}: "{t}"', plain=True),
    "roles in turns": _own("roles in turns", "{r}: {t}"),
    "actions between stars": _own("actions between stars", "{r}: {t}"),
    "actions between stars, bold names": _own(
        "actions between stars, bold names", "**{r}:** {t}", between="\n\n", foot="\n\n**Probability:** {p}"
    ),
    "actions in round brackets": _own("actions in round brackets", "{r}: {t}"),
    "actions in square brackets": _own("actions in square brackets", "{r}: {t}"),
    "six turns": _own("six turns", "{r}: {t}"),
    "six to fourteen turns": _own("six to fourteen turns", "{r} :: {t}", foot="\n\nProbability :: {p}"),
    # Languages
    "German, low quotation marks": _own(
        "German, low quotation marks", "{r}: „{t}“", names=(("Lehrer", "Schüler"),), head="Hier ist das Gespräch:\n\n", foot="\n\nWahrscheinlichkeit: {p}"
    ),
    "French, bold, guillemets": _own(
        "French, bold, guillemets", "**{r} :** « {t} »", names=(("Professeur", "Élève"),), between="\n\n", foot="\n\n**Probabilité :** {pn} %"
    ),
    "Russian, a dash before the text": _own(
        "Russian, a dash before the text", "{r}: — {t}", names=(("Учитель", "Ученик"),), foot="\nВероятность: {p}"
    ),
    "Japanese, corner brackets": _own(
        "Japanese, corner brackets", "{r}「{t}」", names=(("先生", "生徒"),), head="以下は会話です。\n\n", foot="\n\n確率:{p}"
    ),
    "Arabic, texts in Arabic": _own("Arabic, texts in Arabic", "{r}: {t}", names=(("المعلم", "الطالب"),), foot="\n\nالاحتمال: {p}"),
    "Spanish, numbers in brackets": _own(
        "Spanish, numbers in brackets", "{n}) {r}: {t}", names=(("Profesora", "Alumno"),), head="¡Claro! Aquí tienes:\n\n", foot="\n\nProbabilidad: {p}\n"
    ),
    "Korean, another word": _own("Korean, another word", "{r}: {t}", names=(("교사", "학생"),), foot="\n\n확률: {p}"),
    "Hindi, texts in Hindi": _own("Hindi, texts in Hindi", "**{r}:** {t}", names=(("शिक्षक", "छात्र"),), foot="\n\n**संभावना:** {p}"),
    "Greek": _own("Greek", "{r}: {t}", names=(("Δάσκαλος", "Μαθητής"),), foot="\n\nΠιθανότητα: {p}"),
    "Polish, bullets": _own(
        "Polish, bullets", "- **{r}**: „{t}”", names=(("Nauczyciel", "Uczeń"),), foot="\n\nPrawdopodobieństwo: {pc}"
    ),
    "Italian, an introduction": _own(
        "Italian, an introduction", "{r}: {t}", names=(("Insegnante", "Studente"),), head="Ecco la conversazione:\n\n", foot="\n\nProbabilità: {p}"
    ),
    "Chinese, narrow colons": _own("Chinese, narrow colons", "{r}:{t}", names=(("老师", "学生"),), foot="\n\n概率:{p}"),
    "Hebrew": _own("Hebrew", "{r}: {t}", names=(("מורה", "תלמיד"),), foot="\n\nהסתברות: {p}"),
    "Turkish, bold": _own("Turkish, bold", "**{r}:** {t}", names=(("Öğretmen", "Öğrenci"),), foot="\n\n**Olasılık:** {p}"),
    # Written on 2026-11-30, before they were read for the first time: JSON
    "JSON, an explanation after the probability": lambda n: _values(lambda r, t, _: {"role": r.lower(), "content": t}, lambda v, p: _dumps({"conversation": v, "probability": p, "explanation": _draw(n, _REMARKS)}, 2))(n),
    "JSON, metadata first": lambda n: _values(lambda r, t, _: {"speaker": r, "utterance": t}, lambda v, p: _dumps({"metadata": {"topic": _draw(n, _TOPICS), "level": _draw(n, _LEVELS), "turns": 16}, "dialogue": v, "probability_understood": p}, 2))(n),
    "JSON, an id and a date": lambda n: _values(lambda r, t, i: {"n": i + 1, "who": r, "text": t}, lambda v, p: _dumps({"id": f"conv-{n:04d}", "date": f"2026-0{n % 9 + 1}-1{n % 9}", "messages": v, "outcome": {"probability": p, "notes": _draw(n, _REMARKS)}}))(n),
    "JSON, clock and intent": lambda n: _values(lambda r, t, i: {"time": f"10:{30 + i}:{(7 * i + n) % 60:02d}", "intent": _draw(99 * n + i, ("explain", "ask", "check", "praise")), "role": r, "text": t}, lambda v, p: _dumps({"turns": v, "p": p}, 1))(n),
    "JSON, parallel lists and a topic": lambda n: _dumps(
        {"topic": _draw(n, _TOPICS), "teacher_lines": [t for _, t in _lesson(n)[0][::2]], "student_lines": [t for _, t in _lesson(n)[0][1::2]], "understanding": _lesson(n)[1]}, 2
    ),
    "JSON with escaped breaks": _own("JSON with escaped breaks", '  {{"role": "{o}", "content": {t}}},', head='{{"conversation": [\n', foot='\n  {{"role": "system", "content": "done"}}],\n"probability": {p}}}', write=_dumps),
    "JSON lines, moods": _drawn('{{"role": "{r}", "mood": "{e}", "text": {t}}}', e=_MOODS, write=_dumps, foot='\n{{"probability": {p}}}'),
    "Spanish JSON": _own("Spanish JSON", '    {{"rol": "{r}", "texto": {t}}},', names=(("profesora", "alumno"),), head='{{\n  "tema": "{topic}",\n  "conversacion": [\n', topic=("los verbos", "la célula", "el agua"), foot='\n  ],\n  "probabilidad": {p}\n}}', write=_dumps),
    "JavaScript, backticks": _drawn("  {{ speaker: '{o}', text: `{t}` }},", head="const dialogue = [\n", foot="\n];\nconst probability = {p};"),
    "Python calls, single quotes": _drawn("say('{r}', {t})", write=repr, foot="\n\nprobability = {p}"),
    # YAML, TOML
    "YAML, front matter that changes": _drawn("{r}: {t}", head="---\ntitle: {title}\ntopic: {topic}\nlevel: {level}\n---\n\n", between="\n\n", title=_TITLES, topic=_TOPICS, level=_LEVELS),
    "YAML, reasons below": _drawn("  - role: {o}\n    content: {t}", head="conversation:\n", foot="\nassessment:\n  probability: {p}\n  reason: {why}\n", why=_REMARKS, write=_dumps),
    "Portuguese YAML": _own("Portuguese YAML", "  - {r}: {t}", names=(("Professora", "Aluno"),), head="tema: {topic}\nconversa:\n", topic=("a água", "as frações", "a luz"), foot="\nprobabilidade: {p}"),
    "TOML, a mood each": _drawn('[[turn]]\nspeaker = "{o}"\nmood = "{e}"\ntext = {t}\n', e=_MOODS, write=_dumps, foot="\n[result]\nprobability = {p}"),
    # XML, HTML
    "XML, topic and reason": _drawn('  <turn speaker="{o}">{t}</turn>', write=escape, head='<dialogue topic="{topic}" level="{level}">\n', foot="\n  <probability>{p}</probability>\n  <reason>{why}</reason>\n</dialogue>", topic=_TOPICS, level=_LEVELS, why=_REMARKS),
    "XML, text in lines": _own("XML, text in lines", "<{o}>\n{t}\n</{o}>", write=escape, head="<conversation>\n", foot="\n</conversation>\n<probability>{p}</probability>"),
    "XML, emotion as an element": _drawn("<turn>\n  <speaker>{r}</speaker>\n  <emotion>{e}</emotion>\n  <text>{t}</text>\n</turn>", e=_MOODS, write=escape, foot="\n<probability>{p}</probability>"),
    "HTML list with strong": _drawn("<li><strong>{r}:</strong> {t}</li>", write=escape, head="<h2>{title}</h2>\n<ul>\n", foot="\n</ul>\n<p>Probability: {p}</p>", title=_TITLES),
    # Tables
    "HTML breaks in a table": _own("HTML breaks in a table", "| {n} | {r} | {t} |", write=_broken("<br>"), head="| # | Speaker | Text |\n|---|---|---|\n"),
    "two columns, then a rule": lambda n: "| Teacher | Student |\n|:--|:--|\n" + "\n".join(f"| {a[1]} | {b[1]} |" for a, b in zip(_lesson(n)[0][::2], _lesson(n)[0][1::2], strict=True)) + f"\n\n---\n\n**Probability:** {_lesson(n)[1]}",
    "French table": _own("French table", "| {r} | {t} |", names=(("Professeur", "Élève"),), head="| Locuteur | Réplique |\n| --- | --- |\n", foot="\n\nProbabilité : {pn} %"),
    "a table with clocks and moods": _drawn("| {c} | {r} | {e} | {t} |", head="| Time | Speaker | Mood | Text |\n|---|---|---|---|\n", e=_MOODS),
    # Markdown
    "quote blocks of two lines": _own("quote blocks of two lines", "**{r}**\n> {t}", write=_broken("\n> "), between="\n\n", foot="\n\n**Probability:** {p}"),
    "headings with topics, rationale": _drawn("**{r}:** {t}", between="\n\n", head="## Topic: {topic}\n\n**Level:** {level}\n\n---\n\n", foot="\n\n---\n\n**Probability of understanding:** {p}\n\n**Rationale:** {why}", topic=_TOPICS, level=_LEVELS, why=_REMARKS),
    "numbered steps in a turn": _own("numbered steps in a turn", "**{r}:** {t}", between="\n\n", foot="\n\n**Probability:** {pc}"),
    "square directions, bold": _own("square directions, bold", "**{r}:** {t}", between="\n\n", foot="\n\n**Probability:** {p}"),
    "italic actions": _own("italic actions", "{r}: {t}", foot="\n\nProbability: {p}"),
    "bullets, probability twice": _drawn("* **{r}** – {t}", foot="\n\nProbability: {p} ({pc})"),
    "quoted titles in turns": _own("quoted titles in turns", "- {r}: {t}"),
    # Plays and prose
    "play, directions in each label": _drawn("{R} ({e}): {t}", between="\n\n", head="SCENE: {where}\n\n", e=_MOODS, where=("A classroom in the morning", "The school library", "A video call"), foot="\n\nPROBABILITY: {p}"),
    "German play with directions": _own("German play with directions", "{R} ({e}): {t}", names=(("Lehrerin", "Schüler"),), e=("lächelnd", "nachdenklich", "leise", "erstaunt"), between="\n\n", foot="\n\nWahrscheinlichkeit: {p}"),
    "prose, adverbs that change": _drawn('The {o} said {how}: "{t}"', plain=True, between="\n\n", how=("softly", "quickly", "with a smile", "after a while")),
    # Chats, logs, mails
    "e-mail bodies of two paragraphs": _own("e-mail bodies of two paragraphs", "From: {r}\nSubject: {topic}\n\n{t}", topic=_TOPICS, between="\n\n---\n\n"),
    "chat with dates": _drawn("[2026-11-{d} {c}] {r}: {t}", d=("02", "14", "27")),
    "log with margin": _own("log with margin", "{c} {R}\n    {t}", write=_broken("\n    ")),
    "people who change, bold, topic": _drawn("**{r}:** {t}", names=_PEOPLE, between="\n\n", head="Teacher: {T}\nStudent: {S}\nTopic: {topic}\n\n", topic=_TOPICS),
    # Languages
    "Russian numbered": _own("Russian numbered", "{n}. {r}: {t}", names=(("Учитель", "Ученик"),), foot="\n\nВероятность: {pc}"),
    "Dutch, a summary below": _own("Dutch, a summary below", "{r}: {t}", names=(("Leraar", "Leerling"),), foot="\n\nKans: {p}\n\nSamenvatting: {why}", why=("De leerling begreep het grotendeels.", "Er was wat verwarring.", "Het ging te snel.")),
    "Chinese, full-width": _own("Chinese, full-width", "{r}：{t}", names=(("老师", "学生"),), head="主题：{topic}\n\n", topic=("分数", "光合作用", "重力"), foot="\n\n概率：{p}"),
    "Japanese, topic": _own("Japanese, topic", "{r}: {t}", names=(("先生", "生徒"),), head="テーマ: {topic}\n\n", topic=("水", "光", "分数"), foot="\n\n理解の確率: {p}"),
    # Written after these were learned
    "JSON, nested metadata and ratings": lambda n: _values(lambda r,t,i: {"turn": i+1, "role": r.lower(), "text": t}, lambda v,p: _dumps({"lesson": {"subject": _draw(n,_TOPICS), "grade": n%9+1}, "dialogue": v, "evaluation": {"probability": p, "confidence": _draw(n,("high","medium","low")), "comment": _draw(n,_REMARKS)}}, 2))(n),
    "JSON, probability first, topic after": lambda n: _values(lambda r,t,_: {"speaker": r, "line": t}, lambda v,p: _dumps({"probability": p, "topic": _draw(n,_TOPICS), "conversation": v}, 2))(n),
    "JSON, a summary between": lambda n: _values(lambda r,t,_: {"role": r, "content": t}, lambda v,p: _dumps({"conversation": v, "summary": _draw(n,_REMARKS), "probability": p}))(n),
    "JSON, single line breaks": _own("JSON, single line breaks", '    {{"speaker": "{r}", "text": {t}}},', head='{{\n  "dialogue": [\n', foot='\n  ],\n  "probability": {p}\n}}', write=_dumps),
    "JSON, gestures": lambda n: _values(lambda r,t,i: {"speaker": r, "gesture": _draw(50 * n + i, ("nods","smiles","points at the board","none")), "text": t}, lambda v,p: _dumps({"turns": v, "probability": p}))(n),
    "XML, comments": _drawn('<turn n="{n}" role="{o}" mood="{e}">{t}</turn>', e=_MOODS, write=escape, head='<?xml version="1.0"?>\n<!-- {title} -->\n<conversation>\n', title=_TITLES, foot='\n<probability>{p}</probability>\n</conversation>'),
    "YAML, id and date": _drawn("- {o}: {t}", write=_dumps, head="id: lesson-{k1}\ndate: 2026-05-{d}\nturns:\n", k1=("a1","b2","c3"), d=("01","17","23"), foot="\nprobability: {p}\ncomment: {why}", why=_REMARKS),
    "German YAML with a reason": _own("German YAML with a reason","- {r}: {t}", names=(("Lehrer","Schüler"),), head="thema: {topic}\ngespräch:\n", topic=("Licht","Brüche","Wasser"), foot="\nwahrscheinlichkeit: {p}"),
    "paragraphs in some turns": _own("paragraphs in some turns","### {r}\n\n{t}", between="\n\n", foot="\n\n### Probability\n\n{p}"),
    "sub-bullets in turns": _own("sub-bullets in turns","- **{r}:** {t}", foot="\n\n**Probability:** {p}"),
    "wrapped, names in bold": _own("wrapped, names in bold","**{r}:** {t}", between="\n\n", foot="\n\n**Probability:** {p}"),
    "brackets behind": _own("brackets behind","{r}: {t}"),
    "a table with numbers and notes": _drawn("| {n} | {r} | {t} | {e} |", head="| # | Speaker | Utterance | Mood |\n|---|---|---|---|\n", e=_MOODS),
    "HTML, a table and a title": _drawn("<tr><td>{r}</td><td>{t}</td></tr>", write=escape, head="<h1>{title}</h1>\n<table>\n", title=_TITLES, foot="\n</table>\n<p>Probability: {pc}</p>"),
    "Polish table": _own("Polish table","| {r} | {t} |", names=(("Nauczyciel","Uczeń"),), head="| Kto | Wypowiedź |\n|---|---|\n", foot="\n\nPrawdopodobieństwo: {p}"),
    "play, scene and moods in italics": _drawn("**{R}** *({e})*: {t}", e=_MOODS, between="\n\n", head="# {title}\n\n*{where}*\n\n", title=_TITLES, where=("A classroom.","A library.","At home."), foot="\n\n**Probability:** {p}"),
    "Italian, moods": _own("Italian, moods","{r} ({e}): {t}", names=(("Insegnante","Studente"),), e=("sorridendo","pensieroso","piano"), foot="\n\nProbabilità: {p}"),
    "transcript, clock skips, summary": _drawn("[{c}] {r}: {t}", head="Transcript of {topic}\n\n", topic=_TOPICS, foot="\n\nProbability: {p}\n\nSummary: {why}", why=_REMARKS),
    "chat, reactions": _drawn("{r} ({c}): {t}", between="\n\n", foot="\n\nProbability: {pc} ({p})"),
    "probability in front with words": _drawn("{r}: {t}", head="Probability that the student understood: {p}\nLevel: {level}\n\n", level=_LEVELS, foot=""),
    "TypeScript objects": _drawn('  {{ role: "{o}", mood: "{e}", text: {t} }},', e=_MOODS, write=_dumps, head="export const turns = [\n", foot="\n];\nexport const probability = {p};"),
    "prose, one verb each": _drawn('{r} {v}: "{t}"', plain=True, between="\n\n", v=("says","asks","replies","adds"), foot="\n\nProbability: {p}"),
}  # fmt: skip
