"""The tone of a turn, as a number computed from its words; a heuristic, not linguistics.

It follows the published MTPO oracle prompt (arXiv 2405.14655): questions, insight, warmth and enthusiasm
count for a turn; confusion, anger, blame, boredom and giving up count against it. English only. The work is
linear in the length of a text.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

_WORTH: dict[float, str] = {
    1.0: "proud wonderful fascinated",
    0.7: "thank thanks great excellent exactly perfect lovely fun enjoy precisely curious brilliant",
    0.5: "cool nice love interesting good welcome clearer clear glad happy wondered correct spot together",
    0.3: "true understand idea yes imagine goal remember explain maybe learned think thinking",
    -0.3: "don't can't won't isn't doesn't no never hm nothing sorry wrong later minute press follow",
    -0.6: "afraid scared nervous worried lost stuck leave forget complicated fuzzy mine quickly skip stop "
    "home hopeless problem uh-huh mm ugh tired anyway finally faster blank",
    -0.9: "panic frustrating frustrated fault blame whatever sighs yawns scream insist impossible excuse "
    "circles argh pointless warning joke patience attitude doodles stares scrolls",
    -1.3: "stupid boring waste useless annoying shut hate silly idiot worthless",
}
_PAIRS: dict[float, str] = {
    1.2: "i see|makes sense|got it|now i|i understand|never thought|that's better|reminds me|well done|"
    "i found|worked out|could explain|spot on|well spotted|you've got",
    0.8: "so if|that mean|keep going|right track|your time|what if|that helps|that works|do you|you think|"
    "i think|i'd say|good question|your way|for you|i wonder|new plan|meet you|give it|can follow|tell me|"
    "suits you|how would|fair enough|fair point|i like|so the",
    -0.8: "don't know|i guess|my way|not sure|how i|i stopped|for today|no idea|another day|not my|"
    "we're done|my class|we stay|as before|this way|wasn't listening|bear with|must be|if you",
    -1.2: "give up|no point|don't care|don't understand|don't get|not trying|never listen|my patience|"
    "fed up|nobody cares|done here|going anywhere|wasting your|be angry|for nothing|out of|i'm done|"
    "still stuck|your problem|how many|enough for|not helping|isn't helping|isn't working|supposed to|"
    "so complicated|even listening|get paid|every time|why should|says who|we always|my brother|you learned|"
    "you listen|long is|bad that|i fail",
}
_WORDS = {word: worth for worth, words in _WORTH.items() for word in words.split()}
_BIGRAMS = {tuple(pair.split()): worth for worth, pairs in _PAIRS.items() for pair in pairs.split("|")}
_QUESTION = 0.5  # for the first question in a turn; further questions add nothing
_MARKS = str.maketrans(dict.fromkeys('.,;:!?()[]{}*_"“”«»…—–\t\r\n/', " ") | {"’": "'"})
_CACHED = 2_000  # characters: longer texts are not cached, so that the cache stays small


def measure_tone(text: str) -> float:
    """Return the tone of a turn, in (-1, 1); 0 is neutral."""
    return _cached(text) if len(text) <= _CACHED else _compute_tone(text)


def _compute_tone(text: str) -> float:
    words = text.lower().translate(_MARKS).split()
    worth = _QUESTION if "?" in text else 0.0
    for word in words:
        if word in _WORDS:
            worth += _WORDS[word]
    for pair in pairwise(words):
        if pair in _BIGRAMS:
            worth += _BIGRAMS[pair]
    # A long turn must not outweigh the others.
    return worth / (1.0 + abs(worth))


_cached = lru_cache(maxsize=16_384)(_compute_tone)
