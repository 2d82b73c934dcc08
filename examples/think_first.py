"""Thoughts, and then an answer of a schema: `python examples/think_first.py`, beside `make serve CONFIG=examples/reasoning.yaml`.

MASKCAST_URL names a service that is elsewhere.
"""

from __future__ import annotations

import os
from typing import Annotated

from openai import OpenAI
from pydantic import BaseModel, Field


class Person(BaseModel):
    name: Annotated[str, Field(pattern="^[A-Z][a-z]{1,8} [A-Z][a-z]{1,8}$")]
    age: int


def main() -> None:
    client = OpenAI(base_url=f"{os.environ.get('MASKCAST_URL', 'http://127.0.0.1:8000')}/v1", api_key="none")
    answer = client.chat.completions.parse(
        model="maskcast-embedded",
        messages=[
            {"role": "system", "content": "Tools: record_person(name, age)"},  # what makes this model draft its answer
            {"role": "user", "content": "Record this.\n\nMeet Clara Novak. The person is 34 years old. Lives in Lisbon."},
        ],
        response_format=Person,
        max_tokens=128,
        temperature=0,
        extra_body={"chat_template_kwargs": {"thinking": True}},
    )
    message, usage = answer.choices[0].message, answer.model_dump()["usage"]
    print("thought:", (message.model_extra or {})["reasoning"])
    print("answered:", message.parsed)
    print(f"{usage['completion_tokens_details']['forced_tokens']} of {usage['completion_tokens']} tokens were forced")


if __name__ == "__main__":
    main()
