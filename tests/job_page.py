"""docs/job.md: every key of a job file, from the types that it is read into.

A section is a struct: a list of its keys and an example that has all of them, which the page shows where
values are nested. Only the examples are written here, a domain's in tests/domains/X/job_sections.py; `python
-m tests.schemas` assembles the page.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import inspect as types

from edgen.config import Job
from edgen.config.backends import BackendConfig, Price
from edgen.config.job import Limits
from edgen.config.job_parts import BatchSettings, Branch, LabelsAsked, PairSettings, Resolved, Shards, Split
from edgen.config.label_set import LabelDefinition, LabelSet
from edgen.config.loading import KEYS, NOT_IN_ARMS
from edgen.config.served import ServedConfig
from edgen.core import registry
from edgen.protocols.selfplay_settings import Selfplay
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
    for plugin in registry.list_plugins()
    if plugin.kind == "protocol" and plugin.package == registry.DISTRIBUTION
    and (struct := getattr(registry.find("protocol", plugin.name), "Config", None))
}  # fmt: skip
# Their descriptions, as `edgen list protocols` prints them.
SUMMARIES = {name: registry.find("protocol", name).summary for name in PROTOCOLS}
IN_ARMS = tuple(key for key in (*KEYS, *PROTOCOLS) if key not in NOT_IN_ARMS and key != "oneshot")


HEAD = """\
# Job file

A job is one YAML file of at most 4 MiB. Unknown keys are invalid. Paths are relative to the file. `--set limits.in_flight=8`
overrides a key.

Parentheses hold a key's values and default. A key without values is a text. A key without a default is `null` or empty: not
set, or as the service decides. A capital letter such as N stands for the key's value.

Editors with a YAML language server complete and check jobs and spaces by JSON Schemas
([job](../validators/job.schema.json), [space](../validators/space.schema.json)). `edgen preview JOB` also finds keys that
exclude each other.
"""

SECTIONS = (
    Section(Job, "The job", "[jobs/quickstart.yaml](../jobs/quickstart.yaml) is an example.", """\
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
on: ray                       # a Ray cluster on this machine
workers: 8
partitions: 4
split: {test: 0.1, by: topic}
shards: {train: 5, test: 1}
"""),
    Section(BackendConfig, "backends: what every kind takes", "Backends are named after roles: `default`, `judge`, `annotator` and those of the space, such as `teacher`. `type` selects the kind; [Model providers](providers.md) has examples.", """\
backends:
  default: {type: simulator, model: edgen-simulator, temperature: 0.9, top_p: 0.95, max_tokens: 2048, retry_max_tokens: 4096, stop: ["[end of conversation]"], seed: auto,
            reasoning_effort: null, verbosity: null, service_tier: null, choices: null, forms: auto, price: {prompt: 0, completion: 0}}
"""),
    Section(ServedConfig, "backends: shared keys", "Each kind below names those that it takes. A kind with `base_url` takes the next two keys, too; see [Scale](scale.md).", """\
backends:
  default: {type: openai, model: my-model, base_url: node-local, more_base_urls: [], known_as: "http://fleet/v1"}
"""),
    Section(OpenAIConfig, "backends: openai", "Any Chat Completions service.", """\
backends:
  default: {type: openai, model: my-model, base_url: ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8081/v1"], api_key_env: MY_KEY, tokenizer: ./tokenizer.json,
            auth: bearer, key_command: [], headers: {X-Title: lessons}, query: {api-version: "2024-10-21"}, max_tokens_field: auto,
            frequency_penalty: 0.2, presence_penalty: 0, extra_body: {min_p: 0.05}}
"""),
    Section(OpenAIResponsesConfig, "backends: openai-responses", "OpenAI's Responses API, which takes no `seed` and no `stop`.", """\
backends:
  default: {type: openai-responses, model: my-model, api_key_env: OPENAI_API_KEY, extra_body: {metadata: {run: nightly}}, store: false}
