"""Views for people who post in a forum."""

from __future__ import annotations

from typing import Any

from edgen.plugin.protocols import Offer, View


class ThreadViews:
    """The views of a thread: the member's attributes, the posts, and the posts that can get a vote."""

    def view(self: Any, use: str, backend: str, role: str | None) -> View | None:
        """Return the view for a person who answers with the template of this use."""
        session = self
        seat = next((one for one in session.seats if one.use == use), None)
        if seat is None:
            return None
        facts = [line.partition(": ")[::2] for line in session._list_known_variables(seat)["about"]]
        facts.append(("you are", seat.shown))
        if session.title:
            facts.append(("thread", session.title))
        turns = tuple(
            (seat.role.name if post.seat is seat else f"#{number} {post.seat.shown}", post.text)
            for number, post in enumerate(session.posts, 1)
        )
        others = [
            (number, f"#{number} {post.seat.name}")
            for number, post in enumerate(session.posts, 1)
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
