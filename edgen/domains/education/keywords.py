"""The keyword baseline of adherence: words for ways of learning and reactions.

`verdicts` answers five questions about one conversation, each yes, no, or None if undecidable:

- `student_asks`: a turn of the student on its preferred way also has a wish (`could we`,
  `I'd rather`). Undecidable if the way is of no known family.
- `student_reaction`, `teacher_reaction`: a turn of that side has words of its stated reaction. Decided only
  if the two prefer different ways: otherwise there is no occasion for it. A student that
  "tells it" does so by asking for its way; a teacher that "adapts" does so by leaving its own.
- `teacher_keeps`, `teacher_leaves`: in the last third of the teacher's turns (rounded up), more turns show
  the student's way than the teacher's own: it left; as many or fewer: it kept to it. If none shows
  either, the last turn before that shows one decides. If both prefer the same way there is nothing to
  leave, and it keeps to it if the last third shows it.

A way shows in a turn by its words, or by its form: a lecture states (a sentence of six words or more on the
matter, without `I`, `you`, `we`), a discussion and an assessment ask (a question beyond courtesy), hands-on
work is acted out (`*jumps*`). A form that both ways share does not count. The families are those of `ways`,
the words are English. As a baseline it ignores irony, negation and context. The questions follow what the
scenarios of Education Dialogue state (arXiv 2405.14655); the words are this project's.

Accepts any text; linear in its length.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import msgspec

from edgen.plugin import Sample, Scenario, Turn, Words
from edgen.plugin.families import Role
from edgen.plugin.statistics import Estimate, ShareCount
from edgen.reading import phrase_kinds as ways

MEASURES = ("student_asks", "student_reaction", "teacher_reaction", "teacher_keeps", "teacher_leaves")

# Adjacent words; a star stands for any ending. Of a family: said by either side.
_NAMED = {
    "lecture": "lectur*|direct instruction|take notes|the facts|listen and",
    "discussion": "discuss*|debat*|talk about it|talk it through|talking about it|a "
    "conversation|interactive*|ask "
    "questions|ask some questions|asking questions|opinion*",
    "hands_on": "hands on|experiment*|try it out|try it yourself|build|touch|real life|real "
    "world|everyday|daily "
    "life|simulate|activit*|field trip|with my hands|with your hands|materials|model|apply to my|in our "
    "lives|in your own life|current events|act it out",
    "creative": "story|stories|game*|play|played|playing|creativ*|imagin*|draw it|act out|acting "
    "out|song|role "
    "play|invent*|puzzle*|fun way",
    "assessment": "quiz*|a test|short test|little test|assess*|question sheet|check whether|exam",
    "visual": "diagram*|picture*|draw*|chart|charts|map|maps|sketch*|visual*|graph*|colour*|color*|on the "
    "board",
    "reading": "read|reading|the text|a text|book|books|chapter|article*|passage|written down|summary|write "
    "it "
    "down|page|paragraph",
    "peer": "partner|group|groups|team|classmate*|together with|person next to me|work together|each "
    "other|with "
    "somebody",
    "independent": "on my own|on your own|by myself|by yourself|own pace|at your "
    "own|alone|explore|research|find "
    "out|figure it out|choose where|choose the|look into it",
    "project": "project*|real problem|real case|a case|our case|problem to solve|solve it|something that "
    "matters|case study",
    "practice": "practise|practice|exercise*|step by step|one more example|drill|repeat|show me one|once "
    "more|go "
    "over it again|worked example*|another example|in small steps",
    "technology": "video*|simulation*|computer|app|online|animation*|tablet|software|slider|clip",
    "coaching": "feedback|hint|hints|one step at a time|guide me|one on one|at your speed|your time|my own "
    "interests|your interests|coach*|just us",
}
_SOUGHT = {  # by a student only
    "lecture": "tell me|tell us|told me|told us|explain*|teach me|teach us|taught|give me the answer*|give "
    "us "
    "the "
    "answer*|given|hear it from you|clear instructions|break it down|spell it out|instructions|through it "
    "once|notes|listen to you|from start to finish",
    "discussion": "talk about|discuss*|ask you|i ask and you|say what i think|hear what",
    "hands_on": "interactive|engaging|try|relate it|apply|something practical|doing something|do "
    "something|lab|see "
    "it in action",
    "assessment": "questions to answer|asked and corrected|test me|quiz me|check my",
    "visual": "see it|show me",
    "practice": "try one|a few more|give me an example|more examples|show me an example",
    "coaching": "help me with|step by step|go through it together|work on next",
}
_TAUGHT = {  # by a teacher only
    "lecture": "let me explain|i'll explain|i will explain|let me tell you|i'll tell "
    "you|listen|definition|overview|note that down|write this down|my talk|as i was saying|let me "
    "break|keep explaining|let me give you the facts|to reiterate|let me reiterate",
    "discussion": "what do you think|do you think|let's talk|your view|do you agree|why might|what would "
    "you|how "
    "do "
    "you feel|explore*|brainstorm*|what do you want to know|would you like to know|your thoughts|weigh it",
    "hands_on": "try it|now try|try another|try this|let's try an|show me|use the|take this|take "
    "the|measure|put "
    "the pieces|let's walk|build me|let's build|let's make",
    "creative": "let's play|let's pretend|pretend|hero|for ten points|level two|scene",
    "assessment": "question one|true or false|can you tell me|tell me what|explain how|explain "
    "what|summarise|summarize|name two|name three|quick check|scale from|next question|next "
    "item|presentation|write down in one sentence|how would you define|what did you learn",
    "visual": "look at|blue part|arrow|picture of",
    "reading": "underline|look up|the author|glossary|sources|in writing",
    "peer": "your partner|ask the group|two heads|swap|one of you",
    "independent": "find out what|report back|decide yourself|you choose|set yourself|your own plan|i'll wait",
    "project": "the problem|a client|next line of the plan|your product|the case",
    "practice": "another one|now you do|you do the|same exercise|step one|step two|number four|the first "
    "step|let's "
    "do one more",
    "technology": "tap on|pause the|run it again|log in",
    "coaching": "where you get stuck|shall we go back|take your time|what would help you|small goal|your "
    "strength",
}
_WISHES = (
    "can we|could we|can you|could you|can't we|can't you|couldn't|can i|could i|may i|would you|i'd like|i "
    "would like|i'd love|i'd rather|i would rather|rather|i prefer|i'd prefer|i want|i wish|i need|learn "
    "best|learn better|could learn|do better|understand better|understand it better|works for me|helps "
    "me|what helps|hoping|i'd hoped|is there|isn't there|there must be|how about|what if|let's|why "
    "don't|why can't|please|just tell|just explain|just teach|just give|just listen|instead|where would "
    "i|which page|give me|show me"
)

_STUDENT = {
    "adapts": "i'll try|i will try|let me try|i can try|give it a chance|give it a try|give it a go|i'll "
    "adapt|your way|halfway|work with it|sounds better|that makes more sense|i suppose|getting used to|not "
    "my usual|okay but|fine but|i could try|i guess that|i guess we can|i guess i can|let's do it",
    "rude": "stupid|dumb|shut up|whatever|i don't care|don't care|nobody cares|bad teacher|worst "
    "teacher|terrible teacher|useless|pointless|ridiculous|lame|idiot|waste of|you're not teaching|you're "
    "annoying|annoying|are you even|hate you|this sucks|who cares|boring thing|get paid|last teacher|don't "
    "get it do you|yeah right|spare me|my brother|little brother",
    "anxious": "anxious|anxiety|nervous|scared|afraid|worried|worry|panic*|stress*|overwhelm*|i'll "
    "fail|going "
    "to "
    "fail|what if i|mind has gone blank|gone blank|embarrass*|hands are sweating|stomach|too slow|i might "
    "get it wrong|say something wrong|i'm sorry i|um",
    "frustrated": "frustrat*|ugh|argh|sighs|fed up|annoy*|come on|hopeless|isn't helping|not helping|isn't "
    "helpful|not helpful|isn't working|not working|makes no sense|make no sense|this is stupid|not fun|not "
    "learning anything|don't like learning|getting nowhere|so complicated|still stuck|could scream|supposed "
    "to understand|don't get it|going round in circles|angry|irritat*|not making it easy|really not "
    "interested|why can't you",
    "argues": "i disagree|don't agree|not true|that's wrong|prove it|says who|why should|i don't "
    "believe|justify|makes no sense|contradict*|why do we|you can't just|i don't see why|not convinced",
    "jokes": "joke|joking|kidding|haha|ha|lol|funny|knock knock|laughs|snore|paper plane|my cat|my "
    "dog|lunch|giggles|winks|breaking news|on holiday",
    "tells": "not how i learn|learn better|learn best|i prefer|i'd prefer|isn't working for me|doesn't work "
    "for "
    "me|tell you something|works for me|works better for me|make a suggestion|be honest|i need|helps me|i'd "
    "rather|i like",
    "disengaged": "bored|boring|not interested|don't care|whatever|yawn*|wasn't listening|stopped "
    "listening|stopped "
    "following|zoned out|distracted|doodles|scrolls|stares|looks out|looks away|uh huh|mm|how long is|break "
    "yet|can we stop|are we done|don't want to do this|i lost you|lost interest|if you say so|i "
    "guess|falling asleep|shrugs|silence|don't see how|don't see the point",
}  # fmt: skip
_TEACHER = {
    "adapts": "different approach|another approach|try a different|another way|different way|let me "
    "adjust|i'll "
    "adapt|adapt|your way|suits you|works for you|work for you|work better for you|how you like to "
    "learn|how do you like|another side|instead|i understand that some|that sounds like a good idea|we can "
    "do that|let's do that|fair point|losing you|i'll keep that in mind|compromise|we can also|let's see "
    "what i can",
    "insists": "i'd rather|i prefer|i believe in|my way|this is how i|keep lecturing|i'm going to "
    "continue|going "
    "to keep|trust me|most effective|more effective|best way|i know what's best|i'm the teacher|i insist|i "
    "won't change|we stay with|we need to cover|have to cover|for years|you'll thank me|i have a|i still "
    "think|stick with|stick to|it's important to|important to engage|let's continue with",
    "blames": "your fault|not my fault|your problem|not my problem|not trying|not trying hard|pay "
    "attention|you "
    "never listen|not listening|weren't listening|you should have|you don't think|cut out for|if you had|if "
    "you wanted|need to respect|need to try harder|not smart enough|your attitude|that attitude|you're the "
    "one|you don't want to learn|must be you|the others understood",
    "gives_up": "give up|gives up|i'm done|that's it|end the conversation|end the lesson|end this|end "
    "here|stop "
    "here|no point|leave it|just leave|forget it|can't help you|can't do this|do what you like|do "
    "whatever|somebody else|someone else|run out of ideas|not going anywhere|going anywhere|i quit|move on "
    "then|never mind",
    "frustrated": "frustrat*|losing my patience|my patience|how many times|i'm the teacher|that's "
    "enough|sighs|sigh|listen i'm|no listen|end of my rope|why is it so hard|for once|annoy*|all i'm "
    "asking|i've told you|i already|exasperat*|why won't you|so much harder|come on|i'm trying to help "
    "you|drops the chalk|fine",
    "sarcastic": "how kind|fascinating any|another expert|reinvent|cushion|take my place|worth "
    "interrupting|oh "
    "wonderful|oh great|how wonderful|so sorry that|bravo|of course you|genius",
    "hurries": "quickly|no time|don't have time|hurry|faster|skip|clock|running out of|time is|next "
    "point|move "
    "on|short on time|rush",
    "strict": "the rules|warning|consequences|detention|watch your|one more word|sit up|your parents|your "
    "mark|my "
    "class|after school|put that away|behave|silence please|respect",
    "doubts": "i must be|maybe i'm not|i'm not sure i|perhaps it's me|i'm not so sure|was that wrong|making "
    "it "
    "worse|i wish i knew|be patient with me|i'm sorry i|my fault|explaining it badly|i don't know how to|oh "
    "dear",
}  # fmt: skip

_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
# Said to the other side or about the lesson: not about the matter.
_PERSONAL = re.compile(
    r"\b(?:i|me|my|mine|myself|you|your|yours|yourself|we|us|our|let's|learn\w*|lessons?|class|teach\w*"
    r"|today)\b"
)
_COURTESY = re.compile(
    r"\b(?:any (?:other |more |further )?(?:questions|wishes)|make sense|does (?:that|this) (?:help|clarify"
    r"|sound)|clarify things"
    r"|(?:is that|that's) (?:clear|better|okay|ok|right)|are you (?:following|having|ready|ok|okay|listening"
    r"|with me)"
    r"|do you (?:understand|follow|have|feel|want|need|see what)|how are you|would you like|shall we|okay|ok"
    r"|all right)\b"
)
_ACTED = re.compile(r"\*\s?\w[^*\n]*\*")
_LEAST_TOLD = 6  # words of a stating sentence


class Verdicts(NamedTuple):
    """The answers on one conversation; None if undecidable."""

    student_asks: bool | None
    student_reaction: bool | None
    teacher_reaction: bool | None
    teacher_keeps: bool | None
    teacher_leaves: bool | None


class Cues:
    """Words to search in `spoken` text (see `reading.detect`)."""

    def __init__(self, *tables: str) -> None:
        self._tables = tables

    @cached_property
    def _wanted(self) -> re.Pattern[str]:
        cues = sorted({cue for table in self._tables for cue in table.split("|") if cue})
        wanted = (re.escape(cue[:-1]) if cue.endswith("*") else re.escape(f"{cue} ") for cue in cues)
        # By first letter, so that most positions fail at once: six times as fast as a plain alternation.
        grouped = itertools.groupby(wanted, key=lambda cue: cue[0])
        branches = (f"{letter}(?:{'|'.join(cue[1:] for cue in same)})" for letter, same in grouped)
        return re.compile(f" (?:{'|'.join(branches)})")

    def within(self, spoken: str) -> bool:
        """Return whether any of them occurs."""
        return self._wanted.search(spoken) is not None


def tells(text: str) -> bool:
    """Return whether a text states something about the matter: a sentence of six words or more, not a
    question, that mentions neither the speakers nor the lesson."""
    for found in _SENTENCE.finditer(text):
        sentence = found[0]
        if sentence.endswith("?") or len(sentence.split(maxsplit=_LEAST_TOLD)) < _LEAST_TOLD:
            continue
        if _PERSONAL.search(sentence.lower().replace("’", "'")) is None:
            return True
    return False


def asks(text: str) -> bool:
    """Return whether a text has a question beyond courtesy."""
    if "?" not in text:
        return False
    return any(
        found[0].endswith("?") and _COURTESY.search(found[0].lower()) is None
        for found in _SENTENCE.finditer(text)
    )


def acts(text: str) -> bool:
    """Return whether a text has an action, such as `*jumps*`."""
    return _ACTED.search(text) is not None


class SignFamily(NamedTuple):
    """A family's signs in a student's and a teacher's turns, by words and by `form`."""

    sought: Cues
    taught: Cues
    form: Callable[[str], bool] | None


