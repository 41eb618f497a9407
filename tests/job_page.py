"""docs/job.md: every key of a job file, out of the types that it is read into.

A section is a struct: a table of its keys and an example that has all of them. The example is the one thing that is
written here, and a domain's in tests/domains/X/job_sections.py; `python -m tests.schemas` puts the page together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import inspect as types

from edgen import config
from edgen.config import Job
from edgen.config.backends import BackendConfig, Price
from edgen.config.job import Batch, Branch, LabelsAsked, Limits, Pairs, Resolved, Shards, Split
from edgen.config.label_set import Label, LabelSet
from edgen.core import registry
from edgen.protocols.selfplay import Selfplay
from edgen.providers.anthropic.config import AnthropicConfig
from edgen.providers.gemini.config import GeminiConfig
from edgen.providers.google_generativeai.config import GoogleGenerativeAIConfig
from edgen.providers.human.config import HumanConfig
from edgen.providers.litellm.config import LitellmConfig
from edgen.providers.llamacpp.config import LlamaCppConfig
from edgen.providers.openai.config import OpenAIConfig
from edgen.providers.openai_responses.config import OpenAIResponsesConfig
from edgen.providers.vertex.config import VertexConfig
from edgen.simulator.config import SimulatorConfig
from tests.domains import modules_of
from tests.job_section import Section

Sentences = Callable[[type[msgspec.Struct]], Mapping[str, str]]
# The shipped protocols of conversations, with the struct of the job's key of their name.
PROTOCOLS: dict[str, type[msgspec.Struct]] = {
    plugin.name: struct
    for plugin in registry.plugins()
    if plugin.kind == "protocol" and plugin.package == registry.DISTRIBUTION
    and (struct := getattr(registry.find("protocol", plugin.name), "Config", None))
}  # fmt: skip
# What each says of itself, as `edgen list protocols` prints it.
SUMMARIES = {name: registry.find("protocol", name).summary for name in PROTOCOLS}
IN_ARMS = tuple(
    key for key in (*config._KEYS, *PROTOCOLS) if key not in config._NOT_IN_ARMS and key != "oneshot"
)


HEAD = """\
# Job file

A job is one YAML file of at most 4 MiB. This page lists all of its keys; `make docs` generates it from the types in
`edgen/config`. edgen refuses an unknown key, with its path and the nearest known key. The command line overrides any key,
as in `--set limits.in_flight=8`. Paths in a job are relative to its file.

Editors with a YAML language server complete and check jobs and spaces: the first line of shipped files, and of those that
`edgen init` writes, names their JSON Schema ([validators/job.schema.json](../validators/job.schema.json),
[validators/space.schema.json](../validators/space.schema.json)). A schema cannot reject keys that do not go together;
`edgen preview JOB` can, without a call.
"""

SECTIONS = (
    Section(Job, "The job", "Only `name`, `conversations`, `space` and `backends` are needed.", """\
name: "nightly-{date}"        # outputs/nightly-2027-01-31
seed: 7
conversations: 200
top_up: false
forms: auto
too_long: cut
stop_when_useless: true
replicates: 4
space: education_dialogue     # or ./mine.yaml
family: education
design: pairwise
strength: 2
protocol: selfplay
prompts: {teacher: selfplay_teacher, student: selfplay_student, closing: closing_student}
selfplay: {max_turns: 12, closing: student}
branch: {at: sampled, role: teacher}
role_words: {Teacher: [Tutor, Ms. Chen], Student: [Learner]}
asks: 3
measures: ./mine.py:words
gates: {short: turns >= 6, good: labels.quality >= 3}
labels: {quality: {annotators: 3}}
backends:
  teacher: {type: simulator}
  student: {type: simulator}
  judge: {type: simulator}
pairs: {votes: 2}
limits: {in_flight: 64}
batch: {poll: 5m}
split: {test: 0.1, by: topic}
shards: {train: 5, test: 1}
"""),
    Section(BackendConfig, "backends: what every kind takes", "A role is `default`, `teacher`, `student`, `annotator` or `judge`; `type` says what kind of service answers for it.", """\
