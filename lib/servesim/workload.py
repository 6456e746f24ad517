"""Where requests come from: traces read from a file, or drawn like a published one."""

import csv
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from servesim.checks import above, kind, whole
from servesim.facts import read_json

YEAR_5000_S = 3030 * 365.2425 * 86_400  # after 1970; a larger time is in another unit

# Accepted column names, the first that a file has is taken: a log may hold `prompt` as text, too.
TIMES = ("timestamp", "arrival_s", "arrival_time", "arrival", "time")
PROMPTS = (
    "prompt_tokens",
    "ContextTokens",
    "input_tokens",
    "prompt_length",
    "input_length",
    "prompt",
)
OUTPUTS = (
    "output_tokens",
    "GeneratedTokens",
    "completion_tokens",
    "output_length",
    "output",
)


class Request(NamedTuple):
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    group: int = 0  # a class of users: schedulers may tell them apart
    blocks: tuple[int, ...] = ()  # ids of the prompt's blocks (equal id: equal start)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests in order of arrival, one array for each property.

    blocks  ids of the blocks of each prompt, where the source tells them (equal id: equal start)

    Raises ValueError for what is not an array, and for arrays that are not equally long.
    """

    arrival_s: np.ndarray  # s since the start of the trace, (n,)
    prompt_tokens: np.ndarray  # (n,)
    output_tokens: np.ndarray  # (n,)
    blocks: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self):
        for column in ("arrival_s", "prompt_tokens", "output_tokens"):
            values = getattr(self, column)
            kind(np.ndarray, "np.array([1, 2, 3])", **{column: values})
            if values.shape != (self.arrival_s.size,):
                raise ValueError(f"{column} must have one entry for each arrival, got {values!r}")

    def __len__(self) -> int:
        return len(self.arrival_s)

    def __iter__(self) -> Iterator[Request]:
        columns = (self.arrival_s, self.prompt_tokens, self.output_tokens)
        blocks = repeat(()) if self.blocks is None else self.blocks
        return map(Request, *(column.tolist() for column in columns), repeat(0), blocks)


def listed(requests: Iterable[Request]) -> list[Request]:
    """The requests as a list. Raises ValueError, with what is wanted, for what is no Request.

    >>> listed("trace.csv")
    Traceback (most recent call last):
    ValueError: requests must be a Trace, such as read_trace(path), or a list of \
