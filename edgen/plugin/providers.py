"""Names for providers that call a service over HTTP as edgen's own providers do, or use its batch service.

    from edgen.plugin.providers import HttpBackend, call_error

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Optional parts of a provider
    PricesAndTokens: list prices, tokens of pictures, the vocabulary. ServiceKeys: requests for keys and other
        secrets.
Settings
    Price: prices of a model's tokens. KeyRequest: the consent that a key needs.
    EnvName, Positive, Seed, Text, Url: types of fields. ServedConfig: settings with an address. OPTIONAL:
        settings that only some services have.
    LISTED_TIERS: names of the tier of list prices.
Keys
    Credentials, KeySource: keys and tokens, read again when they change. http_key_request: the consent that a
        key needs. OWN_HEADERS: headers that edgen sets itself. names_a_key: whether a header is for a key.
        reads_as_key: whether a text looks like one. place_of: the parts of an address. Secrets, scrub,
        without_secrets: texts without keys.
One call
    HttpBackend, Http: a backend with its connection. append_path, base_address, is_local: addresses.
    encode, encode_prompt, decode: bodies of requests and answers. keep_stated: the settings that a job
        states. refuse_extra: refuses settings that edgen sets itself. describe_config: a backend's settings
        as JSON.
    Token: one token of a reply. FinishReason: why an answer ended. Usage: the tokens of a call; read_usage,
        read_member, add_counts, MOST_PROMPT: counts of them.
    StatedToken, LEAST, read_token, join_tokens: tokens with log probabilities. memory_size: bytes that this
        process can have.
Pictures
    PromptPicture, PictureTokens, lower_pictures: for a service that sees pictures.
Failures
    ErrorBody, read_error, call_error: a service's error. Classify, kind_of_status: its kind.
    add_hint, clean_message: its message. WORD: fewest characters of a text that is not an ordinary word.
        retry_after: the seconds that a service asks to wait.
Prices
    PriceList: the price list of a service, a YAML file.
Batches
    BatchServices, BatchLimits, Sending, RemoteBatch, LineResult, NeverBegun: a provider's batch side.
    Suspects, mark_of: batches that may be the one whose sending was interrupted. SdkBatches, load_sdk,
        system_certificates: a vendor's SDK. Sink: a result file being written. read_members,
        read_text_member, read_number_member: contents of its lines. refusal_without_reason: a failure without
        a message. run_in_thread: a blocking call of the SDK.
People
    AskPeople, PersonRequest: a way to ask people, and a request. view_of: a person's view of a request.
    Forms, seconds: a type of settings, and a span of time in seconds.
"""

from __future__ import annotations

from edgen.config.backends import LISTED_TIERS as LISTED_TIERS
from edgen.config.backends import OPTIONAL as OPTIONAL
from edgen.config.backends import EnvName as EnvName
from edgen.config.backends import Forms as Forms
from edgen.config.backends import KeyRequest as KeyRequest
from edgen.config.backends import Price as Price
from edgen.config.backends import PricesAndTokens as PricesAndTokens
from edgen.config.backends import Seed as Seed
from edgen.config.backends import ServiceKeys as ServiceKeys
from edgen.config.backends import Text as Text
from edgen.config.backends import Url as Url
from edgen.config.served import ServedConfig as ServedConfig
from edgen.core.options import Positive as Positive
from edgen.core.people.requests import AskPeople as AskPeople
from edgen.core.people.requests import PersonRequest as PersonRequest
from edgen.core.pictures import PictureTokens as PictureTokens
from edgen.core.pictures import PromptPicture as PromptPicture
from edgen.core.pictures import lower_pictures as lower_pictures
from edgen.core.system import memory_size as memory_size
from edgen.core.system import run_in_thread as run_in_thread
from edgen.core.text import seconds as seconds
from edgen.core.values import FinishReason as FinishReason
from edgen.core.values import Token as Token
from edgen.core.values import Usage as Usage
from edgen.protocols.views import view_of as view_of
from edgen.providers.batches import BatchLimits as BatchLimits
from edgen.providers.batches import BatchServices as BatchServices
from edgen.providers.batches import LineResult as LineResult
from edgen.providers.batches import NeverBegun as NeverBegun
from edgen.providers.batches import RemoteBatch as RemoteBatch
from edgen.providers.batches import Sending as Sending
from edgen.providers.batches import Suspects as Suspects
from edgen.providers.batches import mark_of as mark_of
from edgen.providers.credentials import Credentials as Credentials
from edgen.providers.failures import WORD as WORD
from edgen.providers.failures import Classify as Classify
from edgen.providers.failures import ErrorBody as ErrorBody
from edgen.providers.failures import Secrets as Secrets
from edgen.providers.failures import add_hint as add_hint
from edgen.providers.failures import call_error as call_error
from edgen.providers.failures import clean_message as clean_message
from edgen.providers.failures import decode as decode
from edgen.providers.failures import kind_of_status as kind_of_status
from edgen.providers.failures import read_error as read_error
from edgen.providers.failures import retry_after as retry_after
from edgen.providers.failures import scrub as scrub
from edgen.providers.failures import without_secrets as without_secrets
from edgen.providers.http import Http as Http
from edgen.providers.http import HttpBackend as HttpBackend
from edgen.providers.http import append_path as append_path
from edgen.providers.http import base_address as base_address
from edgen.providers.http import describe_config as describe_config
from edgen.providers.http import encode as encode
from edgen.providers.http import encode_prompt as encode_prompt
from edgen.providers.http import http_key_request as http_key_request
from edgen.providers.http import is_local as is_local
from edgen.providers.http import keep_stated as keep_stated
from edgen.providers.http import refuse_extra as refuse_extra
from edgen.providers.key_command import KeySource as KeySource
from edgen.providers.keys import OWN_HEADERS as OWN_HEADERS
from edgen.providers.keys import names_a_key as names_a_key
from edgen.providers.keys import reads_as_key as reads_as_key
from edgen.providers.prices import PriceList as PriceList
from edgen.providers.sdk import load_sdk as load_sdk
from edgen.providers.sdk import system_certificates as system_certificates
from edgen.providers.sdk_batches import SdkBatches as SdkBatches
from edgen.providers.sdk_batches import Sink as Sink
from edgen.providers.sdk_batches import read_members as read_members
from edgen.providers.sdk_batches import read_number_member as read_number_member
from edgen.providers.sdk_batches import read_text_member as read_text_member
from edgen.providers.sdk_batches import refusal_without_reason as refusal_without_reason
from edgen.providers.tokens import LEAST as LEAST
from edgen.providers.tokens import StatedToken as StatedToken
from edgen.providers.tokens import join_tokens as join_tokens
from edgen.providers.tokens import read_token as read_token
from edgen.providers.trust import place_of as place_of
from edgen.providers.usage import MOST_PROMPT as MOST_PROMPT
from edgen.providers.usage import add_counts as add_counts
from edgen.providers.usage import read_member as read_member
from edgen.providers.usage import read_usage as read_usage
