"""Traces: small files of each format, errors, and drawn lengths against the traces themselves."""

import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.facts import read_json
from servesim.workload import Request, Trace, draw, read_trace
from traces import raw

NAMES = ("azure_2023_chat", "azure_2023_code", "mooncake_conversation")


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_azure(tmp_path):
    path = write(
        tmp_path / "azure.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:50.9951690,396,109",
        "2023-11-17 18:15:46.6805900,2,7",
    )
    trace = read_trace(path)
    assert trace.arrival_s == pytest.approx([0, 4.314579, 86_400], abs=1e-6)  # read to 1 us
    assert list(trace)[1][1:3] == (396, 109)
    assert trace.blocks is None


def test_a_users_csv_out_of_order(tmp_path):
    path = write(tmp_path / "mine.csv", "id,timestamp,prompt,output", "a,12.5,10,3", "b,10,20,1")
    assert list(read_trace(path)) == [Request(0.0, 20, 1), Request(2.5, 10, 3)]
    assert list(read_trace(str(path))) == list(read_trace(path))


@pytest.mark.parametrize(
    "header",
    [
        "arrival_s,prompt_tokens,output_tokens",
        "Arrival Time,Input Length,Output-Length",
        "time,input_tokens,completion_tokens",
        "\ufefftimestamp,ContextTokens,GeneratedTokens",  # Excel begins a file with a byte mark
    ],
)
def test_spellings_of_the_header(tmp_path, header):
    path = write(tmp_path / "t.csv", header, "0,1,2", "", "1,3.0,4")
    assert list(read_trace(path)) == [Request(0.0, 1, 2), Request(1.0, 3, 4)]


def test_iso_times_with_and_without_a_zone(tmp_path):
    rows = "2024-05-10T00:00:00Z,1,1", "2024-05-10 02:00:01+02:00,1,1", "2024-05-10 00:00:02,1,1"
    path = write(tmp_path / "t.csv", "timestamp,prompt,output", *rows)
    assert read_trace(path).arrival_s.tolist() == [0, 1, 2]


def test_the_number_of_tokens_goes_before_the_text(tmp_path):
    path = write(tmp_path / "log.csv", "time,prompt,prompt_tokens,output_tokens", "0,Hi,5,7")
    assert list(read_trace(path)) == [Request(0.0, 5, 7)]


def test_mooncake(tmp_path):
    rows = [
        {"timestamp": 500, "input_length": 1000, "output_length": 5, "hash_ids": [0, 1]},
        {"timestamp": 2000, "input_length": 600, "output_length": 1, "hash_ids": [0, 2]},
    ]
    path = write(tmp_path / "m.jsonl", *(json.dumps(row) for row in rows))
    trace = read_trace(path)
    one, two = trace
    assert one == Request(0.0, 1000, 5, blocks=(0, 1)) and two == Request(
        1.5, 600, 1, blocks=(0, 2)
    )
    assert trace.blocks == ((0, 1), (0, 2))
    for row in rows:
        del row["hash_ids"]
    path = write(tmp_path / "m.jsonl", *(json.dumps(row) for row in rows))
    assert read_trace(path).blocks is None


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1)
)
def test_round_trip(tmp_path_factory, rows):
    lines = (f"{t!r},{prompt},{output}" for t, prompt, output in rows)
    path = write(tmp_path_factory.mktemp("t") / "t.csv", "timestamp,prompt,output", *lines)
    start = min(rows)[0]
    expected = [Request(t - start, p, o) for t, p, o in sorted(rows, key=lambda row: row[0])]
    assert list(read_trace(path)) == expected