_WISH = Cues(_WISHES)
_FORMS = {"lecture": tells, "discussion": asks, "assessment": asks, "hands_on": acts}
_WAYS = {
    name: SignFamily(Cues(named, _SOUGHT.get(name, "")), Cues(named, _TAUGHT.get(name, "")), _FORMS.get(name))
    for name, named in _NAMED.items()
}
_REACTIONS: dict[Role, dict[str, Cues]] = {
    role: {kind: Cues(cues) for kind, cues in table.items()}
    for role, table in (("Student", _STUDENT), ("Teacher", _TEACHER))
}


class Stated(NamedTuple):
    """The known kinds of a scenario's statements. `match` is None without a keyword."""

    learning: tuple[str, ...]
    teaching: tuple[str, ...]
    match: bool | None
    student: str
    teacher: str


_four_texts = operator.itemgetter(
    "student_preference", "teacher_preference", "student_reaction", "teacher_reaction"
)


def read_statements(scenario: Scenario) -> Stated:
    """Return the preferences and reactions that a scenario states, as keywords read them."""
    return _read_stated(*[value[: ways.MOST] for value in _four_texts(scenario.values)])


@lru_cache(maxsize=4096)
def _read_stated(learning: str, teaching: str, student: str, teacher: str) -> Stated:
    match = ways.preferences_match(learning, teaching)
    return Stated(
        ways.families(learning),
        ways.families(teaching),
        match,
        ways.student_reaction(student),
        ways.teacher_reaction(teacher),
    )


