"""A Ray Data job whose rows Maskcast answers by handle: `python examples/ray_data_job.py`, on a machine of the cluster.

It joins the cluster as `handle_job.py` does, and takes the extra `data`: `pip install "maskcast[data]"`. Its rows are made here; those of
your own come from `ray.data.read_parquet` and the like, and go to `write_parquet`.
"""

from __future__ import annotations

import os
import sys

import ray
from pydantic import BaseModel

from deployments.client.ray_data import answer_rows

ROWS = 2000


class Person(BaseModel):
    name: str
    age: int
    city: str


def question(row: dict[str, int]) -> dict[str, str]:
    age = 20 + row["id"] % 60
    return {"prompt": f"Extract name, age, city as JSON.\n\nMeet Clara Novak. Lives in Lisbon. The person is {age} years old."}


def main(rows: int) -> None:
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
    asked = ray.data.range(rows, override_num_blocks=8).map(question, num_cpus=0)
    answered = answer_rows(asked, Person, actors=2, temperature=0, max_tokens=64).materialize()
    failed = answered.filter(lambda row: row["error"] is not None)
    print(f"{answered.count()} rows, {failed.count()} of them with an error")
    print(answered.take(1)[0]["answer"])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
