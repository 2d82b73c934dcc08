"""Clients that others have written, each as its own documentation says, against the service at MASKCAST_URL. They have an environment of
their own (`make clients`), and know nothing of this project."""

from __future__ import annotations

import os

import pytest
from pydantic import BaseModel, Field

QUESTION = "Extract name, age, city as JSON.\n\nClara Novak is 34 years old and lives in Lisbon."


class Person(BaseModel):
    """A person that a text tells of. What a small model makes of him is not looked at, but that it is one."""

    name: str = Field(max_length=24)
    age: int = Field(ge=0, le=120)
    city: str = Field(max_length=24)


@pytest.fixture(scope="session")
def root() -> str:
    return os.environ["MASKCAST_URL"]


@pytest.fixture(scope="session")
def url(root: str) -> str:
    return f"{root}/v1"


@pytest.fixture(scope="session")
def model() -> str:
    return os.environ["MASKCAST_MODEL"]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, root: str, url: str) -> None:
    """Some clients look for them in the environment alone."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", root)
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
