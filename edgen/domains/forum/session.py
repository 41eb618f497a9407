"""A thread of a forum as requests and replies: the choice of the next member, each member's knowledge, and
the effects of votes and marks.

Each member knows what its own role sees, and reads the thread. No member reads what only another one knows.
The moderator reads only the thread.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import msgspec

from edgen.domains.forum.config import MODERATOR, NOBODY, Forum
from edgen.domains.forum.members import (
    ForumSeat,
    NameReplacer,
    PreparedForum,
    ThreadClock,
    make_seats,
    resolve_value,
)
from edgen.domains.forum.post import Post, make_post_form, read_post
from edgen.plugin import (
    Conversation,
    Message,
    Prompting,
    Rejection,
    Reply,
    Request,
    Rules,
    Scenario,
    Turn,
    ask,
)
from edgen.plugin.answers import Chosen, choice_form, read_choice
from edgen.plugin.forms import Form
from edgen.plugin.protocols import (
    Offer,
    RejectionReason,
    Session,
    View,
    append_message,
    ask_turn,
    describe_ending,
    fence_turns,
)
from edgen.plugin.texts import loops

# Reasons for the end of a thread.
ACCEPTED = "accepted_answer"
SILENCE = "silence"
TOO_MANY_TURNS = "too_many_turns"
ASKER_LEFT = "asker_left"
_NO_ANSWER = "(Nobody has written anything since.)"


class ThreadPost(msgspec.Struct):
    """A post in the thread. It collects the votes of later posts."""

    seat: ForumSeat
    text: str
    time: int
    votes: int = 0
    is_answer: bool = False


class Thread(Session):
    """The thread of a scenario in progress."""

    protocol = "forum"
    _settings: Forum
    _prepared: PreparedForum

    def __init__(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> None:
        super().__init__(scenario, replicate, prompts, rules)
        self.seats = make_seats(self._prepared, self._settings, scenario, rules.seed)
        self._clock = ThreadClock(self._prepared, self._settings, scenario, rules.seed)
        self._anonymous = NameReplacer(self.seats)
        self.posts: list[ThreadPost] = []
        self.title = ""
        self._events: list[dict[str, Any]] = []
        self._voted: set[tuple[str, int]] = set()
        self._same: set[str] = set()
        self._ended_by: str | None = None
        self._asked = 0
        self._briefs: dict[str, tuple[Message, ...]] = {}

    def play(self) -> Generator[Request, Reply, Conversation | Rejection]:
        """Return the thread from its question to its end."""
        seat: ForumSeat | None = self.seats[0]
        reason, quiet = SILENCE, 0
        while seat is not None:
            post = yield from self._post(seat)
            if isinstance(post, Rejection):
                return post
            self.hear(seat, post)
            quiet = 0 if post.text else quiet + 1
            if (ended := self._find_end(seat, post, quiet)) is not None:
                reason = ended
                break
            following = yield from self._choose_next_seat(seat)
            if isinstance(following, Rejection):
                return following
            seat = following
        if len({post.seat.user_id for post in self.posts}) < 2:
            return Rejection(RejectionReason.ONE_SPEAKER, "nobody answers")
        return self._make_conversation(reason)

    def _find_end(self, seat: ForumSeat, post: Post, quiet: int) -> str | None:
        """Return the reason for the end of the thread; None if it continues."""
        if post.accept is not None:
            return ACCEPTED
        if post.ended and seat is self.seats[0]:
            self._ended_by = seat.role.name
            return ASKER_LEFT
        if len(self.posts) >= self._settings.turns:
            return TOO_MANY_TURNS
        return SILENCE if quiet >= self._settings.silence else None

    # ---- choice of the next speaker

    def _choose_next_seat(self, last: ForumSeat) -> Generator[Request, Reply, ForumSeat | Rejection | None]:
        """Return the seat of another member who posts after `last`; None if nobody does; the rejection of the
        moderator's choice."""
        seats = [seat for seat in self.seats if seat is not last and seat.weight > 0]
        if not seats:
            return None
        self._asked += 1
        if self._settings.chooser == "chance":
            rng = self._random(f"speaker/{self._asked}")
            return rng.choices(seats, [seat.weight for seat in seats])[0]
        # Models that cannot decide name the first number, so each member comes first equally often.
        self._random(f"offered/{self._asked}").shuffle(seats)
        names, shown = [[*(getattr(seat, how) for seat in seats), NOBODY] for how in ("name", "shown")]

        def read(reply: Reply) -> Chosen | Rejection:
            how = describe_ending(reply)
            chosen = read_choice(reply.text, names, MODERATOR, free=False, **how)
            if isinstance(chosen, Rejection):  # the answer may repeat a member's affiliation with the name
                return read_choice(reply.text, shown, MODERATOR, free=False, **how)
            return chosen

        form = choice_form(len(names))
        question = self._question(MODERATOR, self.list_choice_messages(seats), MODERATOR, form)
        chosen = yield from ask(question, self._rules, read)
        if isinstance(chosen, Rejection):
            return chosen
        assert chosen.number is not None
        return [*seats, None][chosen.number - 1]

    def list_choice_messages(self, seats: list[ForumSeat]) -> tuple[Message, ...]:
        """Return the messages to the moderator: the thread, and the members who may post next."""
        said = [Turn(f"#{number} {post.seat.shown}", post.text) for number, post in enumerate(self.posts, 1)]
        if said:
            said[0] = Turn(said[0].role, f"{self.title}\n{said[0].text}")
        return self._prompts[MODERATOR].messages(
            {
                **fence_turns(self._rules.seed, self._scenario.index, f"moderator/{self._asked}", said),
                "index": self._scenario.index,
                "conversation": "\n\n".join(
                    self._describe_post(number) for number in range(1, len(self.posts) + 1)
                ),
                "names": [*(seat.shown for seat in seats), NOBODY],
            }
        )

    # ---- posts

    def _post(self, seat: ForumSeat) -> Generator[Request, Reply, Post | Rejection]:
        own = [post.text for post in self.posts if post.seat is seat]
        others = [number for number, post in enumerate(self.posts, 1) if post.seat is not seat]

        def read(reply: Reply) -> Post | Rejection:
            post = read_post(
                reply.text,
                seat.role.name,
                others,
                titled=not self.posts,
                may_accept=seat is self.seats[0],
                **self._rules.reading(reply),
            )
            if isinstance(post, Post) and loops(post.text, own):
                return Rejection(RejectionReason.LOOP, f"{seat.role.name} repeats: {post.text[:80]}")
            return post

        form = make_post_form(others, titled=not self.posts, may_accept=seat is self.seats[0])
        question = self._question(seat.use, self.messages(seat), seat.use, form, seat.role.name)
        return (yield from ask_turn(question, self._rules, read))

    def hear(self, seat: ForumSeat, post: Post) -> None:
        """Add a post to the thread, and count its votes and marks."""
        self._note_findings(post)
        self.title = self.title or self._anonymous(post.title)
        if post.text:
            self.posts.append(ThreadPost(seat, self._anonymous(post.text), self._clock.draw_moment()))
        for number in post.votes:
            if (seat.user_id, number) not in self._voted:
                self._voted.add((seat.user_id, number))
                self.posts[number - 1].votes += 1
                self._note("vote", seat, post=number)
        if post.same_question and seat is not self.seats[0] and seat.user_id not in self._same:
            self._same.add(seat.user_id)
            self._note("same_question", seat)
        if post.accept is not None:
            self.posts[post.accept - 1].is_answer = True
            self._note("accepted", seat, post=post.accept)

    def _note(self, kind: str, seat: ForumSeat, **more: Any) -> None:
        who = {"role": seat.role.name, "user_id": seat.user_id}
        self._events.append({"event": kind, "time": self._clock.now, "turn": len(self.posts), **who, **more})

    def messages(self, seat: ForumSeat) -> tuple[Message, ...]:
        """Return the messages to a member: its brief, its own posts as assistant, the others' posts as
        user."""
        if seat.use not in self._briefs:
            self._briefs[seat.use] = self._prompts[seat.use].messages(self._list_known_variables(seat))
        messages = list(self._briefs[seat.use])
        for number, post in enumerate(self.posts, 1):
            own = post.seat is seat
            append_message(
                messages,
                Message("assistant", post.text) if own else Message("user", self._describe_post(number)),
            )
        if messages[-1].role != "user":
            messages.append(Message("user", _NO_ANSWER))
        return tuple(messages)

    def _describe_post(self, number: int) -> str:
        """Return a post as shown to others."""
        post = self.posts[number - 1]
        title = f"Title: {self.title}\n" if number == 1 else ""
        return f"#{number} {post.seat.shown}:\n{title}{post.text}"

    def _list_known_variables(self, seat: ForumSeat) -> dict[str, Any]:
        """Return the template variables for a member: its role's view of the scenario."""
        return {
            **self._seen(seat.role),
            "role": seat.role.name,
            "name": seat.name,
            "actor": seat.actor,
            "affiliation": seat.affiliation,
            "expertise": seat.expertise,
            "about": self._about(seat.role, self._prepared.space),
        }

    def view(self, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person who answers with the template of this use: the member's attributes,
        the posts, and the posts that can get a vote."""
        seat = next((one for one in self.seats if one.use == use), None)
        if seat is None:
            return None
        facts = [line.partition(": ")[::2] for line in self._list_known_variables(seat)["about"]]
        facts.append(("you are", seat.shown))
        if self.title:
            facts.append(("thread", self.title))
        turns = tuple(
            (seat.role.name if post.seat is seat else f"#{number} {post.seat.shown}", post.text)
            for number, post in enumerate(self.posts, 1)
        )
        others = [
            (number, f"#{number} {post.seat.name}")
            for number, post in enumerate(self.posts, 1)
            if post.seat is not seat
        ]
        offers = [Offer("votes", number, words) for number, words in others]
        offers += [Offer("accept", 0, "None yet")] + [
            Offer("accept", number, words) for number, words in others
        ]
        asked = (
            ("title", "The title of your question"),
            ("text", "Your post"),
            ("votes", "Helpful posts"),
            ("accept", "The answer to your question"),
        )
        return View(seat.role.name, tuple(facts), turns, offers=tuple(offers), questions=asked)

    # ---- the end

    def opening(self) -> dict[str, tuple[Message, ...]]:
        """Return each template's first request. Requests to members other than the asker assume that the
        question was posted."""
        asker, *others = self.seats
        found = {asker.use: self.messages(asker)}
        self.hear(asker, Post("…", "…"))
        found |= {seat.use: self.messages(seat) for seat in others if seat.use in self._prompts}
        if MODERATOR in self._prompts:
            found[MODERATOR] = self.list_choice_messages(others)
        return found

    def forms(self) -> dict[str, Form]:
        """Return the forms of the answers to the messages of `opening`."""
        asker, *others = self.seats
        found = dict.fromkeys((seat.use for seat in others), make_post_form([1]))
        found[MODERATOR] = choice_form(len(others) + 1)
        return found | {asker.use: make_post_form((), titled=True)}

    def _make_conversation(self, reason: str) -> Conversation:
        answers = [number for number, post in enumerate(self.posts, 1) if post.is_answer]
        end = {
            "event": "end",
            "time": self._clock.now,
            "turn": len(self.posts),
            "reason": reason,
            "success": bool(answers),
        }
        return Conversation(
            tuple(self._make_turn(post) for post in self.posts),
            ended_by=self._ended_by,
            repairs=tuple(self._repairs),
            flags=tuple(self._flags),
            outcome={
                "reason": reason,
                "accepted": bool(answers),
                "answers": answers,
                "title": self.title,
                "category": resolve_value(self._prepared.category, self._scenario),
                "dialog_time": self._clock.format_moment(),
                "frequency": len(self._same),
            },
            events=(*self._events, end),
        )

    def _make_turn(self, post: ThreadPost) -> Turn:
        seat = post.seat
        data = {
            "time": post.time,
            "utterance_time": self._clock.format_moment(post.time),
            "user_id": seat.user_id,
            "actor_type": seat.actor,
            "affiliation": seat.affiliation,
            "vote": post.votes,
            "is_answer": int(post.is_answer),
        }
        return Turn(
            seat.role.name, post.text, data=data | ({"expertise": seat.expertise} if seat.expertise else {})
        )
