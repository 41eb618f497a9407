"""Placeholders instead of texts: dots, `Teacher: ...`, `<your answer>`, `Votre réponse ici`,
`lorem ipsum`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from edgen.core.text import compile_later
from edgen.reading.detect import words

_LONGEST = 60  # characters
_DOTS = r"[\"'“”‘’«»(\[{<\s]{0,4}(?:\.{2,}|…|_{2,}|\.\s\.\s\.)[.…_\s]{0,80}[\"'“”‘’«»)\]}>,\s]{0,4}"
_ONLY_DOTS = compile_later(
    rf"\A(?:\d{{1,2}}[.)]\s|[-*•]\s)?(?:[^\n:：]{{1,40}}[:：][*_]{{0,3}}\s{{0,3}})?{_DOTS}\Z"
)
_LABEL = compile_later(r"\A[*_]{0,3}[^\W\d][\w ]{0,30}[:：][*_]{0,3}\s{1,3}(?=[<\[{(])")
_BRACKETED = compile_later(r"\A[\"“«]?\$?[<\[{(«]+\s?([^<>\[\]{}()\"\n]{2,80}?)\s?[>\]})»]+[.\"”»]?\Z")
_TO_FILL_IN = compile_later(
    r"(?i)\b(?:your|insert|placeholder|text|here|answer|response|reply|turn|message|utterance|content"
    r"|sentence|says?|goes|asks?"
    r"|respuesta|réponse|antwort|risposta|resposta|ответ|antwoord|odpowiedź|cevap)\b|回答|答案|回复|답변"
)
_BLANK = frozenset(
    [
        "name", "topic", "question", "blank", "empty", "redacted", "silence", "no response", "no answer",
        "no reply", "something",
        "conversation continues", "to be continued", "continued", "continue", "dialogue",
        "dialogue continues", "student", "teacher",
    ]
)  # fmt: skip
# What programs write for a missing text.
_MISSING = frozenset(
    ["null", "undefined", "NaN", "[object Object]", "nil", "(null)", "(empty)", "<null>", "[end]"]
)
_TRAILING = compile_later(
    r"(?i)\A(?:your|my|ihre?|deine?|votre|ta|ton|tu|su|(?:il|la|o|a)\s(?:tu[oa]|su[oa]|seu|teu)|sua|seu|ваш"
    r"|je|uw|jouw)\s"
    r"(?:answer|reply|response|texte?|testo|texto|message|turn|post|antwort|nachricht|réponse|respuesta"
    r"|mensaje|risposta|messaggio|resposta|mensagem|ответ|текст|antwoord)\s?(?:…|\.{2,})\Z"
)
# An answer in JSON without a word.
_EMPTY_JSON = compile_later(
    r"\A\{\s{0,9}(?:\"\w{1,30}\"\s{0,9}:\s{0,9}(?:null|\"\s{0,9}\"|\[\s?\]|\{\s?\})\s{0,9}){0,1}\}\Z"
)
# A variable of a template: `{topic}`, `{{ text }}`, `${answer}`, `%s`, but not a set of numbers or letters.
_VARIABLE = compile_later(
    r"\A(?:\$?\{{1,3}\s?[A-Za-z_]{3,30}\s?\}{1,3}|%s|\$[A-Za-z_]{3,30}|__[a-z_]{3,30}__|[xX]{3,20})\Z"
)
_NO_WORD = compile_later(
    r"\A(?:[-–—*#=~_.\s]{1,80}|[!?.,;]{4,80}|(?i:([a-z])\1{5,80}|asdf\w{0,20}|qwerty\w{0,20}))\Z"
)
_FIELDS = frozenset(
    [
        "text", "a text", "the text", "some text", "string", "a string", "title", "message", "content",
        "placeholder",
        "turn", "utterance", "reply", "response", "say", "speech", "value", "lorem ipsum", "your text",
        "your message",
        "your answer", "your own words", "in your own words", "your reply", "your response", "what you say",
        "what you write", "what to say", "n a", "tbd", "todo",
        "to be continued", "conversation continues", "response text", "reply text", "message text", ("turn "
        "text"),
        "message content", "the message", "the utterance", "the response", "next turn", "the next turn",
        "the next turn of the conversation", "placeholder text", "no response", "foo", "foo bar", "foobar",
        "blah blah", "blah blah blah",
    ]
)  # fmt: skip
_NOUN = r"(?:text|message|reply|answer|response|turn|utterance|question|content|words|speech|post|comment)"
_WHO = r"(?:student|teacher|tutor|learner|user|assistant|partner|speaker|agent|asker|other side)"
_COUNT = r"(?:\d{1,3}|one|two|three|four|five)"
_LENGTH = compile_later(
    rf"\A[(<\[]?{_COUNT}\s?(?:to|-|–)\s?{_COUNT}\s(?:short\s)?(?:sentences|words|lines)[)>\]]?\Z"
)
_ACTS = compile_later(rf"(?:the\s)?{_WHO}\s(?:replies|responds|answers|speaks|says something|continues)")
_PHRASES = compile_later(
    rf"(?:(?:your|the|my|some|{_WHO}(?:s|['’ ]s)?)\s){{0,3}}{_NOUN}\s(?:goes\s|comes\s|will be\s)?here"
    rf"|(?:insert|enter|type)\s(?:(?:your|the|some|a|an)\s)?(?:own\s)?{_NOUN}(?:\shere)?"
    rf"|(?:sample|example|dummy|placeholder)\s{_NOUN}|(?:student|teacher|tutor|user|assistant)s?\s(?:text"
    r"|message|response|utterance|turn)"
    rf"|(?:write|put|fill in|give)\s(?:(?:your|the|a|an|my)\s)?(?:own\s)?{_NOUN}\s(?:in\s)?here"
    r"|(?:(?:this|here)\sis\s)?(?:an?|one|another|the)\s(?:possible|sample|example|typical"
    r"|suggested)\s(?:response|reply|turn|message|utterance|text)"
    rf"|(?:reply|respond|answer)\sto\s(?:the|your)\s{_WHO}|(?:the\s)?{_WHO}s?['’ ]?s\s(?:(?:next|first|last"
    rf"|own)\s)?{_NOUN}|(?:message|reply|turn|utterance|response|text)\s\d{{1,3}}"
    rf"|(?:an?\s|the\s)?(?:short\s|brief\s)?{_NOUN}\s(?:to|about|of|from|for|by)\s(?:the|a"
    rf"|your)\s(?:question|topic|conversation|lesson|prompt|{_WHO})"
    r"|what\s(?:you|the\s\w+|he|she|they)\s(?:would\s)?(?:says?|said|writes?|replies|answers?)\snext"
    r"|todo\s(?:add|write|fill|insert|replace|complete|your|the)\b[\w ]{0,40}"
    r"|lorem ipsum dolor\b.{0,900}|(?:string|text|str)\s(?:max|min|of|up to|at most)\b[\w ]{0,40}"
    rf"|your\s{_NOUN}\sto\sthe\s\w+"
    r"|(?:votre|ta|ton)\s(?:réponse|texte|message)\sici|(?:deine|ihre|die)\s(?:antwort|nachricht)\shier"
    r"|(?:dein|ihr)\stext\shier"
    r"|(?:tu|su|la)\s(?:respuesta|texto|mensaje)\saquí|(?:la\s)?(?:tua|vostra)\srisposta\squi|(?:a\s)?(?:sua"
    r"|tua)\sresposta\saqui"
    r"|(?:ваш|твой)\sответ(?:\sздесь)?|(?:je|uw|jouw)\santwoord\shier|(?:请)?在?(?:此|这里)?(?:处)?输入.{0,8}|你的回答"
    r"|您的回答|(?:écri(?:s|vez|re)|saisi(?:s|ssez|r)|tape[zr]?)\s(?:votre|ta|ton)\s(?:réponse|texte"
    r"|message)(?:\sici)?"
    r"|(?:escrib[ea]|introdu[zc][ec]a?|ingres[ae])\s(?:aquí\s)?(?:tu|su|la)\s(?:respuesta|texto"
    r"|mensaje)(?:\saquí)?"
    r"|(?:schreib(?:e|en\ssie)?|gib|geben\ssie)\s(?:hier\s)?(?:deine|ihre|die)\s(?:antwort"
    r"|nachricht)(?:\shier)?(?:\sein)?"
    r"|scriv(?:i|a|ete)\s(?:qui\s)?(?:la\s)?(?:tua|sua|vostra)\srisposta(?:\squi)?"
    r"|escrev[ae]\s(?:aqui\s)?(?:a\s)?(?:sua|tua)\sresposta(?:\saqui)?"
    r"|(?:typ|schrijf)\s(?:hier\s)?(?:je|uw|jouw)\santwoord(?:\shier)?"
    r"|(?:tu\s)?wpisz\s(?:tutaj\s)?(?:swoją\s)?odpowiedź(?:\stutaj)?"
    r"|(?:введите|напишите)\s(?:здесь\s)?(?:ваш\s)?(?:ответ|текст)(?:\sздесь)?|(?:buraya\s)?(?:cevabınızı"
    r"|yanıtınızı)\s(?:buraya\s)?yaz(?:ın|ınız)?|(?:ここに)?.{0,6}を入力.{0,8}|.{0,8}입력하세요"
)

# Most texts: a line of ASCII with another first word and no mark of a placeholder is no placeholder.
_FIRST = frozenset(field.partition(" ")[0] for field in _FIELDS) | frozenset(
    [
        "your", "the", "my", "some", "student", "students", "teacher", "teachers", "tutor", "tutors", "user",
        "users",
        "assistant", "assistants", "text", "message", "reply", "answer", "response", "turn", "utterance",
        "question", "content",
        "words", "speech", "insert", "enter", "type", "sample", "example", "dummy", "placeholder", "what",
        "this", "here",
        "another", "write", "put", "fill", "give", "respond", "learner", "learners", "agent", "partner",
        "one", "two", "an",
        "short", "null", "undefined", "nan", "nil", "typ", "schrijf", "schreib", "schreibe", "schreiben",
        "gib", "geben",
        "saisis", "saisissez", "tapez", "escriba", "escribe", "introduzca", "introduce", "ingresa", "ingrese",
        "scrivi",
        "scriva", "scrivete", "escreva", "escreve", "wpisz", "buraya", "todo", "lorem", "string", "str",
        "votre", "ta", "ton",
        "deine", "ihre", "die", "dein", "post", "comment", "in", "speaker", "asdf", "qwerty", "asker",
        "other", "ihr", "tu", "su", "la", "tua", "vostra", "a", "sua", "je", "uw", "jouw",
    ]
)  # fmt: skip
# The first word of a line, after marks that open no variable: `*text*`.
_WORD = compile_later(r"[-*\"'#=~.,;!?]*(?!([A-Za-z])\1\1)([A-Za-z]+)")
_PLAIN = bytes(code for code in range(32, 127) if chr(code) not in "_<[{(")
# A line of ASCII that `_PHRASES` matches has one of these words.
_KEYS = frozenset(
    [
        "text", "message", "reply", "answer", "response", "turn", "utterance", "question", "content", "words",
        "speech",
        "post", "comment", "respond", "next", "todo", "lorem", "string", "str", "texte", "antwort",
        "nachricht", "texto",
        "mensaje", "respuesta", "risposta", "resposta", "antwoord",
    ]
)  # fmt: skip
# The words of ASCII lines that `_PHRASES` matches, except for one word anywhere, and any after
# `_OPEN_PHRASES`.
_PHRASE_WORDS = _KEYS | frozenset(
    [
        "your", "the", "my", "some", "goes", "comes", "will", "be", "here", "insert", "enter", "type", "a",
        "an", "own", "sample", "example", "dummy", "placeholder", "write", "put", "fill", "in", "give",
        "this", "is", "one", "another", "possible", "typical", "suggested", "reply", "respond", "answer",
        "to", "first", "last", "short", "brief", "about", "of", "from", "for", "by", "topic", "conversation",
        "lesson", "prompt", "what", "you", "he", "she", "they", "would", "say", "says", "said", "writes",
        "replies", "answers", "votre", "ta", "ton", "ici", "deine", "ihre", "die", "hier", "dein", "ihr",
        "tu", "su", "la", "tua", "vostra", "qui", "sua", "resposta", "aqui", "je", "uw", "jouw", "saisis",
        "saisissez", "saisir", "tape", "tapez", "taper", "escribe", "escriba", "introduzca", "introduce",
        "introduze", "introduzea", "introduzc", "introducea", "introducc", "introducca", "ingresa",
        "ingrese", "schreib", "schreibe", "schreiben", "sie", "gib", "geben", "ein", "scrivi", "scriva", "scrivete", "escreva",
        "escreve", "typ", "schrijf", "s", "side", "sides", "sidess", "side's",
        "sides's", "other",
        *(
            f"{who}{ending}"
            for who in ("student", "teacher", "tutor", "learner", "user", "assistant", "partner", "speaker",
                        "agent", "asker")
            for ending in ("", "s", "ss", "'s", "s's")
        ),
    ]
)  # fmt: skip
_OPEN_PHRASES = frozenset(["todo", "lorem", "string", "text", "str"])  # any words may follow
_BLANKS = " \t\n\r\f\v\x1c\x1d\x1e\x1f"
_AROUND_DOTS = "._\"'()[]{}<>,-*0123456789" + _BLANKS  # in a line of dots, its bullet and number
_MARKS = "-*#=~_.!?,;" + _BLANKS
_FORMED = compile_later(rf"(?is)[{{$%_x]|(.)\1|asdf|qwer|[{re.escape(_MARKS)}]*\Z")
_COUNTED = ("sentences", "words", "lines")  # what lengths end with
_OPENING = frozenset("<[{(«")


def has_placeholder(texts: Sequence[str]) -> bool:
    """Return whether any of the texts only holds the place of one."""
    whole = " ".join(texts)
    if not _is_plain(whole):
        return any(map(is_placeholder, texts))
    return has_short_placeholder(texts) or (
        "lorem ipsum" in whole.lower() and any(map(_holds_place_plainly, texts))
    )


def has_short_placeholder(texts: Sequence[str]) -> bool:
    """Return the same of lines of ASCII without brackets, underscores, dots in a row and `lorem ipsum`."""
    for text in texts:
        if len(text) <= _LONGEST and _may_open(text.partition(" ")[0]) and _holds_place_plainly(text):
            return True
    return False


def is_placeholder(text: str) -> bool:
    """Return whether a text only holds the place of one."""
    if _is_plain(text):
        return _holds_place_plainly(text)
    if len(text) > _LONGEST and _HOLDS_PLACE.search(text) is None:  # most texts
        return False
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    if all(_may_be_dots(line) and _ONLY_DOTS.match(line) for line in lines):
        return True
    if len(lines) > 1:
        return False
    whole = lines[0] if lines else ""
    if ":" in whole or "：" in whole:
        whole = _LABEL.sub("", whole)
    return _holds_place(whole) or _is_bracketed(whole)


def _may_be_dots(line: str) -> bool:
    """Return whether only marks and numbers stand after the last colon of a line."""
    label = max(line.rfind(":"), line.rfind("："))
    return not line[label + 1 :].strip(_AROUND_DOTS) or not line.isascii()


def _is_plain(text: str) -> bool:
    """Return whether a text is one line of ASCII without brackets and dots."""
    if not text.isascii() or text.encode().translate(None, _PLAIN):
        return False
    return ".." not in text and ". ." not in text


@lru_cache(maxsize=4096)
def _may_open(opener: str) -> bool:
    """Return whether a plain line may be a placeholder, given its characters before the first blank."""
    word = _WORD.match(opener)
    return word is None or word[2].lower() in _FIRST


def _holds_place_plainly(text: str) -> bool:
    """Return whether a plain line is a placeholder."""
    if not _may_open(text.partition(" ")[0]):  # most
        return False
    if len(text) > _LONGEST and "lorem ipsum" not in text.lower():
        return False
    return not text or text.isspace() or _holds_place(text.strip())


def _is_bracketed(whole: str) -> bool:
    found = None if _OPENING.isdisjoint(whole[:3]) else _BRACKETED.match(whole)
    if found is None:
        return False
    inside = " ".join(words(found[1]))
    if _PHRASES.fullmatch(inside) or _ACTS.fullmatch(inside):
        return True
    return _TO_FILL_IN.search(found[1]) is not None or inside in _BLANK or inside in _FIELDS


def _holds_place(whole: str) -> bool:
    if whole in _MISSING or (
        _may_have_form(whole)
        and (
            _VARIABLE.match(whole)
            or _EMPTY_JSON.match(whole)
            or _NO_WORD.match(whole)
            or _TRAILING.match(whole)
            or _LENGTH.match(whole)
        )
    ):
        return True
    each = words(whole)
    said = " ".join(each)
    if said in _FIELDS:
        return True
    if whole.isascii() and not _may_be_phrase(each, "_" in whole):  # most
        return False
    return any(_PHRASES.fullmatch(one) for one in (said, whole.rstrip(" .。!！")))


def _may_have_form(whole: str) -> bool:
    """Return whether a line's ends allow a variable, JSON, no word, the beginning of a reply, or a length."""
    return (
        not whole.isascii()
        or _FORMED.match(whole) is not None
        or whole.endswith("..")
        or whole.rstrip(")>]").endswith(_COUNTED)
    )


def _may_be_phrase(each: Sequence[str], joined: bool) -> bool:
    """Return whether words of ASCII may be a phrase: one is a key, and at most one is in no phrase.

    `joined`: that one may have several parts, as in `next_turn`.
    """
    if _KEYS.isdisjoint(each):
        return False
    return joined or each[0] in _OPEN_PHRASES or sum(word not in _PHRASE_WORDS for word in each) < 2


_HOLDS_PLACE = compile_later(r"(?i)\.\.|…|__|\. \.|[<\[{(]|lorem ipsum")  # what a longer placeholder holds
