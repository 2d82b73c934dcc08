"""One typed settings tree, from a YAML file and the environment (`MASKCAST_MODEL__NUM_REPLICAS=2`); the file is overridden
by the environment, and a key that is not known is refused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, SecretStr, ValidationError, model_validator

from deployments.config_model import ModelSettings
from deployments.config_models import Section
from deployments.config_values import SHORTEST_SECRET, ApiKey, Format, NodeLabels, Whitespace, long_enough
from deployments.environment_settings import check_texts, from_environment
from deployments.errors import SettingsError
from deployments.secret_file import filled, plain, without, write


class GrammarSettings(Section):
    """The compile pool and what a constraint may cost."""

    compile_replicas: int = Field(2, ge=1, description="the least, where the pool is scaled")
    max_compile_replicas: int | None = Field(None, ge=1, description="the most; None: the pool is not scaled")
    cpus_per_compiler: float = Field(0.1, ge=0, description="CPUs that Ray reserves for one compile replica")
    nodes: NodeLabels = Field(default_factory=dict, description="labels of the Ray nodes that compile replicas stand on; empty: any")
    compile_workers: int = Field(2, ge=1, description="slow compiles at a time in one replica; one API key gets all but one of them")
    max_waiting_compiles: int = Field(64, ge=1, description="grammars that wait in one replica; beyond it the longest queue gets a 503")
    max_ongoing_compiles: int = Field(1024, ge=1, description="requests that one compile replica takes at a time")
    max_queued_compiles: int = Field(1024, ge=1, description="requests that wait per caller for the pool; beyond it: 503")
    compile_deadline_s: float = Field(
        5.0, gt=0, description="processor time of one compile; over it: 400; four times as much by the clock, and it is a 503"
    )
    compile_memory_mib: int = Field(4096, ge=512, description="address space of one compile beyond the idle child's")
    max_artifact_mib: int = Field(64, ge=1, description="a compiled grammar as it is stored; over it: 400")
    max_constraint_bytes: int = Field(512 * 1024, ge=1)
    max_nesting: int = Field(64, ge=1, description="levels of objects and arrays in a schema or structural tag")
    max_choices: int = Field(10_000, ge=1)
    memory_cache_mib: int = Field(256, ge=1, description="artifacts kept in the memory of one process")
    max_registered: int = Field(1000, ge=0, description="grammars that one tenant may name (POST /v1/grammars)")
    max_registered_mib: float = Field(16, ge=0, description="what one tenant's named grammars take of Redis")
    max_registered_mib_of_all: float = Field(64, ge=0, description="what those of all tenants do; they do not expire")
    whitespace: Whitespace = Field("standard", description="for JSON constraints that do not choose")
    unenforceable: Literal["refuse", "check"] = Field(
        "refuse", description="what no backend enforces of a schema; 'check': it is left out, and the finished answer is checked"
    )
    check_retries: int = Field(3, ge=0, description="further answers that are asked for in place of one that fails its check")
    check_deadline_s: float = Field(2.0, gt=0, description="processor time of one check; over it the answer has failed")
    disable_additional_properties: bool = Field(True, description="for schemas that say nothing of them; false: as JSON Schema means")
    property_order: Literal["declared", "any"] = Field("declared", description="of members, for schemas whose request does not choose")
    unknown_keywords: Literal["warn", "refuse"] = Field("warn", description="assert nothing, and the answer says so; or: 400")
    format: Format = Field("enforce", description="for schemas whose request does not choose; annotate: `format` asserts nothing")
    canonical: bool = Field(False, description="for constraints that do not choose: answers keep to the tokens that the tokenizer makes")


class RedisSettings(Section):
    """The shared grammar cache; without a URL every process compiles for itself."""

    url: str | None = Field(None, description="redis://host:port/db, or rediss:// over TLS; None: no shared cache")
    password: SecretStr | None = None
    ca_file: str | None = Field(None, description="with rediss://, who may sign Redis's certificate (PEM); None: whom the node trusts")
    namespace: str = "maskcast"
    timeout_ms: int = Field(20, ge=1, description="an answer that takes longer is a miss; several processes may ask for one request")
    head_start_ms: float = Field(
        8, ge=0, description="after so long without an answer, the artifact is made or asked for elsewhere as well"
    )
    ttl_s: int = Field(7 * 24 * 3600, ge=1)
    max_value_mib: int = Field(16, ge=1)

    @model_validator(mode="after")
    def _password_is_a_secret(self) -> Self:
        if self.url is not None and "@" in self.url.partition("://")[2].partition("/")[0]:
            raise ValueError("url has a user or a password in it, which is no secret there: set password")
        return self

    @model_validator(mode="after")
    def _authorities_are_for_tls(self) -> Self:
        if self.ca_file is not None and not (self.url or "").startswith("rediss://"):
            raise ValueError("ca_file is for a url that begins with rediss://")
        return self


class RouterSettings(Section):
    """How a request finds its model replica."""

    policy: Literal["schema", "power_of_two"] = Field(
        "schema", description="'schema': each grammar has its replica; or the shorter of two queues"
    )
    bound: float = Field(1.25, ge=1, description="a replica over `bound` × the mean load is passed over; for popular grammars sooner")


class LimitSettings(Section):
    """What one request may ask for; over it: 400, which names the field."""

    max_sequences: int = Field(128, ge=1, description="answers of one request: n of each prompt")
    max_tokens: int | None = Field(None, ge=1, description="tokens of one answer, also of one that asks for none; None: as the model can")
    max_logprobs: int = Field(20, ge=0, description="log probabilities of one token of an answer; `logprob_token_ids`, too")
    max_logprob_values: int = Field(10_000, ge=1, description="log probabilities of all tokens of all answers of a request")
    max_prompt_logprobs: int | None = Field(
        None, ge=0, description="log probabilities of one token of a prompt; None: none, since logits of whole prompts take gigabytes"
    )
    max_logit_bias: int = Field(1024, ge=0, le=1024, description="entries of `logit_bias`; of `allowed_token_ids`, too")
    max_stop: int = Field(64, ge=0, le=64, description="stop texts; stop tokens and bad words, too")
    max_messages: int = Field(2048, ge=1, description="messages of a chat, and parts and calls in all of them")
    max_tools: int = Field(512, ge=0)
    max_body_values: int = Field(
        250_000, ge=1, description="values in a body's JSON, at all levels; arrays, objects, members and long numbers count as more"
    )
    max_header_kib: int = Field(32, ge=1, description="headers of a request; over it: 431")
    read_timeout_s: float = Field(30.0, gt=0, description="for a request to come, headers and body; over it: 408")
    write_timeout_s: float = Field(60.0, gt=0, description="for a client to take what waits for it; over it the connection is closed")
    request_timeout_s: float = Field(600.0, gt=0, description="for a request to be answered, once it has come; over it: 504")


class ResponseSettings(Section):
    """Responses that clients may read again or go on from: in Redis, or without one in the ingress that has answered them."""

    ttl_s: int = Field(24 * 3600, ge=1, description="a response is kept for so long")
    max_mib: float = Field(64, gt=0, description="of all responses of a tenant, without Redis of all together; the oldest go first")


class KeyLimits(Section):
    """What one API key may use; None: as much as there is."""

    concurrent_requests: int | None = Field(None, ge=1, description="requests that are under way at a time")
    requests_per_minute: int | None = Field(None, ge=1, description="in any sixty seconds")
    tokens_per_minute: int | None = Field(None, ge=1, description="of prompts and answers, in any sixty seconds")

    def over(self, others: KeyLimits) -> Self:
        """These, and where they leave something open, the others."""
        return self.model_copy(update={name: getattr(others, name) for name in KeyLimits.model_fields if getattr(self, name) is None})


class TenantSettings(KeyLimits):
    """The limits of each API key, as far as the key file says nothing else, and what keys share."""

    share_prefixes: bool = Field(
        False, description="tenants use each other's prefix cache: faster, and whoever asks can tell what others asked"
    )


class HttpSettings(Section):
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = Field(
        (), description="names that clients may call the service by; empty: all, but on a loopback address no name except localhost"
    )
    api_keys: tuple[ApiKey, ...] = Field((), description="accepted bearer tokens, of 16 characters at least; empty: no authentication")
    api_keys_file: str | None = Field(
        None, min_length=1, description="further keys, by their digests, with names, scopes and limits; read anew on change"
    )
    max_body_mib: float = Field(2.0, gt=0)
    max_bodies_mib: float = Field(
        512.0,
        gt=0,
        description="memory of one ingress for bodies that come, wait or are answered, and their values; beyond it: 503",
    )
    max_connections: int = Field(16_384, ge=1, description="connections that one ingress holds open; beyond it a new one is a 503")
    max_ongoing_requests: int = Field(2048, ge=1, description="requests that one ingress holds open at a time; beyond it: 503")
    num_replicas: int = Field(1, ge=1, description="ingresses; one alone is in the model replica, where there is one of that as well")
    nodes: NodeLabels = Field(default_factory=dict, description="labels of the Ray nodes that such ingresses stand on; empty: any")
    drain_s: float = Field(20.0, gt=0, description="for the answers under way when their ingress or replica ends or is replaced")
    leave_s: float = Field(
        0.0, ge=0, description="before its drain_s an ingress still takes requests, while /healthz asks that no more be sent to it"
    )
    page: bool = Field(True, description="the playground: a page at / for trying constraints, which calls the API as other clients do")
    metrics: Literal["own", "all"] = Field(
        "own", description="what /metrics shows: what the service counts; or vLLM's and Ray Serve's too, with addresses and process ids"
    )


class TelemetrySettings(Section):
    """Traces of requests, and log lines."""

    otlp_endpoint: str | None = Field(
        None,
        pattern="^https?://[^/]+/",
        description="where spans go, by OTLP over HTTP, with its path: http://collector:4318/v1/traces; None: there are none",
    )
    sample_ratio: float = Field(0.1, ge=0, le=1, description="of the requests whose callers do not decide whether they are traced")
    logs: Literal["text", "json"] = Field("text", description="'json': an object a line, with one for each request over HTTP")


class Settings(Section):
    """Everything an operator can set; every default works on a laptop without a GPU."""

    model: ModelSettings = ModelSettings()
    grammar: GrammarSettings = GrammarSettings()
    limits: LimitSettings = LimitSettings()
    router: RouterSettings = RouterSettings()
    redis: RedisSettings = RedisSettings()
    responses: ResponseSettings = ResponseSettings()
    http: HttpSettings = HttpSettings()
    tenants: TenantSettings = TenantSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    grammars: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="named grammars: each has the fields of `structured_outputs`; clients send its name as grammar_id"
    )
    artifact_secret: Annotated[SecretStr, long_enough(SHORTEST_SECRET)] = Field(
        SecretStr(""), description="key that authenticates cached artifacts (HMAC), of 32 characters at least"
    )
    other_artifact_secret: SecretStr | None = Field(
        None,
        min_length=32,
        description="is believed as well, and seals nothing: so that artifact_secret can be changed on one node after the other",
    )
    secrets_file: str | None = Field(
        None,
        description="YAML with some of these settings, at the same path on all nodes: those that nothing else sets are read there, and do "
        "not travel through Ray",
    )

    @property
    def is_single(self) -> bool:
        """Whether nothing is to be chosen between the ingress and the engine."""
        return self.model.num_replicas == self.http.num_replicas == 1

    @model_validator(mode="after")
    def _shared_cache_needs_a_secret(self) -> Self:
        # Artifacts are native data structures: who can write to Redis must not be able to feed them to an engine.
        if self.redis.url is not None and not self.artifact_secret.get_secret_value():
            raise ValueError("artifact_secret must be set where redis.url is, to the same value on all nodes")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what was set, without what `secrets_file` has."""
        tree = plain(self)
        return parse_settings, (tree if self.secrets_file is None else without(tree, _read_yaml(Path(self.secrets_file))),)

    def with_secrets_in(self, file: Path) -> Self:
        """The same, with its secrets in a new file, which only this user can read."""
        write(file, plain(self, only_secrets=True))
        return self.model_copy(update={"secrets_file": str(file)})


