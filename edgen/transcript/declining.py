"""Whether a turn of self-play is a refusal by the model, not by the side that it plays.

A student may say "I can't do this, I don't understand", and a teacher may give up. Only what no
student or teacher says is taken: words about being an AI, about guidelines, about a request.
"""

from __future__ import annotations

import re

from edgen.transcript.labels import quotations

_NOT = r"(?:can(?:no|['’])t|can\s+not|unable\s+to|not\s+able\s+to|won['’]t|will\s+not|not\s+going\s+to|must\s+decline\s+to)"
_DECLINES = re.compile(
    # "As an AI, I can't …", "I'm an AI language model and do not …"
    r"\b(?:as|i\s+am|i['’]m|i['’]m\s+just|i\s+am\s+just)\s+an?\s+(?:large\s+)?(?:ai\b|artificial\s+intelligence|language\s+model)"
    r"(?:\s+(?:language\s+model|model|assistant|system|chatbot))?\s*(?:,|and\b|so\b|that\b|i\b|designed|created|trained)"
    r"[^.!?\n]{0,120}?(?:can(?:no|['’])t|can\s+not|unable|not\b|don['’]t|won['’]t)"
    rf"|\b{_NOT}\s+(?:assist|comply|help(?:\s+you)?)(?:\s+you)?\s+with\s+(?:that|this|such|your|the)\s*(?:kind\s+of\s+)?(?:request|content|topic|task|role-?play)"
    r"|\bi(?:\s+am|['’]m)?(?:\s+(?:afraid|sorry)[, ]+(?:but\s+)?i(?:\s+am|['’]m)?)?\s+"
    rf"{_NOT}\s+(?:assist(?:\s+you)?|comply)\s+with\s+(?:that|this)\b"
    rf"|\b{_NOT}\s+(?:fulfill?|complete|process|continue\s+with|accommodate)\s+(?:that|this|your|the)\s+(?:request|role-?play)"
    rf"|\b{_NOT}\s+(?:generate|create|produce|provide|write|engage\s+in|participate\s+in|take\s+part\s+in|continue)\s+"
    r"(?:this|that|such|the|any)?\s*(?:kind\s+of\s+|type\s+of\s+)?(?:content|role-?play\w*|response\s+to\s+(?:that|this))"
    r"|\b(?:decline|refuse)\s+(?:this|that|your)\s+request\b"
    r"|\bagainst\s+(?:my|our|the)\s+(?:usage\s+|content\s+|safety\s+)?(?:guidelines|policy|policies|programming)\b"
    r"|\bviolates?\s+(?:my|our|the|openai['’]s|content|usage|safety)\b[^.\n]{0,40}polic(?:y|ies)\b"
    # the same in a few other languages
    r"|\bals\s+(?:eine?\s+)?KI(?:-\w{1,20})?\b[^.\n]{0,60}\b(?:nicht|kein\w{0,2})\b"
    r"|\bcomo\s+(?:una?\s+)?(?:IA|inteligencia\s+artificial|modelo\s+de\s+lenguaje)\b[^.\n]{0,60}\bno\b"
    r"|\ben\s+tant\s+qu(?:e\s+|['’])(?:IA|intelligence\s+artificielle|assistant\s+IA|modèle\s+de\s+langage)\b[^.\n]{0,60}\bpas\b"
    r"|作为(?:一个|一名)?(?:AI|人工智能|语言模型)[^。\n]{0,40}(?:无法|不能)",
    re.IGNORECASE,
)
BEGINNING = 400  # characters within which a refusal comes to the point


def declines_as_assistant(text: str) -> bool:
    """Whether the beginning of a turn declines as a model does. What it quotes does not count."""
    match = _DECLINES.search(text[:BEGINNING])
    if match is None:
        return False
    return not any(start < match.start() < end for start, end in quotations(text[: 2 * BEGINNING]))
