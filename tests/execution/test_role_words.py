"""A job's own words for its roles change how replies are read, not the requests."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from tests.execution.service import Service, completion, edgen, equation, job_text, serve, write

REPLY = "Ms. Rivera: What is a cell?\nKim: A tiny room?\nMs. Rivera: Quite so.\n\nProbability: 0.4\n"
WORDS = {"Teacher": ["Ms. Rivera"], "Student": ["Kim"]}


async def answers(service: Service, seed: int) -> web.StreamResponse:
    service.answered[seed] += 1
    return completion(REPLY)


async def test_words_given_later_read_the_replies_anew_and_ask_nothing(tmp_path: Path) -> None:
    async with serve(Service(trouble=answers)) as service:
        run = tmp_path / "run"
        changes = {"conversations": 6, "asks": 2, "limits": {"in_flight": 4, "stop_after_failures": 50}}
        job = write(tmp_path / "job.yaml", job_text(service.url, **changes))
        first = await edgen("generate", job, "-o", run, "--json")
        assert (first.code, first.facts["accepted"]) == (3, 0)
        asked = service.asked.total()
        assert asked == 12
        write(job, job_text(service.url, role_words=WORDS, **changes))
        ended = await edgen("generate", job, "-o", run, "--json")
        assert ended.code == 0, ended.err
        assert (ended.facts["accepted"], ended.facts["calls"]["now"]) == (6, 0)
        assert service.asked.total() == asked
        assert equation(ended.facts)
        again = await edgen("generate", job, "-o", run)
        assert "nothing to do" in again.err
        assert service.asked.total() == asked