def verdicts(scenario: Scenario, turns: Sequence[Turn], said: Sequence[str]) -> Verdicts:
    """Return the keywords' answers on one conversation. `said` are its turns as from
    `reading.detect.words_of_turns`."""
    facts = read_statements(scenario)
    student = [text for turn, text in zip(turns, said, strict=True) if turn.role == "Student"]
    teacher = [(turn.text, text) for turn, text in zip(turns, said, strict=True) if turn.role == "Teacher"]
    asks = _asks(student, facts.learning)
    keeps, leaves = _stays(teacher, facts)
    shows = reacts = None
    if facts.match is False:
        shows = _shows("Student", facts.student, student)
        reacts = _shows("Teacher", facts.teacher, [text for _, text in teacher])
        if facts.student == "tells" and shows is not None:
            shows = shows or bool(asks)
        if facts.teacher == "adapts" and reacts is not None:
            reacts = reacts or bool(leaves)
    return Verdicts(asks, shows, reacts, keeps, leaves)


def _asks(student: Sequence[str], learning: Sequence[str]) -> bool | None:
    """Return whether a turn mentions one of the ways and has a wish."""
    if not student or not learning:
        return None
    whole = "|".join(student)
    sought = [way for name in learning if (way := _WAYS[name].sought).within(whole)]
    return any(way.within(text) and _WISH.within(text) for way in sought for text in student)