"""),
    Section(AnthropicConfig, "backends: anthropic", "Anthropic's Messages API.", """\
backends:
  default: {type: anthropic, model: my-model, base_url: "https://api.anthropic.com", api_key_env: ANTHROPIC_API_KEY, max_tokens: 8192,
            top_k: 40, reasoning_effort: low, service_tier: auto, prompt_cache: 5m, extra_body: {metadata: {user_id: nightly}}}
"""),
    Section(GeminiConfig, "backends: gemini", "The Gemini API.", """\
backends:
  default: {type: gemini, model: my-model, base_url: "https://generativelanguage.googleapis.com", api_key_env: GOOGLE_API_KEY, top_k: 40,
            safety_settings: {HARM_CATEGORY_HARASSMENT: BLOCK_NONE}, extra_body: {}}
"""),
    Section(GoogleGenerativeAIConfig, "backends: google-generativeai", "The same service through its outdated SDK.", """\
backends:
  default: {type: google-generativeai, model: my-model, endpoint: generativelanguage.googleapis.com, api_key_env: MY_KEY}
"""),
    Section(VertexConfig, "backends: vertex", "The same models on Google Cloud's Vertex AI.", """\
backends:
  default: {type: vertex, model: my-model, project: my-project, location: europe-west4, base_url: null}
"""),
    Section(LitellmConfig, "backends: litellm", "Any service that litellm supports.", """\
backends:
  default: {type: litellm, model: groq/openai/gpt-oss-20b, base_url: null, api_key_env: GROQ_API_KEY, auth: key, api_version: null,
            options: {top_k: 40}}
"""),
    Section(LlamaCppConfig, "backends: llamacpp", "A GGUF model in edgen's own process.", """\
backends:
  default: {type: llamacpp, model: smollm2, context: 4096, slots: 1, threads: 1, max_tokens: 1024, seed: auto,
            extra_body: {repeat_penalty: 1.1, min_p: 0.05}}
  judge: {type: llamacpp, path: ./models/judge.gguf, chat_template: ./models/chat.jinja}
"""),
    Section(HumanConfig, "backends: human", "People; see [Play a role](play.md).", """\
backends:
  default: {type: simulator}
  student: {type: human, model: human, forms: auto, wait: 1h, stand_in: default, consent: null, before: null, after: null}
"""),
    Section(SimulatorConfig, "backends: simulator", "For rehearsal and tests.", """\
backends:
  default: {type: simulator, model: edgen-simulator, faults: "429=0.1,refusal=0.02", latency_ms: 100, planted: 5}
  labeller: {type: simulator, confusion: {Hint: {Question: 0.2}}}
"""),
    Section(Price, "price, of a backend", "US dollars per million tokens.", """\
price: {prompt: 0.15, completion: 0.60, cache_read: 0.075, cache_write: 0.19, batch: 0.5, batch_cache: 0.5, date: 2027-01-31, source: "the provider's list"}
"""),
    Section(Selfplay, "selfplay", "For `protocol: selfplay`.", """\
selfplay: {first: teacher, order: [teacher, student], max_turns: 20, closing: student, leaked_secret: reject, loop: flag}
"""),
    *(section for module in modules_of("job_sections") for section in module.SECTIONS),
    Section(LabelsAsked, "labels", "Each key is a layer; see [gates on labels](selecting.md#gates-on-labels).", """\
labels:
  quality: {unit: conversation, annotators: 3}
  moves: {set: teacher_moves, unit: turn, together: true}
"""),
    Section(LabelSet, "set", "The key `set` of a layer as a mapping: a run's own copy of its job holds the label set itself.", """\
labels:
  tone:
    set: {name: tone, source: my own, several: false, roles: [Teacher], other: Neutral, labels: [{name: Warm, definition: praises}]}
""", elsewhere="labels.md"),
    Section(LabelDefinition, "labels of a set", "The key `labels` of a label set.", """\