Request(arrival_s, prompt_tokens, output_tokens), got 'trace.csv'
    """
    several = isinstance(requests, Iterable) and not isinstance(requests, str)
    requests = list(requests) if several else [requests]
    for request in requests:
        if not isinstance(request, Request):
            raise ValueError(
                "requests must be a Trace, such as read_trace(path), or a list of "
                f"Request(arrival_s, prompt_tokens, output_tokens), got {request!r}"
            )
    return requests


def read_trace(path: str | Path) -> Trace:
    """Read the requests of a file. Arrivals start at 0 s and are sorted.

    A name that ends in .jsonl is a Mooncake trace: one object a line with timestamp (ms),
    input_length, output_length and hash_ids (which may be missing). Anything else is a CSV file
    with a header. Case, "_", "-" and spaces in it do not matter; of several accepted columns the
    one named first here counts, others are ignored:

    time    timestamp, arrival_s, arrival_time, arrival, time: seconds or ISO 8601
    prompt  prompt_tokens, ContextTokens (Azure), input_tokens, prompt_length, input_length, prompt
    output  output_tokens, GeneratedTokens (Azure), completion_tokens, output_length, output

    Source: AzurePublicDataset (LLM inference traces 2023); kvcache-ai/Mooncake.
    Left out: requests without output (drop failed ones first); digits below a microsecond.
    Raises ValueError, with file, line, column and value, for what it cannot read.
    """
    if not (isinstance(path, str | Path) and os.path.isfile(path)):
        raise ValueError(f"path must be that of a trace, got {str(path)!r}, which is no file")
    path = Path(path)
    try:
        rows = _read_jsonl(path) if path.suffix == ".jsonl" else _read_csv(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} must be CSV or JSON lines in UTF-8: {error}") from None
    if not rows:
        raise ValueError(f"{path}: no requests in this file")
    rows.sort(key=lambda row: row[0])
    times_s, prompts, outputs, blocks = zip(*rows, strict=True)
    return Trace(
        arrival_s=np.array(times_s) - times_s[0],
        prompt_tokens=np.array(prompts),
        output_tokens=np.array(outputs),
        blocks=None if None in blocks else blocks,
    )


def _read_csv(path: Path) -> list[tuple]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        header = reader.fieldnames
        if not header:
            raise ValueError(f"{path}: the file is empty, or its first line is")
        time = _column(path, header, "time of arrival", TIMES)
        prompt = _column(path, header, "number of prompt tokens", PROMPTS)
        output = _column(path, header, "number of output tokens", OUTPUTS)
        rows, read_s = [], None
        for row in reader:
            value = partial(_value, f"{path}, line {reader.line_num}", row)
            read_s = read_s or (_seconds if _is_number(row[time]) else _iso_s)  # row 1 decides
            rows.append((value(time, read_s), value(prompt, _count), value(output, _count), None))
    return rows


def _read_jsonl(path: Path) -> list[tuple]:
    rows = []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number}"
            if line.strip():
                row = _value(where, {"(all)": line.strip()}, "(all)", _object)
                value = partial(_value, where, row)
                arrival_s = value("timestamp", _number) / 1e3
                prompt, output = value("input_length", _count), value("output_length", _count)
                blocks = value("hash_ids", _ids) if "hash_ids" in row else None
                rows.append((arrival_s, prompt, output, blocks))
    return rows


def _column(path: Path, header: Sequence[str], quantity: str, names: Sequence[str]) -> str:
    """The column of `header` with the first of `names` that there is."""
    columns = {_plain(column): column for column in reversed(header)}
    for name in map(_plain, names):
        if name in columns:
            return columns[name]
    raise ValueError(
        f"{path}, line 1: no column for the {quantity}, which may be called {', '.join(names)}; "
        f"the columns, separated by commas, are {header}"
    )


def _plain(name: str) -> str:
    return re.sub(r"[_\- ]", "", name.lower())


def _value(where: str, row: dict, column: str, read: Callable):
    """read(row[column]), or a ValueError that says where."""
    try:
        return read(row.get(column))
    except (TypeError, ValueError) as error:
        found = row.get(column)
        raise ValueError(f"{where}, column {column}: {found!r}, expected {error}") from None


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and math.isfinite(float(text))
    except ValueError:
        return False


def _number(text) -> float:
    if isinstance(text, bool) or not _is_number(text):
        raise ValueError("a finite number")
    return float(text)


def _seconds(text) -> float:
    seconds = _number(text)
    if seconds > YEAR_5000_S:
        raise ValueError("seconds; this looks like milliseconds since 1970")
    return seconds


def _iso_s(text) -> float:
    try:
        time = datetime.fromisoformat(text.strip())
    except (AttributeError, ValueError):
        raise ValueError("a time in ISO 8601, or seconds in every row") from None
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def _count(text) -> int:
    if isinstance(text, bool) or not _is_number(text) or not 1 <= float(text) == int(float(text)):
        raise ValueError("a whole number of tokens >= 1")
    return int(float(text))


def _ids(value) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(i) is int for i in value):
        raise ValueError("a list of whole numbers")
    return tuple(value)


def _object(text: str) -> dict:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return value


def draw(
    name: str = "azure_2023_chat", *, count: int, rate_per_s: float | None = None, seed: int
) -> Trace:
    """`count` requests with the lengths of a published trace and Poisson arrivals.

    Lengths: inverse CDF over 201 quantiles, linear between them, rounded to whole tokens.

    name        azure_2023_chat, azure_2023_code or mooncake_conversation
    rate_per_s  mean arrivals in a second; None: the trace's own

    Source: data/trace_quantiles.json, which names the traces.
    Left out: any tie between prompt and output, drawn independently (Azure's correlations: -0.11
    chat, 0.00 code; but in chat the output depends on the prompt's quarter: see the source);
    bursts; the hour of the day; shared prefixes; the shape of the longest 0.5 %, a straight line
    to the maximum (it lifts the code trace's mean output from 27.9 to 30).
    Raises ValueError for an unknown name, a count that is not a whole number of at least 1 and a
    rate that is not positive.

    >>> trace = draw(count=1000, rate_per_s=2, seed=1)
    >>> len(trace), int(trace.prompt_tokens.max()) <= 14050
    (1000, True)
    """
    traces = {k: v for k, v in read_json("trace_quantiles.json").items() if k[0] != "_"}
    if name not in traces:
        raise ValueError(f"name must be one of {sorted(traces)}, got {name!r}")
    whole(1, count=count)
    rate_per_s = traces[name].get("rate_per_s") if rate_per_s is None else rate_per_s
    if rate_per_s is None:
        raise ValueError(f"rate_per_s must be given: {name} states no rate")
    above(0, rate_per_s=rate_per_s)
    rng = np.random.default_rng(seed)
    return Trace(
        arrival_s=rng.exponential(1 / rate_per_s, count).cumsum(),
        prompt_tokens=_lengths(traces[name]["prompt_tokens"], rng.random(count)),
        output_tokens=_lengths(traces[name]["output_tokens"], rng.random(count)),
    )


def _lengths(quantiles: list[float], chance: np.ndarray) -> np.ndarray:
    grid = np.linspace(0, 1, len(quantiles))
    return np.rint(np.interp(chance, grid, quantiles)).astype(int)
