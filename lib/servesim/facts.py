"""The tables that come with the library: every number another file looks up, with its source."""

import csv
import json
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

Made = TypeVar("Made")

_DATA = "servesim.data"


def read_json(name: str):
    """The content of a JSON file of the data folder.

    Raises ValueError when there is no such file, with a list of those there are, and for a file
    that is not JSON.

    >>> read_json("accelerators.json")["H100"]["hbm_bytes_per_s"]
    3350000000000.0
    """
    try:
        return json.loads(_file(name).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} must be JSON: {error}") from None


def read_records(name: str, make: Callable[[str, dict], Made]) -> dict[str, Made]:
    """make(key, record) for each record of a JSON file of the data folder.

    Raises ValueError as `read_json`, and where `make` does, with the file and the record.
    """
    made = {}
    for key, record in read_json(name).items():
        try:
            made[key] = make(key, record)
        except ValueError as error:
            raise ValueError(f"{name}, record {key}: {error}") from None
    return made


def read_csv(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file of the data folder, each a dict of strings by column name.

    Lines that start with `#` (a table's source) are not rows.
    Raises ValueError when there is no such file; the message lists those there are.
    """
    lines = _file(name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def _file(name: str) -> Traversable:
    tables = sorted(
        entry.name for entry in files(_DATA).iterdir() if entry.name.endswith((".json", ".csv"))
    )
    if name not in tables:
        raise ValueError(f"name must be one of {', '.join(tables)}; got {name!r}")
    return files(_DATA) / name