backends:
  default: {type: simulator, temperature: 0.9, top_p: 0.95, max_tokens: 2048, retry_max_tokens: 4096, stop: ["[end of conversation]"], seed: auto,
            reasoning_effort: null, verbosity: null, service_tier: null, choices: null, forms: auto, price: {prompt: 0, completion: 0}}
"""),
    Section(OpenAIConfig, "backends: openai", "Any Chat Completions service.", """\
backends:
  default: {type: openai, model: my-model, base_url: ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8081/v1"], api_key_env: MY_KEY, tokenizer: ./tokenizer.json,
            more_base_urls: [], known_as: "http://fleet/v1", auth: bearer, key_command: [], headers: {X-Title: lessons}, query: {api-version: "2024-10-21"}, max_tokens_field: auto,
            frequency_penalty: 0.2, presence_penalty: 0, extra_body: {min_p: 0.05}}
"""),
    Section(OpenAIResponsesConfig, "backends: openai-responses", "OpenAI's Responses API, which takes no `seed` and no `stop`; the other keys are those of `openai`.", """\
backends:
  default: {type: openai-responses, model: my-model, base_url: "https://api.openai.com/v1", more_base_urls: [], known_as: null, api_key_env: OPENAI_API_KEY, auth: bearer,
            key_command: [], headers: {}, query: {}, tokenizer: null, extra_body: {metadata: {run: nightly}}, store: false}
"""),
    Section(AnthropicConfig, "backends: anthropic", "Anthropic's Messages API. `max_tokens` is 8192 unless it is set: the service demands a number.", """\
backends:
  default: {type: anthropic, model: my-model, base_url: "https://api.anthropic.com", api_key_env: ANTHROPIC_API_KEY, max_tokens: 8192,
            top_k: 40, reasoning_effort: low, service_tier: auto, prompt_cache: 5m, extra_body: {metadata: {user_id: nightly}}}
"""),
    Section(GeminiConfig, "backends: gemini", "The Gemini API.", """\
backends:
  default: {type: gemini, model: my-model, base_url: "https://generativelanguage.googleapis.com", api_key_env: GOOGLE_API_KEY, top_k: 40,
            safety_settings: {HARM_CATEGORY_HARASSMENT: BLOCK_NONE}, extra_body: {}}
"""),
    Section(GoogleGenerativeAIConfig, "backends: google-generativeai", "The same service by its older SDK, which is past its end of life.", """\
backends:
  default: {type: google-generativeai, model: my-model, endpoint: generativelanguage.googleapis.com, api_key_env: GOOGLE_API_KEY, top_k: 40,
            safety_settings: {}}
"""),
    Section(VertexConfig, "backends: vertex", "The same models on Google Cloud's Vertex AI.", """\
backends:
  default: {type: vertex, model: my-model, project: my-project, location: europe-west4, base_url: null, top_k: 40, safety_settings: {},
            extra_body: {}}
"""),
    Section(LitellmConfig, "backends: litellm", "A model of any service that litellm speaks to.", """\
backends:
  default: {type: litellm, model: groq/openai/gpt-oss-20b, base_url: null, api_key_env: GROQ_API_KEY, auth: key, api_version: null,
            options: {top_k: 40}}
"""),
    Section(LlamaCppConfig, "backends: llamacpp", "A model in edgen's own process, from a GGUF file.", """\
backends:
  default: {type: llamacpp, model: smollm2, context: 4096, slots: 1, threads: 1, max_tokens: 1024, seed: auto,
            extra_body: {repeat_penalty: 1.1, min_p: 0.05}}
  judge: {type: llamacpp, path: ./models/judge.gguf, chat_template: ./models/chat.jinja}
"""),
    Section(HumanConfig, "backends: human", "People, on the pages of `edgen web` or in a terminal (`edgen play`).", """\
backends:
  default: {type: simulator}
  student: {type: human, model: human, forms: auto, wait: 1h, stand_in: default, consent: null, before: null, after: null}
"""),
    Section(SimulatorConfig, "backends: simulator", "No model: for rehearsal and tests.", """\
backends:
  default: {type: simulator, model: edgen-simulator, faults: "429=0.1,refusal=0.02", latency_ms: 100, planted: 5}
  labeller: {type: simulator, confusion: {Hint: {Question: 0.2}}}