@pytest.mark.parametrize(
    "name, lines, message",
    [
        ("a.csv", ["timestamp,prompt", "0,1"], "line 1: no column for the number of output tokens"),
        (
            "a.csv",
            ["arrival_ms,prompt,output", "0,1,1"],
            "time of arrival, .* called timestamp, ar",
        ),
        ("a.csv", ["time;prompt;output", "0;1;1"], r"separated by commas, are \['time;prompt;out"),
        ("a.csv", [""], "a.csv: the file is empty"),
        ("a.csv", ["timestamp,prompt,output"], "a.csv: no requests"),
        ("a.csv", ["time,prompt,output", "0,1,1", "1,x,1"], "line 3, column prompt: 'x', expected"),
        ("a.csv", ["time,prompt,output", "0,1,0"], "line 2, column output: '0', expected a whole"),
        ("a.csv", ["time,prompt,output", "0,1.5,1"], "column prompt: '1.5'"),
        ("a.csv", ["time,prompt,output", "0,-3,1"], "column prompt: '-3'"),
        ("a.csv", ["time,prompt,output", "0,inf,1"], "column prompt: 'inf'"),
        ("a.csv", ["time,prompt,output", "0,1"], "line 2, column output: None"),
        (
            "a.csv",
            ["time,prompt,output", "yesterday,1,1"],
            "column time: 'yesterday', expected a t",
        ),
        ("a.csv", ["time,prompt,output", "nan,1,1"], "column time: 'nan'"),
        ("a.csv", ["time,prompt,output", "1764547200000,1,1"], "seconds; this looks like milli"),
        ("a.csv", ["time,prompt,output", "0,1,1", "2024-05-10,1,1"], "line 3, column time"),
        ("a.csv", ["time,prompt,output", "2024-05-10,1,1", "7,1,1"], "seconds in every row"),
        ("a.jsonl", ["{"], r"a.jsonl, line 1, column \(all\): '{', expected a JSON object"),
        ("a.jsonl", ["[1]"], "expected a JSON object"),
        ("a.jsonl", ['{"timestamp": 1}'], "column input_length: None"),
        ("a.jsonl", ['{"timestamp": "x"}'], "column timestamp: 'x', expected a finite number"),
        (
            "a.jsonl",
            ['{"timestamp": 1, "input_length": true, "output_length": 1}'],
            "column input_length: True",
        ),
        (
            "a.jsonl",
            ['{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": "ab"}'],
            "column hash_ids: 'ab', expected a list of whole numbers",
        ),
    ],
)
def test_bad_files(tmp_path, name, lines, message):
    with pytest.raises(ValueError, match=message):
        read_trace(write(tmp_path / name, *lines))


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.csv", "time,prompt,output,user\n0,1,1,Ren\xe9\n".encode("latin-1")),
        ("a.csv", "time,prompt,output\n0,1,1\n".encode("utf-16")),
        ("a.jsonl", b'{"timestamp": 0, "user": "\xe9"}'),
        ("a.csv", b"time,prompt,output,text\n0,1,1," + b"x" * 200_000),
    ],
    ids=["Latin-1", "UTF-16", "Latin-1 in JSON", "too long a field"],
)
def test_files_that_are_no_such_text(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} must be CSV or JSON lines in UTF-8: "):
        read_trace(tmp_path / name)


# Drawn traces


@pytest.mark.parametrize("name", NAMES)
def test_drawn_lengths_follow_the_quantiles(name):
    facts = read_json("trace_quantiles.json")[name]
    trace = draw(name, count=200_000, rate_per_s=10, seed=1)
    for kind, lengths in (("prompt", trace.prompt_tokens), ("output", trace.output_tokens)):
        # 2 %: sampling, and the straight line from the 99.5 % quantile to the longest, which is
        # too heavy where the longest stands alone (one code answer of 1,899 tokens: 9 %).
        rel = 0.1 if (name, kind) == ("azure_2023_code", "output") else 0.02
        assert lengths.mean() == pytest.approx(facts[f"mean_{kind}"], rel=rel)
        assert 1 <= lengths.min() and lengths.max() <= facts[f"max_{kind}"]
        for percent in (10, 25, 50, 75, 90, 99):
            # 2 % and 2 tokens: sampling of 200,000
            expected = facts[f"{kind}_tokens"][2 * percent]
            assert np.percentile(lengths, percent) == pytest.approx(expected, rel=0.02, abs=2)


def test_drawn_arrivals_are_poisson():
    gaps_s = np.diff(draw(count=200_000, seed=2).arrival_s)
    rate = read_json("trace_quantiles.json")["azure_2023_chat"]["rate_per_s"]
    assert gaps_s.mean() == pytest.approx(1 / rate, rel=0.01)  # 4 standard errors
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(1, abs=0.01)
    assert gaps_s.min() >= 0


