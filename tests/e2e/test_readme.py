"""The examples of README and guide, run as they stand there (with this test's port)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import ray

from tests.e2e.service import MODEL, Service
from tests.published.documents import ROOT, examples, pages

EXAMPLES = examples(pages("README.md", "docs/guide/*.md"))


def run(service: Service, command: list[str]) -> str:
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "RAY_ADDRESS": address}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def here(example: str, service: Service) -> str:
    """The model that answers is the one of all tests."""
    return EXAMPLES[example].replace("http://127.0.0.1:8000", service.url).replace('model="smollm2"', f'model="{MODEL}"')


def test_every_example_is_tested() -> None:
    assert set(EXAMPLES) == {"curl", "openai", "handle", "named", "lookahead", "client", "wished"}


def test_curl(service: Service) -> None:
    answer = json.loads(run(service, ["bash", "-c", here("curl", service)]))
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"name": "Ada Young", "age": 36}


def test_a_named_grammar(service: Service) -> None:
    output = run(service, ["bash", "-c", here("named", service)])
    grammar, end = json.JSONDecoder().raw_decode(output)
    assert (grammar.get("object"), grammar.get("id")) == ("grammar", "person"), output
    answer = json.loads(output[end:])
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"name": "Ada Young", "age": 36}


def test_a_look_ahead(service: Service) -> None:
    answer = json.loads(run(service, ["bash", "-c", here("lookahead", service)]))
    assert "dog runs." in answer["choices"][0]["message"]["content"]
    assert answer["usage"]["completion_tokens_details"]["lookahead"]["reward"] == 1


def test_a_look_ahead_by_the_client(service: Service) -> None:
    assert run(service, [sys.executable, "-c", here("client", service)]).strip().endswith("dog runs. 1.0")


def test_a_grammar_that_is_wished_for(service: Service) -> None:
    answer = json.loads(run(service, ["bash", "-c", here("wished", service)]))
    assert re.fullmatch("(abc|cab){2}", answer["choices"][0]["message"]["content"])


@pytest.mark.parametrize("example", ["openai", "handle"])
def test_python(service: Service, example: str) -> None:
    assert "name='Ada Young' age=36" in run(service, [sys.executable, "-c", here(example, service)])