"""),
    Section(Price, "price, of a backend", "Only where the shipped list has none, or this host takes another.", """\
price: {prompt: 0.15, completion: 0.60, cache_read: 0.075, cache_write: 0.19, batch: 0.5, batch_cache: 0.5, date: 2027-01-31, source: "the provider's list"}
""", ("backends", "default")),
    Section(Selfplay, "selfplay", "For `protocol: selfplay`.", """\
selfplay: {first: teacher, order: [teacher, student], max_turns: 20, closing: student, leaked_secret: reject, loop: flag}
"""),
    *(section for module in modules_of("job_sections") for section in module.SECTIONS),
    Section(LabelsAsked, "labels", "Each key is a layer; see [selecting.md](selecting.md#gates-on-labels).", """\
labels:
  quality: {unit: conversation, annotators: 3}
  moves: {set: teacher_moves, unit: turn, together: true}
"""),
    Section(LabelSet, "set", "The key `set` of a layer, where it is no name: a run's own copy of its job has the label set itself.", """\
labels:
  tone:
    set: {name: tone, source: my own, several: false, roles: [Teacher], other: Neutral, labels: [{name: Warm, definition: praises}]}
"""),
    Section(Label, "labels of a set", "The key `labels` of a label set.", """\
labels:
  tone:
    set:
      name: tone
      labels:
        - {name: Warm, definition: praises or encourages, examples: [Well done!]}
        - {name: Strict, definition: blames or warns}
"""),
    Section(Branch, "branch", "For `protocol: selfplay` with two replicates or more. Left out: each replicate is a conversation of its own.", """\
branch: {at: 3, role: teacher}
"""),
    Section(Pairs, "pairs", "See [pairs.md](pairs.md).", """\
pairs: {votes: 1, matches: 6, compare: conversation, min_margin: 0.1, max_per_scenario: 3, min_turns_left: 2, rollouts: 4,
        logprobs: 5, judge_directed: unlabelled}
"""),
    Section(Limits, "limits", "May change between two starts of a run.", """\
limits: {in_flight: 256, requests_per_minute: 600, tokens_per_minute: 200000, attempts: 6, give_up_after: 600, timeout: 120,
         stop_after_failures: 25, max_tokens: 5000000, max_cost: 10, budget: budget.yaml, arms_at_once: 2}
"""),
    Section(Batch, "batch", "For `--via batch`; see [scheduling.md](scheduling.md). Spans are written like `6h`, `1h 30m` or `45s`.", """\
batch: {online_after: 6h, poll: 60s, max_requests: 10000}
"""),
    Section(Split, "split", "Whole groups, so that nothing of one group is on both sides; as close to the share as they come.", """\
split: {test: 0.15, by: scenario}
"""),
    Section(Shards, "shards", "Files of `shards/` in the run's folder.", """\
shards: {train: 5, test: 1}
"""),
    Section(Resolved, "resolved", "Written by edgen into a run's `job.yaml`; nobody needs to write it.", ""),
)  # fmt: skip
STRUCTS = tuple(section.struct for section in SECTIONS)
_LINKS = {section.struct: section.title for section in SECTIONS}

ARMS = """\
## arms

Each arm lays its keys over the job's, mapping by mapping; a backend of another `type` starts afresh. What may change:
{keys}. Arms are compared with `edgen compare`; see [experiments.md](experiments.md).

