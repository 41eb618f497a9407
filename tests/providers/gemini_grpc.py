"""The Gemini API's gRPC services on this machine, over TLS with a generated certificate.

The prompt's last text selects the answer: see `_SCRIPT`.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.late import Late

grpc: Any = Late("grpc")
x509: Any = Late("cryptography.x509")
hashes: Any = Late("cryptography.hazmat.primitives.hashes")
serialization: Any = Late("cryptography.hazmat.primitives.serialization")
ec: Any = Late("cryptography.hazmat.primitives.asymmetric.ec")

GENERATE = "google.ai.generativelanguage.v1beta.GenerativeService"
MODELS = "google.ai.generativelanguage.v1beta.ModelService"


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate for localhost and its key, as PEM."""

    public: bytes
    private: bytes


def make_certificate() -> Certificate:
    """Return a certificate of two days that is valid now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(certificate.public_bytes(pem), private)


@dataclass
class GrpcServer:
    """The address of the services, and their requests."""

    endpoint: str = ""
    requests: list[Any] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)

    async def generate(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.metadata.append({item.key: item.value for item in context.invocation_metadata()})
        step = _SCRIPT[request.contents[-1].parts[0].text]
        if isinstance(step, tuple):
            status, said = step
            await context.abort(grpc.StatusCode[status], said)
        if step == "hang":
            await asyncio.sleep(3600)
        if step in ("PerMinute", "PerDay"):
            await context.abort_with_status(_exhausted(step, self.metadata[-1]["x-goog-api-key"]))
        return _answer(**step)

    async def list_models(self, request: Any, context: Any) -> Any:
        from google.ai import generativelanguage as glm

        def model(name: str, method: str) -> Any:
            return glm.Model(name=f"models/{name}", supported_generation_methods=[method])

        if not request.page_token:
            models = [model("a", "generateContent"), model("embed", "embedContent")]
            return glm.ListModelsResponse(models=models, next_page_token="2")
        return glm.ListModelsResponse(models=[model("b", "generateContent")])


_SCRIPT: dict[str, Any] = {
    "hello": {"texts": ["hi ", "there"]},
    "long": {"texts": ["cut o"], "reason": 2},
    "unsafe": {"texts": [], "reason": 3},
    "newer": {"texts": ["a"], "reason": 99},
    "blocked": {"block": 4},
    "nothing": {},
    "minute": "PerMinute",
    "day": "PerDay",
    "hang": "hang",
    "key": ("UNAUTHENTICATED", "invalid credentials"),
    "invalid key": ("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "denied": ("PERMISSION_DENIED", "denied"),
    "model": ("NOT_FOUND", "no such model"),
    "big": (
        "INVALID_ARGUMENT",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
    ),
    "bad": ("INVALID_ARGUMENT", "bad value"),
    "full": ("UNAVAILABLE", "The model is overloaded."),
    "broken": ("INTERNAL", "internal"),
}


def _answer(texts: list[str] | None = None, reason: int = 1, block: int | None = None) -> Any:
    from google.ai import generativelanguage as glm

    if block is not None:
        feedback = glm.GenerateContentResponse.PromptFeedback(block_reason=block)
        return glm.GenerateContentResponse(prompt_feedback=feedback)
    if texts is None:
        return glm.GenerateContentResponse()
    content = glm.Content(role="model", parts=[glm.Part(text=text) for text in texts])
    return glm.GenerateContentResponse(
        candidates=[glm.Candidate(content=content, finish_reason=reason)],
        usage_metadata={"prompt_token_count": 3, "candidates_token_count": 4},
        model_version="m-001",
    )


def _exhausted(quota: str, key: str) -> Any:
    """Return RESOURCE_EXHAUSTED with Google's typed details, and the caller's key in its message."""
    from google.protobuf.duration_pb2 import Duration
    from google.rpc import error_details_pb2, status_pb2
    from grpc_status import rpc_status

    status = status_pb2.Status(code=8, message=f"quota exceeded for {key}")
    status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=3, nanos=500_000_000)))
    failure = error_details_pb2.QuotaFailure()
    failure.violations.add(quota_id=f"GenerateRequests{quota}PerProjectPerModel")
    status.details.add().Pack(failure)
    return rpc_status.to_status(status)


@contextlib.asynccontextmanager
async def grpc_serving(certificate: Certificate) -> AsyncIterator[GrpcServer]:
    """Run the services on a free port of localhost; yield their address and requests."""
    from google.ai import generativelanguage as glm

    def method(handler: Any, request: Any, response: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            handler, request_deserializer=request.deserialize, response_serializer=response.serialize
        )

    fake = GrpcServer()
    generate = method(fake.generate, glm.GenerateContentRequest, glm.GenerateContentResponse)
    list_models = method(fake.list_models, glm.ListModelsRequest, glm.ListModelsResponse)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(GENERATE, {"GenerateContent": generate}),
            grpc.method_handlers_generic_handler(MODELS, {"ListModels": list_models}),
        )
    )
    credentials = grpc.ssl_server_credentials([(certificate.private, certificate.public)])
    fake.endpoint = f"localhost:{server.add_secure_port('localhost:0', credentials)}"
    await server.start()
    try:
        yield fake
    finally:
        await server.stop(0)