def load_settings(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from a YAML file (optional) under the environment.

    Raises:
        SettingsError: the file cannot be read, or a key or value is wrong; the message names it.
    """
    tree = _read_yaml(path) if path else {}
    for names, value in from_environment(Settings, os.environ if environment is None else environment):
        _insert(tree, names, value)
    return parse_settings(tree)


def parse_settings(tree: Mapping[str, Any]) -> Settings:
    """Settings from a plain mapping, such as the `args` of a Serve configuration file. Raises SettingsError."""
    if file := tree.get("secrets_file"):
        tree = filled(tree, _read_yaml(Path(str(file))))
    check_texts(Settings, tree)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'all'}: {e['msg']}" for e in error.errors())
        raise SettingsError(f"settings: {faults}") from None


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings: cannot read {path}: {error}") from None
    except yaml.YAMLError as error:
        # Only its place: the library's message repeats the line, and secrets stand in such files.
        mark = getattr(error, "problem_mark", None)
        raise SettingsError(f"settings: {path} is not YAML{f', line {mark.line + 1}' if mark else ''}") from None
    if not isinstance(tree, dict):
        raise SettingsError(f"settings: {path} holds a {type(tree).__name__}, not a mapping")
    return tree


def _insert(tree: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        child = tree.setdefault(name, {})
        if not isinstance(child, dict):
            raise SettingsError(f"settings: {name} is not a section")
        tree = child
    tree[names[-1]] = value
