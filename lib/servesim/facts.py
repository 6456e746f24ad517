"""The tables that come with the library: every number another file looks up, with its source."""

import csv
import json
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

from servesim.checks import kind

Made = TypeVar("Made")

_DATA = "servesim.data"


def read_json(name: str):
    """The content of a JSON file of the data folder.

    Raises ValueError when there is no such file, with a list of those there are, and for a file
    that is not JSON in UTF-8.

    >>> read_json("accelerators.json")["H100"]["hbm_bytes_per_s"]
    3350000000000.0
    """
    try:
        return json.loads(_file(name).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} must be JSON: {error}") from None


class Records(dict[str, Made]):
    """What was made of a table's records, by name. A KeyError says which names there are."""

    def __missing__(self, name: str):
        raise KeyError(f"{name} is none of {', '.join(self)}")


def read_records(name: str, make: Callable[[str, dict], Made]) -> Records[Made]:
    """make(key, record) for each record of a JSON file of the data folder.

    Raises ValueError as `read_json`, for what is not an object of records, and where `make` does,
    with the file and the record.
    """
    records, made = read_json(name), Records()
    if not isinstance(records, dict):
        raise ValueError(f"{name} must be a JSON object of records, got {type(records).__name__}")
    for key, record in records.items():
        try:
            made[key] = make(key, record)
        except ValueError as error:
            raise ValueError(f"{name}, record {key}: {error}") from None
    return made


def source(record: dict) -> str:
    """Where a record's figures can be looked up, and when that was done: its source and read."""
    kind(str, "'H100 datasheet (NVIDIA)'", source=record["source"])
    kind(str, "'2026-11-29'", read=record["read"])
    return f"{record['source']}; read {record['read']}"


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
