"""The tables that come with the library: every number another file looks up, with its source."""

import csv
import json
from importlib.resources import files
from importlib.resources.abc import Traversable

_DATA = "servesim.data"


def read_json(name: str):
    """The content of a JSON file of the data folder.

    Raises ValueError when there is no such file; the message lists those there are.

    >>> read_json("accelerators.json")["H100"]["hbm_bytes_per_s"]
    3350000000000.0
    """
    return json.loads(_file(name).read_text(encoding="utf-8"))


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