```yaml
arms:
  plain: {{}}
  warm: {{backends: {{default: {{temperature: 1.2}}}}}}
  json: {{prompt: education_dialogue_json}}
```
"""


def page(sentences: Sentences) -> str:
    """The whole page."""
    parts = [HEAD]
    for section in SECTIONS:
        if section.struct is Pairs:
            parts.append(ARMS.format(keys=", ".join(f"`{key}`" for key in IN_ARMS)))
        parts.append("\n".join(_section(section, sentences(section.struct))))
    return "\n".join(parts)


def _section(section: Section, sentences: Mapping[str, str]) -> list[str]:
    lines = [
        f"## {section.title}",
        "",
        section.about,
        "",
        "| key | values | default | what it says |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{field.encode_name}` | {values(types.type_info(field.type))} | {_default(field)} | {sentences.get(field.name, '')} |"
        for field in own_fields(section.struct)
    ]
    if section.struct is Job:
        lines += [
            f"| `{name}` | [a mapping](#{name}) | see there | What goes with `protocol: {name}`. |"
            for name, own in PROTOCOLS.items()
            if own.__struct_fields__
        ]
    return [*lines, "", *(["```yaml", section.example.rstrip(), "```", ""] if section.example else [])]


def own_fields(struct: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    """The fields that a section tells: those that all backends share in the same way have a section of their own."""
    # Each kind's own section has its model first.
    anew = ("model", *vars(struct).get("__annotations__", {}))
    common = [name for name in BackendConfig.__struct_fields__ if name not in anew]
    left_out = ["model"] if struct is BackendConfig else common if issubclass(struct, BackendConfig) else []
    left_out += ["protocol_settings", "speakers"]
    fields = [field for field in msgspec.structs.fields(struct) if field.name not in left_out]
    return sorted(fields, key=lambda field: issubclass(struct, BackendConfig) and field.name != "model")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "needed"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()  # type: ignore[misc]
    if isinstance(default, msgspec.Struct):
        return "see there"
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    if default == "":
        return "none"
    return f"`{msgspec.json.encode(default).decode()}`".replace('"', "")


_PATTERNS = {
    "name": "letters, digits, dots, _ and -",
    "date": "a day, as in 2027-01-31",
    "api_key_env": "a name in capitals",
    "base_url": "an address by http:// or https://",
    "service_tier": "a text in small letters",
    "on": "here, ray or ray://HOST:PORT",
}


def values(kind: Any) -> str:
    """What a type takes, in words."""
    match kind:
        case types.StructType(cls=cls) if cls is BackendConfig:
            return "one of the kinds below"
        case types.UnionType(types=several):
            words = " or ".join(values(one) for one in several if not isinstance(one, types.NoneType))
            return words + (", or null" if kind.includes_none else "")
        case types.LiteralType(values=words):
            return " · ".join(f"`{word}`" for word in words)
        case types.BoolType():
            return "`true` · `false`"
        case types.IntType():
            return f"a whole number{_range(kind)}"
        case types.FloatType():
            return f"a number{_range(kind)}"
        case types.StrType(pattern=str(pattern)):
            return _shape(pattern)
        case types.StrType():
            return "a text"
        case types.VarTupleType(item_type=inner) | types.ListType(item_type=inner):
            return f"a list of {_many(values(inner))}"
        case types.DictType(value_type=inner) if isinstance(inner, types.AnyType):
            return "a mapping"
        case types.DictType(value_type=inner):
            return f"a mapping from names to {_many(values(inner))}"
        case types.StructType(cls=cls):
            title = _LINKS[cls]
            anchor = "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")
            return f"[a mapping](#{anchor})"
    raise TypeError(f"{kind}: how is it worded?")


def _many(words: str) -> str:
    """Several of what the words are one of."""
    one, _, rest = words.removeprefix("an ").removeprefix("a ").partition(" ")
    several = f"{one}es" if one.endswith("s") else f"{one}s"
    return words if one == "one" else " ".join(filter(None, (several, rest)))


def _shape(pattern: str) -> str:
    for field in (
        *msgspec.structs.fields(Job),
        *msgspec.structs.fields(OpenAIConfig),
        *msgspec.structs.fields(Price),
    ):
        info = types.type_info(field.type)
        for one in info.types if isinstance(info, types.UnionType) else (info,):
            if isinstance(one, types.StrType) and one.pattern == pattern:
                return _PATTERNS[field.name]
    return "a span, as in 6h, 90m or 45s"


def _range(kind: types.IntType | types.FloatType) -> str:
    low = kind.ge if kind.ge is not None else kind.gt
    high = kind.le if kind.le is not None else kind.lt
    if low is None:
        return ""
    above = " above" if kind.gt is not None else " from"
    if high is None:
        return f"{above} {_plain(low)}"
    return f"{above} {_plain(low)} {'to' if kind.le is not None else 'to below'} {_plain(high)}"


def _plain(number: float) -> str:
    if number == 2**63 - 1:
        return "2^63 − 1"
    return f"{number:,}" if float(number).is_integer() else f"{number:g}"