def test_prompt_and_output_are_drawn_independently():
    trace = draw(count=200_000, seed=3)
    r = np.corrcoef(trace.prompt_tokens, trace.output_tokens)[0, 1]
    assert abs(r) < 0.01  # 4 standard errors


def test_the_seed_decides():
    one, again, other = (draw(count=50, seed=seed) for seed in (7, 7, 8))
    assert list(one) == list(again) != list(other)
    assert len(one) == 50 and type(next(iter(one)).prompt_tokens) is int


def test_a_million_requests_in_a_second():
    start = time.process_time()
    draw(count=10**6, seed=0)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: draw("azure", count=1, seed=0), r"name must be one of \['azure_2023_chat'"),
        (lambda: draw("_about", count=1, seed=0), "name must be one of"),
        (lambda: draw(count=0, seed=0), "count must be"),
        (lambda: draw(count=1, rate_per_s=0, seed=0), "rate_per_s must be .* above 0 .* got 0"),
        (lambda: draw(count=1, rate_per_s="2", seed=0), "rate_per_s must be a number .* got '2'"),
        (lambda: draw(count="10", seed=0), "count must be a whole number .* got '10'"),
        (lambda: draw(count=2.5, seed=0), "count must be a whole number .* got 2.5"),
        (lambda: read_trace("no/such.csv"), "path must be .* got 'no/such.csv', which is no file"),
        (lambda: read_trace(None), "path must be .* got 'None', which is no file"),
        (lambda: read_trace("x" * 5000), "path must be .* got 'xxx.*, which is no file"),
        (lambda: Trace([0.0], [1], [1]), "arrival_s must be of the class ndarray, .* got .0.0."),
        (
            lambda: Trace(np.zeros(2), np.ones(1), np.ones(2)),
            r"prompt_tokens must have one entry for each arrival, got array\(\[1",
        ),
        (lambda: draw("mooncake_conversation", count=1, seed=0), "rate_per_s must be given"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The traces themselves


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_are_those_of_the_trace(name):
    trace, facts = raw(name), read_json("trace_quantiles.json")[name]
    assert len(trace) == facts["requests"]
    drawn = draw(name, count=200_000, rate_per_s=1, seed=4)
    for kind in ("prompt", "output"):
        real, ours = (getattr(t, f"{kind}_tokens") for t in (trace, drawn))
        assert round(real.mean(), 1) == facts[f"mean_{kind}"]
        assert np.percentile(real, np.linspace(0, 100, 201)) == pytest.approx(
            np.array(facts[f"{kind}_tokens"]), abs=1
        )  # 1: the quantiles are whole tokens
        for percent in (25, 50, 75, 90, 99):  # 2 % and 2 tokens: sampling of 200,000
            expected = np.percentile(real, percent)
            assert np.percentile(ours, percent) == pytest.approx(expected, rel=0.02, abs=2)


@pytest.mark.parametrize("name, r", [("azure_2023_chat", -0.11), ("azure_2023_code", 0.00)])
def test_prompt_and_output_of_azure_hardly_correlate(name, r):
    trace = raw(name)
    assert np.corrcoef(trace.prompt_tokens, trace.output_tokens)[0, 1] == pytest.approx(
        r, abs=0.005
    )
    facts = read_json("trace_quantiles.json")[name]
    assert len(trace) / trace.arrival_s[-1] == pytest.approx(facts["rate_per_s"], rel=0.001)


def test_mooncake_blocks():
    trace = raw("mooncake_conversation")
    for prompt, ids in zip(trace.prompt_tokens.tolist(), trace.blocks, strict=True):
        assert len(ids) in (prompt // 512, -(-prompt // 512))


@pytest.mark.parametrize("name", ["azure_2023_chat", "azure_2023_code"])
def test_mean_output_by_quarter_of_the_prompt(name):
    """What the shipped figures say of the raw traces, sorted by prompt and cut in four."""
    shipped = read_json("trace_quantiles.json")[name]
    trace = raw(name)
    by_prompt = trace.output_tokens[np.argsort(trace.prompt_tokens, kind="stable")]
    means = [part.mean() for part in np.array_split(by_prompt, 4)]
    assert shipped["mean_output_by_prompt_quarter"] == pytest.approx(means, abs=0.05)
