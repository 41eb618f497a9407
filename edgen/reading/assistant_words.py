"""The words of a model that speaks as itself, not as the side that it plays: refusals, announcements, notes.

A student may say "I can't do this", and a teacher may give up or write a note on the lesson. The patterns
take only what neither of them says: words about being an AI, guidelines, a request, the reply itself or whose
turn it is. Linear.
"""

from __future__ import annotations

import re
from functools import cache

from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.repairs import Repair
from edgen.reading.roles import RolePattern, RoleWords
from edgen.reading.text.characters import excerpt
from edgen.reading.text.quotes import find_quotations

_NOT = (
    r"(?:can(?:no|['’])t|can\s+not|unable\s+to|not\s+able\s+to|won['’]t|will\s+not|not\s+going\s+to"
    r"|must\s+decline\s+to)"
)
_DECLINES = compile_later(
    # One \b before all of them: where no word begins, none is tried.
    # "As an AI, I can't …", "I'm an AI language model and do not …"
    r"(?i)\b(?:(?:as|i\s+am|i['’]m|i['’]m\s+just|i\s+am\s+just)\s+an?\s+(?:large\s+)?(?:ai\b"
    r"|artificial\s+intelligence|language\s+model)"
    r"(?:\s+(?:language\s+model|model|assistant|system|chatbot))?\s*(?:,|and\b|so\b|that\b|i\b|designed"
    r"|created|trained)[^.!?\n]{0,120}?(?:can(?:no|['’])t|can\s+not|unable|not\b|don['’]t|won['’]t)"
    rf"|{_NOT}\s+(?:assist|comply|help(?:\s+you)?)(?:\s+you)?\s+with\s+(?:that|this|such|your"
    r"|the)\s*(?:kind\s+of\s+)?(?:request|content|topic|task|role-?play)"
    r"|i(?:\s+am|['’]m)?(?:\s+(?:afraid|sorry)[, ]+(?:but\s+)?i(?:\s+am|['’]m)?)?\s+"
    rf"{_NOT}\s+(?:assist(?:\s+you)?|comply)\s+with\s+(?:that|this)\b"
    rf"|{_NOT}\s+(?:fulfill?|complete|process|continue\s+with|accommodate)\s+(?:that|this|your"
    r"|the)\s+(?:request|role-?play)"
    rf"|{_NOT}\s+(?:generate|create|produce|provide|write|engage\s+in|participate\s+in|take\s+part\s+in"
    r"|continue)\s+(?:this|that|such|the|any)?\s*(?:kind\s+of\s+|type\s+of\s+)?(?:content|role-?play\w*"
    r"|response\s+to\s+(?:that|this))|(?:decline|refuse)\s+(?:this|that|your)\s+request\b"
    r"|against\s+(?:my|our|the)\s+(?:usage\s+|content\s+|safety\s+)?(?:guidelines|policy|policies"
    r"|programming)\b"
    r"|violates?\s+(?:my|our|the|openai['’]s|content|usage|safety)\b[^.\n]{0,40}polic(?:y|ies)\b"
    # the same in a few other languages
    r"|als\s+(?:eine?\s+)?KI(?:-\w{1,20})?\b[^.\n]{0,60}\b(?:nicht|kein\w{0,2})\b"
    r"|como\s+(?:una?\s+)?(?:IA|inteligencia\s+artificial|modelo\s+de\s+lenguaje)\b[^.\n]{0,60}\bno\b"
    r"|en\s+tant\s+qu(?:e\s+|['’])(?:IA|intelligence\s+artificielle|assistant\s+IA"
    r"|modèle\s+de\s+langage)\b[^.\n]{0,60}\bpas\b)|作为(?:一个|一名)?(?:AI|人工智能|语言模型)[^。\n]{0,40}(?:无法|不能)"
)
# Nothing but a refusal, as models write it.
_ONLY_DECLINES = compile_later(
    r"(?i)\A(?:i['’]m\s|i\sam\s)?(?:very\s|so\s)?sorry,?\s(?:but\s)?i(?:['’]m|\sam)?\s"
    rf"{_NOT}\s(?:(?:help|assist)(?:\syou)?\swith\s(?:that|this)|continue\s(?:with\s)?(?:this"
    r"|the)\s(?:conversation|dialogue|discussion))\W{0,3}\Z"
)
# In languages that the pattern above does not have; looked at only where one of the words below is there.
_DECLINES_ABROAD = compile_later(
    r"(?i)\b(?:in\s+quanto|come)\s+(?:un['’]?\s?)?(?:IA|intelligenza\s+artificiale"
    r"|modello\s+(?:di\s+)?linguistico)\b[^.\n]{0,60}\bnon\b"
    r"|\bcomo\s+(?:uma\s+)?(?:IA|inteligência\s+artificial|modelo\s+de\s+linguagem)\b[^.\n]{0,60}\bnão\b"
    r"|\bкак\s+(?:ИИ|искусственный\s+интеллект|языковая\s+модель)\b[^.\n]{0,60}\bне\b"
    r"|(?:作為|身為)(?:一個)?(?:AI|人工智慧|語言模型)[^。\n]{0,40}(?:無法|不能)"
    r"|(?:AI|人工知能|言語モデル)(?:である私)?(?:として|なので|ですので)[^。\n]{0,40}(?:できません|できかねます)"
    r"|(?:AI|인공지능|언어\s?모델)(?:로서|이기\s때문에|이므로)[^.\n]{0,40}(?:없습니다|없어요)"
    r"|(?:بصفتي|كوني|باعتباري)\s+(?:نموذج|ذكاء|مساعد)[^.\n]{0,60}(?:لا|لن)\s"
    r"|(?:AI|एआई|कृत्रिम\s+बुद्धिमत्ता|भाषा\s+मॉडल)\s+(?:के\s+रूप\s+में|होने\s+के\s+नाते)[^।\n]{0,60}(?:नहीं"
    r"|असमर्थ)"
    # about the request itself
    r"|\bdiese[rn]?\s+(?:anfrage|aufforderung)\s+(?:leider\s+)?nicht\s+(?:erfüllen|nachkommen|bearbeiten"
    r"|beantworten)|\bne\s+(?:peux|puis)\s+(?:pas\s+)?(?:satisfaire|répondre\s+à|donner\s+suite\s+à"
    r"|traiter)\s+(?:à\s+)?(?:cette|votre)\s+demande"
    r"|\bno\s+puedo\s+(?:cumplir\s+con|atender|responder\s+a|ayudar(?:te|le)?\s+con)\s+(?:esta|esa|su"
    r"|tu)\s+(?:solicitud|petición)"
    r"|\bnon\s+posso\s+(?:soddisfare|esaudire|aiutar(?:ti|la)\s+con)\s+(?:questa|la\s+tua"
    r"|la\s+sua)\s+richiesta"
    r"|\bnão\s+posso\s+(?:atender|cumprir|ajudar\s+com)\s+(?:a\s+)?(?:ess[ae]|est[ae]|seu|sua)\s+(?:pedido"
    r"|solicitação)"
    r"|(?:无法|不能)(?:满足|完成|协助|处理|回应)(?:您的|你的|这个|该|此)(?:请求|要求)|(?:ご|その)(?:要望|リクエスト|依頼)には(?:お応え|対応)(?:でき|いたしかね)"
    r"|(?:요청|부탁)(?:을|은|에)\s?(?:들어\s?드릴|처리할|응할|도와\s?드릴)\s?수\s?없|(?:تلبية|تنفيذ)\s+(?:هذا"
    r"|طلبك)[^.\n]{0,12}(?:الطلب)?|(?:इस|आपके)\s+अनुरोध\s+(?:को|में)\s[^।\n]{0,20}(?:नहीं|असमर्थ)"
)
_ABROAD = (
    "artifi", "modello", "modelo", "anfrage", "aufforderung", "demande", "solicitud", "petición", "richiesta",
    "pedido",
    "solicitação", "искусств", "языков", "人工", "模型", "モデル", "请求", "要求", "要望", "リクエスト", "依頼", "인공지능", "언어",
    "요청", "부탁", "بصفتي", "كوني", "باعتباري", "طلب", "एआई", "कृत्रिम", "भाषा", "अनुरोध",
)  # fmt: skip
_AI = ("AI", "IA", "ИИ")
# What a reply that holds no conversation says when it declines.
_REFUSES = compile_later(
    r"(?i)\b(?:i|we)\b[^.\n]{0,40}?(?:can(?:no|['’])t|can\s+not|won['’]t|will\s+not|unable\s+to"
    r"|not\s+able\s+to|not\s+comfortable"
    r"|not\s+going\s+to|must\s+(?:respectfully\s+|politely\s+)?decline|decline\s+to|have\s+to\s+decline"
    r"|refuse\s+to|do\s+not\s+feel|don['’]t\s+feel"
    r"|['’]d\s+rather\s+not|(?:do\s+not|don['’]t)\s+(?:think|believe)\s+(?:it['’]s|it\s+is|that\s+is"
    r"|this\s+is)\s+appropriate)|\bnot\s+something\s+(?:that\s+)?(?:i|we)\s+can\b"
    r"|\b(?:sorry|apologi[sz]e|apologies|unfortunately)\b[^.\n]{0,60}?(?:can(?:no|['’])t|unable|not\s+able"
    r"|won['’]t|decline)"
    r"|\bas\s+an?\s+(?:ai|large\s+language|language)\b[^.\n]{0,80}?(?:can(?:no|['’])t|unable|not|won['’]t)"
    r"|\bagainst\s+(?:my|our|the)\s+(?:guidelines|policy|policies|programming)\b"
    r"|\bviolates?\b[^.\n]{0,40}polic(?:y|ies)\b"
)
# A text that it matches holds one of these in lower case, blanks apart: most texts hold none.
_REFUSING = (
    "can't", "can’t", "cannot", "can not", "won't", "won’t", "will not", "unable", "not able", ("not "
    "comfortable"), "not going to",
    "decline", "refuse", "not feel", "n't feel", "n’t feel", "rather not", "appropriate", "not something",
    "as a ai", "as an ai",
    "as a lang", "as an lang", "as a large", "as an large", "guidelines", "polic", "programming",
)  # fmt: skip
# The same in other languages.
_REFUSES_ABROAD = compile_later(
    r"(?i)\b(?:ich|wir)\s+(?:kann|können|darf|dürfen|werde|möchte)\b[^.\n]{0,80}\b(?:nicht|kein\w{0,2})\b"
    r"|\b(?:kann|können|darf|dürfen)\s+(?:ich|wir)\b[^.\n]{0,80}\b(?:nicht|kein\w{0,2})\b"
    r"|\bleider\b[^.\n]{0,60}\bnicht\b"
    r"|\bje\s+(?:ne\s+(?:peux|puis|suis|vais|souhaite)\b[^.\n]{0,40}\bpas|refuse)\b"
    r"|\bil\s+m['’]est\s+impossible\b"
    r"|\b(?:no|não)\s+(?:me\s+(?:es|siento)\b[^.\n]{0,20}\b(?:posible|cómod[oa])|(?:puedo|podemos|posso"
    r"|podemos|consigo))\b"
    r"|\bnon\s+(?:posso|possiamo|sono\s+in\s+grado)\b|\bmi\s+rifiuto\b|\bik\s+kan\b[^.\n]{0,60}\bniet\b"
    r"|\bя\s+не\s+(?:могу|буду)\b|\bне\s+могу\s+(?:выполнить|помочь|создать|написать)"
    r"|(?:我|我们|抱歉|对不起|對不起|很遗憾)[^。\n]{0,20}(?:无法|無法|不能|不可以|不便)"
    r"|(?:できません|できかねます|いたしかねます|お断り(?:し|いた)|お応えできない|お手伝いできない)"
    r"|(?:할|드릴|도울|만들|작성할|생성할)\s?수\s?(?:가\s|는\s)?없(?:습니다|어요|네요)|도와\s?드릴\s?수\s?없"
    r"|(?:لا|لن)\s+(?:أستطيع|يمكنني|أقدر|يمكننا|نستطيع)|(?:عذر[اًا]+|آسف|أعتذر)[^.\n]{0,40}(?:لا|لن|عن)\s"
    r"|(?:नहीं\s+(?:कर|लिख|बना|दे)\s+सक(?:ता|ती|ते)|असमर्थ\s+(?:हूँ|हूं|हैं))|\bאיני\s+יכול|\bאני\s+לא\s+יכול"
)
_REFUSING_ABROAD = (
    "nicht", "kein", "je ne", "je refuse", "impossible", "no me ", "não me ", "puedo", "podemos", "posso",
    "consigo", "non sono",
    "rifiuto", "niet", "я не", "не могу", "无法", "無法", "不能", "不可以", "不便", "できません", "かねます", "お断り", "できない", "수",
    "لا", "لن", "عن", "नहीं", "असमर्थ", "איני", "יכול",
)  # fmt: skip
_AGREES = (
    r"(?:(?:sure|certainly|of\scourse|okay|ok|alright|all\sright|absolutely|understood"
    r"|got\sit)\b[,.!]{0,2}\s{1,3})"
)
_PREAMBLE = RolePattern(
    # "Okay, I will play the teacher.", and "Sure, here is my response:" below
    rf"(?i)\A(?P<agrees>{_AGREES})?i(?:['’]ll|['’]m\sgoing\sto|\s(?:will|shall|am\sgoing\sto))\s(?:now\s)?"
    r"(?:play|take\son|assume|(?:act|respond|reply|speak|role-?play|answer)\sas)\s(?:the\s(?:role"
    r"|part)\sof\s)?"
    # The rest of the line is the turn, if the model agreed to something before.
    rf"(?:the\s|a\s|your\s)?OWN\b(?:[^\n.!:]{{0,80}}[.!:]{{0,3}}[^\S\n]{{0,9}}(?:\n\s{{0,99}}|\Z)"
    r"|(?(agrees)[^\n.!:]{0,80}[.!:][^\S\n]{1,9}(?!you\b)|(?!)))"
    rf"|\A{_AGREES}here(?:['’]s|\sis)\s(?:my|the)\s(?:next\s)?(?:response|reply"
    r"|turn)\b[^\n:]{0,40}:[*_]{0,3}\s{0,99}|\Ahere(?:['’]s|\sis)\smy\s(?:next\s)?(?:response|reply"
    r"|turn)\b[^\n:]{0,40}:[*_]{0,3}[^\S\n]{0,9}(?:\n\s{0,99}|\Z)"
)
# "Response:", but not the beginning of a definition, "Response: what follows a stimulus".
_RESPONSE = RolePattern(
    r"(?i)\A(?:[#*_>\[ ]{0,8}(?:my\s|final\s)?(?:response|reply)[\]*_ ]{0,4}:[*_]{0,3}"
    r"(?:[^\S\n]{0,9}\n\s{0,99}|[^\S\n]{0,9}(?=(?-i:[^\sa-z]))|\Z)"
    r"|(?:\#{1,6}\s|\*\*|__|\[)(?:my\s|final\s)?(?:response|reply)(?:\*\*|__|\])?[^\S\n]{0,9}(?:\n\s{0,99}"
    r"|\Z))"
)
_SPEAKS = (
    r"(?:(?:['’]s)?\s(?:next\s)?(?:turn|response|reply|message|line|utterance)|\s(?:next\s)?(?:says|replies"
    r"|responds)|\s(?:would|will|might|could)\s(?:\w{1,20}\s)?(?:say|reply|respond))"
)
# A first line in which the model speaks about the role that it plays, not as that role.
_ANNOUNCEMENT = RolePattern(
    r"(?i)\A(?:(?:sure|certainly|of\scourse|okay|ok|alright|absolutely|understood)\b[^\n:]{0,40}?)?"
    rf"(?:\b(?:here(?:['’]s|\sis)\b[^\n:]{{0,40}}?)?\bthe\s(?:\w{{1,20}}\s)?OWN{_SPEAKS}\b[^\n:]{{0,40}}"
    r"|\bas\sthe\sOWN,?\si(?:\s(?:would|will|might|could)|['’](?:d|ll))\s(?:say|reply|respond)\b[^\n:]{0,40}"
    rf"|\bhere(?:['’]s|\sis)\s[^\n:]{{1,40}}?\sas\sthe\sOWN)"
    r"[*_]{0,3}:[*_]{0,3}[^\S\n]{0,9}(?:\n|(?=[\"“]))\s{0,99}(?=\S)"
)
_TITLE = RolePattern(
    r"(?i)\A[#*_>\[ ]{0,8}(?:the\s)?OWN(?:['’]s)?\s(?:next\s)?(?:turn|response|reply|message|line|utterance)"
    r"(?:\s?\d{1,3})?[\]*_ ]{0,4}(?::[*_]{0,3}|(?=\n))\s{0,99}(?=\S)"
)
_OPENINGS = (
    (_ANNOUNCEMENT, Repair.PREAMBLE),
    (_TITLE, Repair.LAYOUT),
    (_PREAMBLE, Repair.PREAMBLE),
    (_RESPONSE, Repair.LAYOUT),
)
_NOTE = compile_later(r"(?i)(?:author['’]s\s|side\s)?notes?\b[*_]{0,3}\s?(?:[:：]|[-–—]\s)")
_COUNT = compile_later(r"(?i)word\scount\b|(?:~|about\s)?\d{1,5}\swords\Z")
# Whose turn it is: "The student can now respond", "Student's turn", "Awaiting the student's reply".
_WHOSE_TURN = RolePattern(
    r"(?i)(?:now\s)?(?:it['’]s\s|it\sis\s)?(?:end\sof\s)?(?:the\s)?(?:ROLE)['’]s\s(?:next\s)?"
    r"(?:turn|response|reply|message)\b[^\n:]{0,60}\Z"
    r"|(?:now\s)?(?:the\s)?(?:ROLE)\s(?:(?:can|may|should|will|could|would|might)\s)?(?:now\s|then\s)?"
    r"(?:responds?|repl(?:y|ies)|answers?|speaks?|continues?|reacts?)\b[^\n:]{0,60}\Z"
    r"|(?:awaiting|waiting\sfor)\s(?:the\s|a\s)?(?:ROLE)\b[^\n:]{0,60}\Z"
)
# Words that distinguish a note on the reply from one on the lesson.
_ON_REPLY = RolePattern(
    r"(?i)\bi(?:['’]ve|\shave)?\s(?:kept|made|tried|aimed|avoided|stayed|limited|wrote|written|used"
    r"|played)\b[^\n]{0,80}?"
    r"\b(?:response|reply|short|brief|concise|simple|role|persona|character|tone|sentences|words)\b"
    r"|\b(?:this|my)\s(?:response|reply|turn)\b|\bpersona\b|\brole-?play\w{0,4}\b|\b(?:in|of"
    r"|out\sof)\scharacter\b|\bas\s(?:requested|instructed)\b|\bword\s(?:count|limit)\b"
    r"|\bthe\s(?:ROLE)(?:['’]s)?\s(?:is|was|seems|appears|feels|shows|may|might|should|can|could|will|would"
    r"|has|gets|prefers|preferences?|reactions?)\b"
)
# Who speaks to the other side, or does sums, is still in the lesson.
_IN_LESSON = compile_later(r"(?i)=|\b(?:you|your|yours|we|our|us|let['’]s)\b")
_RULE = compile_later(r"(?:\A|\n)[^\S\n]{0,9}(?:-{3,9}|\*{3,9}|_{3,9}|={3,9})\Z")
MAX_NOTES = 4
MAX_NOTE = 600  # characters of a line that may be a note
BEGINNING = 400  # characters within which a refusal comes to the point


