"""vLLM's own requests beside the table of fields: an upgrade fails here with the names that came and went, and what the table lets through,
vLLM reads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from deployments.api.protocol import RequestReader
from deployments.api.request_fields.kinds import FieldRules
from deployments.api.request_fields.table import BY_NAME, FIELDS, Treatment
from deployments.config import LimitSettings
from deployments.constraints.defaults import ConstraintDefaults
from model_service.messages import Endpoint
from tests.unit.deployments.api.request_fields.test_table import PLAIN, within

# In a process of its own: vLLM reads the environment when it is imported.
PROGRAM = """
import json, sys
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.serve.tokenize.protocol import DetokenizeRequest, TokenizeChatRequest, TokenizeCompletionRequest
kinds = {"chat": [ChatCompletionRequest], "completion": [CompletionRequest], "detokenize": [DetokenizeRequest]}
kinds["tokenize"] = [TokenizeChatRequest, TokenizeCompletionRequest]
faults = []
for endpoint, body in json.load(sys.stdin):
    try:
        read = kinds[endpoint]["messages" not in body and len(kinds[endpoint]) > 1].model_validate(body)
        if endpoint in ("chat", "completion"):
            read.to_sampling_params(16, {})
    except Exception as error:
        faults.append([endpoint, sorted(body), type(error).__name__, str(error)[:500]])
print(json.dumps({"fields": {name: [one for kind in all_ for one in kind.model_fields] for name, all_ in kinds.items()}, "faults": faults}))
"""
NEEDING_OTHERS = {"top_logprobs": {"logprobs": True}, "tool_choice": {}, "tools": {}, "logprob_token_ids": {"logprobs": True}}
"""Fields that vLLM reads beside others only; tools have readers and tests of their own."""

NECESSARY = {"messages", "model", "prompt", "tokens"}
REFUSED_BY_VLLM = {"min_tokens", "stream_options", "top_p"}
"""Over `max_tokens`, without `stream`, and 0: each is a 400."""


def bodies() -> Iterator[tuple[Endpoint, dict[str, Any]]]:
    """Of each forwarded field, alone, the values at its bounds, as the engine is sent them."""
    rules = FieldRules(
        LimitSettings(max_prompt_logprobs=2), frozenset({"thinking"}), frozenset({"mode"}), has_priorities=True, takes_embeddings=True
    )
    reader = RequestReader("tiny", "hermes", ConstraintDefaults(), rules)
    for row in FIELDS:
        if row.treatment is not Treatment.FORWARDED or row.name in ("tools", "tool_choice", "model"):
            continue
        for endpoint in row.endpoints:
            beside = NEEDING_OTHERS.get(row.name, {}) if endpoint is Endpoint.CHAT else {"logprobs": 1} if "logprob_" in row.name else {}
            for value in within(row.kind):
                alone = {} if row.name == "messages" else PLAIN[endpoint]
                yield endpoint, reader.read(endpoint, {**alone, **beside, row.name: value}).body


def test_the_table_has_the_fields_of_the_engine_and_forwards_what_it_reads() -> None:
    asked = json.dumps(list(bodies()))
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=asked, capture_output=True, text=True, timeout=300, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    for endpoint, fields in told["fields"].items():
        rows = BY_NAME[Endpoint(endpoint)]
        assert set(fields) <= set(rows), "new fields of vLLM"
        assert {name for name, row in rows.items() if row.treatment is Treatment.FORWARDED} <= set(fields), "fields that vLLM has no more"
    refused = {(fault, *set(body) - NECESSARY) for _, body, fault, _ in told["faults"]}
    assert refused == {("VLLMValidationError", name) for name in REFUSED_BY_VLLM}
