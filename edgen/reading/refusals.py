"""Whether a model declines to do what was asked, in its text or beside it."""

from __future__ import annotations

import re

from edgen.core.values import Rejection, RejectionReason
from edgen.reading.text.characters import excerpt

_DECLINES = re.compile(
    r"(?i)\b(?:i|we)\b[^.\n]{0,40}?(?:can(?:no|['’])t|can\s+not|won['’]t|will\s+not|unable\s+to|not\s+able\s+to|not\s+comfortable"
    r"|not\s+going\s+to|must\s+(?:respectfully\s+|politely\s+)?decline|decline\s+to|have\s+to\s+decline|refuse\s+to|do\s+not\s+feel|don['’]t\s+feel"
    r"|['’]d\s+rather\s+not|(?:do\s+not|don['’]t)\s+(?:think|believe)\s+(?:it['’]s|it\s+is|that\s+is|this\s+is)\s+appropriate)"
    r"|\bnot\s+something\s+(?:that\s+)?(?:i|we)\s+can\b"
    r"|\b(?:sorry|apologi[sz]e|apologies|unfortunately)\b[^.\n]{0,60}?(?:can(?:no|['’])t|unable|not\s+able|won['’]t|decline)"
    r"|\bas\s+an?\s+(?:ai|large\s+language|language)\b[^.\n]{0,80}?(?:can(?:no|['’])t|unable|not|won['’]t)"
    r"|\bagainst\s+(?:my|our|the)\s+(?:guidelines|policy|policies|programming)\b|\bviolates?\b[^.\n]{0,40}polic(?:y|ies)\b"
    # the same in other languages
    r"|\b(?:ich|wir)\s+(?:kann|können|darf|dürfen|werde|möchte)\b[^.\n]{0,80}\b(?:nicht|kein\w{0,2})\b"
    r"|\b(?:kann|können|darf|dürfen)\s+(?:ich|wir)\b[^.\n]{0,80}\b(?:nicht|kein\w{0,2})\b|\bleider\b[^.\n]{0,60}\bnicht\b"
    r"|\bje\s+(?:ne\s+(?:peux|puis|suis|vais|souhaite)\b[^.\n]{0,40}\bpas|refuse)\b|\bil\s+m['’]est\s+impossible\b"
    r"|\b(?:no|não)\s+(?:me\s+(?:es|siento)\b[^.\n]{0,20}\b(?:posible|cómod[oa])|(?:puedo|podemos|posso|podemos|consigo))\b"
    r"|\bnon\s+(?:posso|possiamo|sono\s+in\s+grado)\b|\bmi\s+rifiuto\b|\bik\s+kan\b[^.\n]{0,60}\bniet\b"
    r"|\bя\s+не\s+(?:могу|буду)\b|\bне\s+могу\s+(?:выполнить|помочь|создать|написать)"
    r"|(?:我|我们|抱歉|对不起|對不起|很遗憾)[^。\n]{0,20}(?:无法|無法|不能|不可以|不便)"
    r"|(?:できません|できかねます|いたしかねます|お断り(?:し|いた)|お応えできない|お手伝いできない)"
    r"|(?:할|드릴|도울|만들|작성할|생성할)\s?수\s?(?:가\s|는\s)?없(?:습니다|어요|네요)|도와\s?드릴\s?수\s?없"
    r"|(?:لا|لن)\s+(?:أستطيع|يمكنني|أقدر|يمكننا|نستطيع)|(?:عذر[اًا]+|آسف|أعتذر)[^.\n]{0,40}(?:لا|لن|عن)\s"
    r"|(?:नहीं\s+(?:कर|लिख|बना|दे)\s+सक(?:ता|ती|ते)|असमर्थ\s+(?:हूँ|हूं|हैं))|\bאיני\s+יכול|\bאני\s+לא\s+יכול"
)


def is_refusal(text: str) -> bool:
    """Whether the beginning of the text, which holds no conversation, says that the model will not or cannot do it."""
    return _DECLINES.search(text[:1200]) is not None


def find_service_refusal(refusal: str | None, finish_reason: str) -> Rejection | None:
    """Why a service gave no whole answer: it refused outside the text, blocked the answer, or cut it off."""
    if refusal is not None and refusal.strip():
        return Rejection(RejectionReason.REFUSED, f"the service refused: {excerpt(refusal)}")
    if finish_reason == "content_filter":
        return Rejection(RejectionReason.REFUSED, "the service blocked the answer")
    if finish_reason == "length":
        return Rejection(RejectionReason.TRUNCATED, "the answer was cut off by the token limit")
    return None