def is_refusal(text: str) -> bool:
    """Return whether the beginning of the text, which holds no conversation, says that the model will not or
    cannot do it."""
    beginning = text[:1200]
    words = " ".join(beginning.lower().split())
    return (_holds(words, _REFUSING) and _REFUSES.search(beginning) is not None) or (
        _holds(words, _REFUSING_ABROAD) and _REFUSES_ABROAD.search(beginning) is not None
    )


def find_service_refusal(refusal: str | None, finish_reason: str) -> Rejection | None:
    """Return why a service gave no whole answer; None if it gave one.

    It may refuse outside the text, block the answer, or cut it off.
    """
    if refusal is not None and refusal.strip():
        return Rejection(RejectionReason.REFUSED, f"the service refused: {excerpt(refusal)}")
    if finish_reason == "content_filter":
        return Rejection(RejectionReason.REFUSED, "the service blocked the answer")
    if finish_reason == "length":
        return Rejection(RejectionReason.TRUNCATED, "the answer was cut off by the token limit")
    return None


def is_assistants_refusal(text: str) -> bool:
    """Return whether the beginning of a turn declines as a model does. What it quotes does not count."""
    beginning = text[:BEGINNING]
    match = _DECLINES.search(beginning) or _ONLY_DECLINES.match(text)
    if match is None and (any(name in beginning for name in _AI) or _holds(beginning.lower(), _ABROAD)):
        match = _DECLINES_ABROAD.search(beginning)
    if match is None:
        return False
    return not any(start < match.start() < end for start, end in find_quotations(text[: 2 * BEGINNING]))


