"""The fields that are known here are those of vLLM's own requests: an upgrade fails here with the names that came and went."""

from __future__ import annotations

import json
import subprocess
import sys

from deployments.api.fields import HEARD
from model_service.messages import Endpoint

# In a process of its own: vLLM reads the environment when it is imported.
PROGRAM = """
import json
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
print(json.dumps({"chat": list(ChatCompletionRequest.model_fields), "completion": list(CompletionRequest.model_fields)}))
"""


def test_the_fields_that_are_heard_are_those_of_the_engine() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=True)
    fields = json.loads(done.stdout.splitlines()[-1])
    assert {endpoint: set(HEARD[Endpoint(endpoint)]) for endpoint in fields} == {name: set(found) for name, found in fields.items()}