labels:
  tone:
    set:
      name: tone
      labels:
        - {name: Warm, definition: praises or encourages, examples: [Well done!]}
        - {name: Strict, definition: blames or warns}
""", elsewhere="labels.md"),
    Section(Branch, "branch", "For `protocol: selfplay` with [replicates](protocols.md#replicates-and-branches).", """\
branch: {at: 3, role: teacher}
"""),
    Section(PairSettings, "pairs", "See [Preference pairs](pairs.md).", """\
pairs: {votes: 1, matches: 6, compare: conversation, min_margin: 0.1, max_per_scenario: 3, min_turns_left: 2, rollouts: 4,
        logprobs: 5, judge_directed: unlabelled}
"""),
    Section(Limits, "limits", "May change between two starts of a run.", """\
limits: {in_flight: 256, requests_per_minute: 600, tokens_per_minute: 200000, attempts: 6, give_up_after: 600, timeout: 120,
         stop_after_failures: 25, max_tokens: 5000000, max_cost: 10, budget: budget.yaml, arms_at_once: 2}
"""),
    Section(BatchSettings, "batch", "For `--via batch`; see [Scheduling](scheduling.md#batch-services). Spans: `6h`, `1h 30m`, `45s`.", """\
batch: {online_after: 6h, poll: 60s, max_requests: 10000}
"""),
    Section(Split, "split", "Groups stay whole, so the test side's share is approximate.", """\
split: {test: 0.15, by: scenario}
"""),
    Section(Shards, "shards", "Files of `shards/` in the run's folder.", """\
shards: {train: 5, test: 1}
"""),
)  # fmt: skip
# edgen writes the key `resolved` into a run's copy of its job; users do not write it.
STRUCTS = (*(section.struct for section in SECTIONS), Resolved)
_LINKS = {section.struct: section for section in SECTIONS}

ARMS = """\
## arms

An arm's keys override the job's, mapping by mapping; a backend of another `type` replaces the job's. Arms can change
{keys}. See [Experiments](experiments.md).

