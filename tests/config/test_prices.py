"""The price list, where it applies, and what a job may state instead."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.config import Job, Price, list_arm_jobs, load_job, parse_job, resolve_values, select_shaping_values
from edgen.config.backends import find_prices
from edgen.core.errors import JobError
from edgen.core.registry import find
from edgen.providers import gemini, openai
from edgen.providers.http import describe_config

OPENAI = {"type": "openai", "model": "gpt-4o-mini", "max_tokens": 100}


def job(backend: dict[str, Any], **changes: Any) -> Job:
    values = {"name": "x", "conversations": 1, "space": "s", "prompt": "p", "backends": {"default": backend}}
    return parse_job({**values, **changes}, "job.yaml")


def refused(backend: dict[str, Any], **changes: Any) -> list[str]:
    with pytest.raises(JobError) as caught:
        job(backend, **changes)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_every_listed_price_is_dated_sourced_and_named_once() -> None:
    for provider in (gemini.PRICES.prices, openai.PRICES.prices):
        names = [name for model in provider.models for name in model.names]
        assert len(names) == len(set(names))
        assert provider.source.startswith("https://")
        assert provider.batch == 0.5
        for model in provider.models:
            assert date.fromisoformat(model.date) > date(2025, 1, 1)
            assert 0 < model.prompt < model.completion < 1000


@pytest.mark.parametrize(
    ("kind", "model", "url", "known"),
    [
        ("openai", "gpt-4o-mini", "https://api.openai.com/v1", True),
        ("openai", "gpt-4o-mini-2024-07-18", "https://API.openai.com:443/v1", True),
        ("openai", "gpt-4o-mini", "https://eu.api.openai.com/v1", True),
        ("openai", "gpt-4o-mini", "https://api.openai.com.example.org/v1", False),
        ("openai", "gpt-4o-mini", "https://example.org/api.openai.com/v1", False),
        ("openai", "gpt-4o-mini", "http://127.0.0.1:8000/v1", False),
        ("openai", "gpt-4o-2024-05-13", "https://api.openai.com/v1", False),  # more expensive than its family
        ("openai", "gpt-4o-mini", "http://[", False),
        ("gemini", "models/gemini-2.5-flash", "https://generativelanguage.googleapis.com", True),
        ("google-generativeai", "gemini-2.5-flash", None, True),
        ("simulator", "gpt-4o-mini", None, False),
    ],
)
def test_a_list_price_counts_at_the_providers_own_host(
    kind: str, model: str, url: str | None, known: bool
) -> None:
    assert (list_price(kind, model, url) is not None) is known


def list_price(kind: str, model: str, url: str | None) -> Price | None:
    config_type = find("provider", kind).Config
    settings = {} if url is None else {"base_url": url}
    config = config_type(model=model, **settings)
    return find_prices(config).list_price(config)


def test_regional_hosts_cost_more_for_the_models_that_do() -> None:
    for model, factor in (("gpt-4o-mini", 1.0), ("gpt-5.4", 1.1)):
        here, there = (
            list_price("openai", model, f"https://{host}api.openai.com/v1") for host in ("", "eu.")
        )
        assert here is not None
        assert there is not None
        assert there.prompt == pytest.approx(factor * here.prompt)


def test_a_job_shows_the_list_price_with_its_date_and_source() -> None:
    price = resolve_values(job(OPENAI))["backends"]["default"]["price"]
    assert (price["prompt"], price["completion"], price["batch"]) == (0.15, 0.6, 0.5)
    assert price["date"] == "2025-07-04"
    assert "openai.com" in price["source"]
    assert job({**OPENAI, "base_url": "http://127.0.0.1:1/v1"}).backends["default"].price is None
    gemini = job({"type": "google-generativeai", "model": "gemini-2.5-pro", "endpoint": "localhost:9"})
    assert gemini.backends["default"].price is None


def test_a_price_of_ones_own_wins_and_shapes_nothing() -> None:
    listed, own = job(OPENAI), job({**OPENAI, "price": {"prompt": 7, "completion": 8}, "tokenizer": "t.json"})
    price = own.backends["default"].price
    assert price is not None
    assert (price.prompt, price.batch, price.date) == (7, 1.0, None)
    assert select_shaping_values(listed) == select_shaping_values(own)
    assert describe_config(listed.backends["default"]) == describe_config(own.backends["default"])


def test_an_arm_with_another_model_has_that_models_price() -> None:
    arms = {
        "same": {},
        "other": {"backends": {"default": {"model": "gpt-4o"}}},
        "unknown": {"backends": {"default": {"model": "gpt-unheard-of"}}},
        "own": {"backends": {"default": {"base_url": "http://127.0.0.1:1/v1"}}},
    }
    prices = {
        name: arm.backends["default"].price
        for name, arm in list_arm_jobs(job(OPENAI, arms=arms), "j").items()
    }
    assert {name: price and price.prompt for name, price in prices.items()} == {
        "same": 0.15, "other": 2.5, "unknown": None, "own": None,
    }  # fmt: skip
    given = list_arm_jobs(job({**OPENAI, "price": {"prompt": 7, "completion": 8}}, arms=arms), "j")
    assert {
        arm.backends["default"].price.prompt for arm in given.values() if arm.backends["default"].price
    } == {7}


@pytest.mark.parametrize("model", ["gpt-4o-mini-2031-01-01", "gpt-4o-mini", "gemini-2.5-flash-lite"])
def test_the_line_to_add_can_be_added(model: str, tmp_path: Path) -> None:
    kind = "gemini" if "gemini" in model else "openai"
    backend = {"type": kind, "model": model, "base_url": "http://127.0.0.1:1/v1", "max_tokens": 9}
    (problem,) = refused(backend, limits={"max_cost": 1})
    assert problem.startswith("$.backends.default.price: ")
    line = re.search(r"price: \{[^}]*\}$", problem)
    assert line is not None, problem
    text = yaml.safe_dump({"name": "x", "conversations": 1, "space": "s", "prompt": "p"})
    settings = "\n".join(f"    {key}: {value}" for key, value in backend.items())
    path = tmp_path / "job.yaml"
    path.write_text(f"{text}limits: {{max_cost: 1}}\nbackends:\n  default:\n{settings}\n    {line[0]}\n")
    price = load_job(path).backends["default"].price
    found = find("provider", kind).nearest_price(model)
    assert price is not None
    assert found is not None
    near = found[1]
    assert (price.prompt, price.batch, price.date) == (near.prompt, near.batch, near.date)


def test_a_line_without_figures_is_refused_until_they_are_filled_in() -> None:
    """A line without prices is refused until it has them: else the cap would have no effect."""
    backend = {"type": "openai", "model": "my-own", "base_url": "http://127.0.0.1:1/v1", "max_tokens": 9}
    (problem,) = refused(backend, limits={"max_cost": 1})
    assert "needs the price of my-own" in problem
    assert "`batch` is the share of them that a batch job costs" in problem
    line = re.search(r"price: (\{[^}]*\})$", problem)
    assert line is not None, problem
    told = refused({**backend, "price": yaml.safe_load(line[1])}, limits={"max_cost": 1})
    assert [one.partition(": expected a number")[0] for one in told] == [
        "$.backends.default.price.prompt", "$.backends.default.price.completion",
    ]  # fmt: skip
    filled = yaml.safe_load(line[1].replace("DOLLARS", "0.5"))
    price = job({**backend, "price": filled}, limits={"max_cost": 1}).backends["default"].price
    assert price is not None
    assert (price.prompt, price.completion, price.batch) == (0.5, 0.5, 1.0)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("prompt", -1, "expected a number >= 0.0 (it is -1)"),
        ("prompt", "cheap", "expected a number, got a text (it is 'cheap')"),
        ("completion", float("nan"), "expected a finite number"),
        ("completion", float("inf"), "expected a finite number"),
        ("prompt", 1e9, "expected a number <= 100000.0"),
        ("prompt", True, "expected a number, got true or false"),
        ("prompt", 1.5e-7, "less than any model costs; is it meant for one token"),
        ("batch", 2, "expected a number <= 1.0"),
        ("date", "yesterday", "expected a day, as in 2027-01-31"),
    ],
)
def test_a_price_that_is_none(key: str, value: Any, said: str) -> None:
    (problem,) = refused({**OPENAI, "price": {"prompt": 1, "completion": 2, key: value}})
    assert problem.startswith(f"$.backends.default.price.{key}: ")
    assert said in problem


def test_a_date_may_be_written_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: x\nconversations: 1\nspace: s\nprompt: p\n"
        "backends: {default: {type: simulator, price: {prompt: 1, completion: 2, date: 2026-11-01}}}\n"
    )
    price = load_job(path).backends["default"].price
    assert price is not None
    assert price.date == "2026-11-01"