def _shows(role: Role, kind: str, said: Sequence[str]) -> bool | None:
    cues = _REACTIONS[role].get(kind)
    return None if cues is None or not said else cues.within("|".join(said))


def _stays(teacher: Sequence[tuple[str, str]], facts: Stated) -> tuple[bool | None, bool | None]:
    """Return whether the teacher keeps to its way, and whether it leaves it for the student's."""
    if not teacher or not facts.teaching:
        return None, None
    start = len(teacher) - math.ceil(len(teacher) / 3)
    if facts.match is not False:
        return any(_way_shows(turn, facts.teaching, ()) for turn in teacher[start:]), None
    own, theirs = _count_turns(teacher[start:], facts)
    for turn in reversed(teacher[:start]):
        if own or theirs:
            break
        own, theirs = _count_turns([turn], facts)
    return own > 0 and own >= theirs, theirs > own


def _count_turns(teacher: Iterable[tuple[str, str]], facts: Stated) -> tuple[int, int]:
    """Return how many turns show the teacher's way, and how many the student's."""
    own = theirs = 0
    for turn in teacher:
        own += _way_shows(turn, facts.teaching, facts.learning)
        theirs += _way_shows(turn, facts.learning, facts.teaching)
    return own, theirs


def _way_shows(turn: tuple[str, str], names: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether a teacher's turn shows one of the ways. Forms shared with `other` do not count."""
    text, words = turn
    taught, forms = _signs(names, other)
    return any(cues.within(words) for cues in taught) or any(form(text) for form in forms)


@lru_cache(maxsize=4096)
def _signs(
    names: Sequence[str], other: Sequence[str]
) -> tuple[tuple[Cues, ...], tuple[Callable[[str], bool], ...]]:
    """Return the words and the forms of these ways, without forms shared with the others."""
    taken = {_WAYS[name].form for name in other}
    forms = dict.fromkeys(form for name in names if (form := _WAYS[name].form) and form not in taken)
    return tuple(_WAYS[name].taught for name in names), tuple(forms)


KEYWORDS = "keywords"


_NOTE = (
    "Keywords are a baseline: they know no irony, no negation and no context, and only English. On simulated "
    "conversations they flatter, since the simulator sorts preferences into families by the same table."
)


class AdherenceShares(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of conversations that keep to their scenarios, of those that can be decided."""

    by: str  # "keywords" or a judge's name
    n: int  # conversations
    student_asks: Estimate | None  # the student asks for the way it prefers
    student_reaction: Estimate | None  # the student's stated reaction shows
    teacher_reaction: Estimate | None  # the teacher's stated reaction shows
    teacher_keeps: Estimate | None  # the teacher's preferred way shows, to the end
    teacher_leaves: Estimate | None  # the teacher goes over to the student's way
    untold: dict[str, int] = {}  # conversations that cannot be decided, by question
    agreement: dict[str, float | None] = {}  # of a judge with the keywords, Cohen's kappa by question
    note: str | None = None  # a sentence about limits


class VerdictCount:
    """Verdicts on conversations, counted to shares: those by keywords or by a judge."""

    def __init__(self) -> None:
        self._n = 0
        self._decided = {name: ShareCount() for name in MEASURES}

    def see(self, sample: Sample, words: Words) -> None:
        self.add(sample.scenario.index, verdicts(sample.scenario, sample.turns, words.spoken))

    def add(self, scenario: int, given: Verdicts) -> None:
        """Count the verdicts on one conversation of a scenario."""
        self._n += 1
        for counted, yes in zip(self._decided.values(), given, strict=True):
            counted.add(scenario, bool(yes), yes is not None)

    def result(self) -> tuple[AdherenceShares, ...]:
        return (self.shares(KEYWORDS, _NOTE),)

    def shares(self, by: str, note: str, agreement: Mapping[str, float | None] = {}) -> AdherenceShares:
        """Return the shares, with their intervals."""
        return AdherenceShares(
            by=by,
            n=self._n,
            **{name: counted.result() for name, counted in self._decided.items()},
            untold={name: self._n - counted.of for name, counted in self._decided.items()},
            agreement=dict(agreement),
            note=note,
        )
