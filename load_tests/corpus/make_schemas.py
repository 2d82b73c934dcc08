"""Writes the schemas that the grammar benchmark compiles: `python -m load_tests.corpus.make_schemas [FOLDER]`; always the same files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from load_tests.corpus.families.building import Schema
from load_tests.corpus.families.business import business
from load_tests.corpus.families.infrastructure import infrastructure
from load_tests.corpus.families.records import records
from load_tests.corpus.families.recursive import recursive
from load_tests.corpus.families.scale import scale
from load_tests.corpus.families.tools import tools

FOLDER = Path(__file__).parent / "schemas"
SEED = 7


def families(seed: int = SEED) -> dict[str, dict[str, Schema]]:
    """Schemas by name, by family."""
    return {
        "business": business(),
        "records": records(),
        "infrastructure": infrastructure(),
        "recursive": recursive(),
        "tools": tools(),
        "scale": scale(seed),
    }


def write(folder: Path) -> list[Path]:
    """Writes one file a schema, named family and name; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for family, schemas in families().items():
        for name, schema in schemas.items():
            path = folder / f"{family}-{name}.json"
            path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            written.append(path)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    print(f"{len(write(parser.parse_args().folder))} schemas written")


if __name__ == "__main__":
    main()
