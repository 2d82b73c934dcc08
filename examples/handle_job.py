"""A separate Ray job that talks to Maskcast by handle: `python examples/handle_job.py`, on a machine of the cluster.

It joins the cluster that RAY_ADDRESS names, or the one that runs on this machine. That of `maskcast serve` lets it in after
`. FILE`, with the file that it names when it is up.
"""

from __future__ import annotations

import os

import ray
from pydantic import BaseModel
from ray import serve

from deployments.client import StructuredClient


class Person(BaseModel):
    name: str
    age: int
    city: str


def main() -> None:
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
    client = StructuredClient.over_handle(serve.get_app_handle("maskcast"))
    question = "Extract name, age, city as JSON.\n\nMeet Clara Novak. Lives in Lisbon. The person is 34 years old."
    print(client.parse(Person, question, temperature=0, max_tokens=64))
    print("".join(client.stream(question, regex=r"[A-Z][a-z]+ [A-Z][a-z]+", temperature=0, max_tokens=16)))


if __name__ == "__main__":
    main()
