"""What can be checked of the examples without a service; `tests/e2e/test_readme.py` runs them."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from deployments.config import parse_settings
from tests.published.documents import blocks, examples, pages

GUIDE = pages("README.md", "docs/guide/*.md")
REQUEST = re.compile(r"-d '(.*?)'", re.DOTALL)


def test_examples_are_found_in_readme_and_guide() -> None:
    found = examples(GUIDE)
    assert set(found) == {"curl", "openai", "handle", "named", "lookahead", "client", "wished"}
    assert all("http://127.0.0.1:8000" in text for text in found.values())


def test_an_example_is_the_block_behind_its_mark() -> None:
    text = "<!-- test: one -->\n```bash\necho 1\n```\nprose\n```bash\nnot tested\n```\n"
    assert examples({"a.md": text}) == {"one": "echo 1\n"}
    with pytest.raises(ValueError, match="called one"):
        examples({"a.md": text, "b.md": text})


@pytest.mark.parametrize("name", ["curl", "named", "lookahead", "wished"])
def test_requests_are_json(name: str) -> None:
    bodies = REQUEST.findall(examples(GUIDE)[name])
    assert bodies
    for body in bodies:
        json.loads(body)


@pytest.mark.parametrize(("page", "code"), [(page, code) for page, text in GUIDE.items() for code in blocks(text, "python")])
def test_python_is_python(page: str, code: str) -> None:
    compile(code, page, "exec")


@pytest.mark.parametrize("settings", [settings for text in GUIDE.values() for settings in blocks(text, "yaml")])
def test_settings_are_taken(settings: str) -> None:
    parse_settings(yaml.safe_load(settings))