```yaml
arms:
  plain: {{}}
  warm: {{backends: {{default: {{temperature: 1.2}}}}}}
  json: {{prompt: education_dialogue_json}}
```
"""


def page(sentences: Sentences) -> str:
    """Return the whole page."""
    parts = [HEAD]
    for section in SECTIONS:
        if section.elsewhere:
            continue
        if section.struct is PairSettings:
            parts.append(ARMS.format(keys=", ".join(f"`{key}`" for key in IN_ARMS)))
        parts.append("\n".join(_section(section, sentences)))
    return "\n".join(parts)


def _section(section: Section, sentences: Sentences) -> list[str]:
    struct = section.struct
    lines = [f"## {section.title}", "", section.about, ""]
    if taken := [
        f"`{field.encode_name}`{_default(field).replace('; ', ' (')}{')' if _default(field) else ''}"
        for field in _taken(struct, sentences)
    ]:
        lines += [f"Shared keys: {', '.join(taken)}.", ""]
    rows = [
        f"- `{field.encode_name}`{_kind(field)}: {meaning(sentences(struct)[field.name])}"
        for field in own_fields(struct, sentences)
    ]
    if struct is ServedConfig:
        rows += [
            f"- `{field.encode_name}`{_in_parentheses(_values(field).removesuffix(' or null'))}: {meaning(text)}"
            for field, text in _shared(sentences).values()
        ]
    if struct is Job:
        several = [f"[`{name}`](#{name})" for name, own in PROTOCOLS.items() if own.__struct_fields__]
        rows.append(f"- {', '.join(several)} (mappings): settings of the protocol of this name.")
    lines += [*rows, ""] if rows else []
    return [*lines, *(["```yaml", section.example.rstrip(), "```", ""] if section.shown else [])]


def meaning(sentence: str) -> str:
    """Return a sentence with links to other pages, without the general meaning of null."""
    told = re.sub(r"(?:; n|\. N)ull: (none|all|no \w+|the service's default)\.$", ".", sentence)
    return re.sub(r"docs/(\w+)\.md", r"[\1](\1.md)", told)


def own_fields(struct: type[msgspec.Struct], sentences: Sentences) -> list[msgspec.structs.FieldInfo]:
    """Return the fields that a section lists.

    A kind of backend has neither the fields of all kinds nor those of several kinds.
    """
    shared = {field.name for field in _taken(struct, sentences)}
    fields = [field for field in _declared(struct) if field.name not in shared]
    return sorted(fields, key=lambda field: issubclass(struct, BackendConfig) and field.name != "model")


def _is_kind(struct: type[msgspec.Struct]) -> bool:
    return issubclass(struct, BackendConfig) and struct not in (BackendConfig, ServedConfig)


@functools.cache
def _declared(struct: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    """Return the fields of a struct; of a backend, without the unchanged ones of all backends."""
    left_out = {"protocol_settings", "speakers"}
    if issubclass(struct, BackendConfig) and struct is not BackendConfig:
        base = ServedConfig if _is_kind(struct) and issubclass(struct, ServedConfig) else BackendConfig
        left_out |= {*base.__struct_fields__} - {*vars(struct).get("__annotations__", {}), "base_url"}
    return [field for field in msgspec.structs.fields(struct) if field.name not in left_out]


@functools.cache
def _shared(sentences: Sentences) -> dict[str, tuple[msgspec.structs.FieldInfo, str]]:
    """Return the keys that several kinds of backends share, each with its sentence.

    Shared keys have one type and one sentence in several kinds.
    """
    kinds = [section.struct for section in SECTIONS if _is_kind(section.struct)]
    fields = [(field, sentences(kind)[field.name]) for kind in kinds for field in _declared(kind)]
    counts = Counter((field.name, _values(field), text) for field, text in fields)
    found: dict[str, tuple[msgspec.structs.FieldInfo, str]] = {}
    for field, text in fields:
        if counts[field.name, _values(field), text] > 1 and field.name != "base_url":
            found.setdefault(field.name, (field, text))
    return found


def _taken(struct: type[msgspec.Struct], sentences: Sentences) -> list[msgspec.structs.FieldInfo]:
    """Return the keys of several kinds that a kind of backend takes."""
    shared = {(field.name, _values(field), text) for field, text in _shared(sentences).values()}
    return [
        field
        for field in (_declared(struct) if _is_kind(struct) else ())
        if (field.name, _values(field), sentences(struct)[field.name]) in shared
        or (
            field.name == "base_url" and field.default is not None
        )  # without a default, its text explains null
    ]


def _kind(field: msgspec.structs.FieldInfo) -> str:
    """Return the values and the default of a key, in parentheses.

    A default shows that a key is a boolean or a number.
    """
    values, default = _values(field), _default(field)
    if default and not field.required:
        values = re.sub(r"^(boolean|text|whole number|number)\b(?! or) ?", "", values)
    return _in_parentheses(f"{values}{default}".removeprefix("; "))


def _in_parentheses(values: str) -> str:
    """Return the values in parentheses; nothing for a text."""
    return "" if values == "text" else f" ({values.removeprefix('text; ')})"


def _default(field: msgspec.structs.FieldInfo) -> str:
    """Return a default after a semicolon; empty where it is null or empty."""
    if field.required:
        return "; required"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()  # type: ignore[misc]
    if isinstance(default, msgspec.Struct) or default is None or default in ("", (), {}):
        return ""
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return f"; `{msgspec.json.encode(default).decode()}`".replace('"', "")


_PATTERNS = {
    "name": "letters, digits, `.`, `_`, `-`",
    "date": "date",
    "api_key_env": "upper-case name",
    "base_url": "URL",
    "service_tier": "lower-case name",
    "poll": "span",
    "on": "`here`, `ray` or `ray://HOST:PORT`",
}


def _values(field: msgspec.structs.FieldInfo) -> str:
    """Return the type of a key; null is left out if it is the default."""
    words = values(types.type_info(field.type))
    return words.removesuffix(" or null") if field.default is None else words


def values(kind: Any) -> str:
    """Return the values of a type, in words."""
    match kind:
        case types.StructType(cls=cls) if cls is BackendConfig:
            return "[backend](#backends-what-every-kind-takes)"
        case types.UnionType(types=several):
            kinds = [values(one) for one in several if not isinstance(one, types.NoneType)]
            words = " or ".join(dict.fromkeys(kinds))
            return words + (" or null" if kind.includes_none else "")
        case types.Metadata(type=inner):
            return values(inner)
        case types.LiteralType(values=words):
            return ", ".join(f"`{word}`" for word in words)
        case types.BoolType():
            return "boolean"
        case types.IntType():
            return f"whole number{_range(kind)}".removesuffix(" ≥ 1").removesuffix(" ≥ 0")  # as every count
        case types.FloatType():
            return f"number{_range(kind)}"
        case types.StrType(pattern=str(pattern)):
            return _shape(pattern)
        case types.StrType():
            return "text"
        case types.VarTupleType(item_type=inner) | types.ListType(item_type=inner):
            return f"list of {_many(values(inner))}"
        case types.DictType(value_type=inner) if isinstance(inner, types.AnyType):
            return "mapping"
        case types.DictType(value_type=types.UnionType(types=(one, types.DictType()))):
            return f"mapping of {_many(values(one))}, or of such mappings"
        case types.DictType(value_type=inner):
            return f"mapping of {_many(values(inner))}"
        case types.StructType(cls=cls) if cls is Resolved:
            return "mapping"
        case types.StructType(cls=cls):
            section = _LINKS[cls]
            anchor = "".join(c for c in section.title.lower().replace(" ", "-") if c.isalnum() or c == "-")
            return f"[mapping]({section.elsewhere or f'#{anchor}'})"
    raise TypeError(f"{kind}: how is it worded?")


def _many(words: str) -> str:
    """Return the words for several values of a type."""
    if words.startswith("whole number"):
        return words.replace("number", "numbers", 1)
    one, _, rest = words.partition(" ")
    if one == "one":
        return words
    several = f"{one[:-1]}s{one[-1]}" if one.endswith(",") else f"{one}s"
    return " ".join(filter(None, (several, rest))) if not one.startswith("[") else words.replace("]", "s]")


def _shape(pattern: str) -> str:
    for field in (
        *msgspec.structs.fields(Job),
        *msgspec.structs.fields(OpenAIConfig),
        *msgspec.structs.fields(Price),
        *msgspec.structs.fields(BatchSettings),
    ):
        info = types.type_info(field.type)
        for one in info.types if isinstance(info, types.UnionType) else (info,):
            one = one.type if isinstance(one, types.Metadata) else one
            if isinstance(one, types.StrType) and one.pattern == pattern and field.name in _PATTERNS:
                return _PATTERNS[field.name]
    return "text"


def _range(kind: types.IntType | types.FloatType) -> str:
    low = kind.ge if kind.ge is not None else kind.gt
    high = kind.le if kind.le is not None else kind.lt
    if low is None:
        return ""
    if high is None:
        return f" {'>' if kind.gt is not None else '≥'} {_plain(low)}"
    if kind.gt is not None or kind.lt is not None or low < 0:
        return f" {'above ' if kind.gt is not None else ''}{_plain(low)} to {'' if kind.le is not None else 'below '}{_plain(high)}"
    return f" {_plain(low)}–{_plain(high)}"


def _plain(number: float) -> str:
    if number == 2**63 - 1:
        return "2^63−1"
    return f"{number:,}" if float(number).is_integer() else f"{number:g}"
