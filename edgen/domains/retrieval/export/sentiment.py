"""The sentiment of an utterance, by edgen's own short lists of English words and one rule about negation.

The words are common in question answering. The lists are not VADER's or Hu and Liu's lexicons, which the
intent paper used for its figures.
"""

from __future__ import annotations

import re
from typing import NamedTuple


def split_word_set(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


POSITIVE = split_word_set("""
    able absolutely accept accepted accurate achieve advantage agree amazing answered appreciate
    appreciated awesome beautiful benefit best better brilliant calm careful cheerful clean clear
    clearly clever comfortable confident congratulations convenient cool correct correctly cured
    delighted easier easily easy effective efficient elegant encouraging enjoy enjoyed excellent
    excited fantastic fast faster fine fixed flawless friendly fun generous genius glad good
    grateful great handy happily happy healthy help helped helpful helps honest hope impressive
    improved improvement interesting kind kindly love loved lovely lucky nice nicely patient peace
    perfect perfectly pleasant please pleased pleasure polite positive powerful pretty progress
    proper properly proud quick quickly ready recommend recommended reliable relief relieved
    resolved respect right safe satisfied secure sensible simple simpler smart smooth smoothly
    solved stable strong succeed succeeded success successful successfully super superb sure
    terrific thank thankful thanks trust useful valuable welcome well win wonderful worked working
    works worth wow
""")
NEGATIVE = split_word_set("""
    abandoned abuse afraid alarming angry annoyed annoying anxious ashamed awful awkward bad badly
    blame block blocked boring broke broken bug bugs burden careless complain complaint complicated
    concern concerned conflict confused confusing corrupt corrupted crash crashed crashes crashing
    crazy critical cruel cry damage damaged danger dangerous dead defect defective delay delayed
    desperate difficult difficulty dirty disabled disappoint disappointed disappointing disaster
    dislike doubt dreadful dull error errors evil excuse fail failed failing fails failure fake
    false fault faulty fear forgot freeze freezes freezing frustrated frustrating frustration froze
    frozen garbage guilty harm hard harmful hate hated horrible hurt ignore ignored impossible
    improper inaccurate incomplete inconvenient incorrect incorrectly infected insecure invalid
    issue issues junk lack lacking lag laggy lie lies lose losing loss lost mad mess messed messy
    miss missed missing mistake mistakes nasty negative nervous nightmare nonsense obsolete outdated
    pain painful panic pointless poor poorly problem problems refuse refused refuses regret reject
    rejected ridiculous risk risky rude ruined sad scared severe sick silly slow slowly sorry
    strange stress stressed struggle struggling stuck stupid suffer suspicious terrible threat tired
    trouble troubles ugly unable unacceptable unclear uncomfortable unfortunately unhappy unknown
    unreliable unsafe unstable unusable unwanted upset useless vague virus vulnerable warning waste
    wasted weak weird worried worry worse worst wrong
""")
NEGATORS = split_word_set("""
    no not never none nobody nothing neither nor without hardly barely cannot n't dont doesnt didnt
    isnt wasnt cant wont
""")
_WORD = re.compile(r"n't\b|\w+")
REACH = 3  # words after a negator whose sentiment it reverses


class Sentiment(NamedTuple):
    """The shares of negative, neutral and positive words in an utterance, and the number of its words in each
    list. A word after a negator counts for the opposite side in the shares."""

    negative: float
    neutral: float
    positive: float
    positive_words: int
    negative_words: int


def compute_sentiment(text: str) -> Sentiment:
    """Return the sentiment of a text in lower case in which "n't" is a word of its own."""
    words = _WORD.findall(text)
    good = bad = listed_good = listed_bad = 0
    negated = 0  # words that are still reversed
    for word in words:
        if word in NEGATORS:
            negated = REACH
            continue
        is_good, is_bad = word in POSITIVE, word in NEGATIVE
        listed_good += is_good
        listed_bad += is_bad
        good += is_bad if negated else is_good
        bad += is_good if negated else is_bad
        negated = max(0, negated - 1)
    total = len(words) or 1
    return Sentiment(
        bad / total, 1 - (good + bad) / total if words else 0.0, good / total, listed_good, listed_bad
    )