def _holds(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def drop_preamble(text: str, own: str, repairs: list[str], roles: RoleWords) -> str:
    """Return the turn without a first line in which the model announces it: `Here's the teacher's next
    turn:`."""
    for pattern, name in _compile_openings(own, roles):
        match = pattern.match(text)
        if match is not None:
            repairs.append(name)
            return text[match.end() :]
    return text


@cache
def _compile_openings(own: str, roles: RoleWords) -> list[tuple[re.Pattern[str], Repair]]:
    return [(pattern.of(roles, own), name) for pattern, name in _OPENINGS]


def drop_notes(text: str, repairs: list[str], roles: RoleWords) -> str:
    """Return the turn without last lines in which the model speaks about it: `(Note: I kept it short.)`,
    `(Word count: 30)`, `[The student can now respond.]`. A note that belongs to the lesson stays."""
    kept = text
    for _ in range(MAX_NOTES):
        at = kept.rfind("\n")
        if len(kept) - at > MAX_NOTE or not _is_note(kept[at + 1 :].strip(), roles):
            break
        kept = kept[: max(at, 0)].rstrip()
    if kept is text:
        return text
    repairs.append(Repair.POSTAMBLE)
    rule = _RULE.search(kept, max(0, len(kept) - 20))
    return kept if rule is None else kept[: rule.start()]


def _is_note(line: str, roles: RoleWords) -> bool:
    bare = line.strip("*_ ")
    bracketed = bare[:1] in ("(", "[") and bare.rstrip(".")[-1:] in (")", "]")
    italic = line[:1] in ("*", "_") and line[-1:] == line[:1] and line[0] not in bare
    inner = bare.strip("()[]*_. ")
    if _NOTE.match(inner):
        if _ON_REPLY.of(roles).search(inner):
            return True
        return (bracketed or italic) and not _IN_LESSON.search(inner)
    if _COUNT.match(inner):
        return bracketed or line[:1] in ("*", "_")
    return (bracketed or italic) and _WHOSE_TURN.of(roles).match(inner) is not None
