"""Keeps the committed notebooks in one form, so that diffs are small and nbval compares text only.

    notebooks.py run [FILES]      execute, then bring into form (all chapters by default)
    notebooks.py form [FILES]     bring into form without executing
    notebooks.py check [FILES]    exit 1 and name the files that are not in form
    notebooks.py remote           make every first cell install from this clone's git remote

In form: text outputs stay, pictures, HTML and widget state go; cells are counted 1…n; keys sorted.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "book" / "chapters"
INSTALL = re.compile(r"(servesim\[draw\] @ git\+)(https://[^\"@]+)@[^\"\\]+")
KEPT_OUTPUTS = {"text/plain"}
KEPT_METADATA = {"tags"}


def in_form(notebook: dict, stem: str) -> dict:
    """`notebook` (nbformat 4 as a dict), changed to the committed form."""
    count = 0
    for i, cell in enumerate(notebook["cells"]):
        cell["id"] = cell.get("id") or f"{stem}-{i}"
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k in KEPT_METADATA and v}
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count  # nbval fails a cell that has outputs and no count
            kept = [output for o in cell["outputs"] if (output := _output(o, count))]
            cell["outputs"] = merge_streams(kept)
            for output in cell["outputs"]:
                if output["output_type"] == "stream":
                    output["text"] = "".join(output["text"]).splitlines(keepends=True)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook["metadata"] = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    return notebook


def _output(output: dict, count: int) -> dict | None:
    if "data" not in output:
        return output
    output["data"] = {k: v for k, v in output["data"].items() if k in KEPT_OUTPUTS}
    output["metadata"] = {}
    if "execution_count" in output:
        output["execution_count"] = count
    return output if output["data"] else None


def merge_streams(outputs: list[dict]) -> list[dict]:
    """One stream for what a kernel happened to send in several parts."""
    merged = []
    for output in outputs:
        last = merged[-1] if merged else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] = "".join(last["text"]) + "".join(output["text"])
        else:
            merged.append(output)
    return merged


def written(notebook: dict) -> str:
    """The text of the committed file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def bring_into_form(path: Path, *, write: bool) -> bool:
    """Whether `path` was already in form; written back in form if asked to."""
    before = path.read_text(encoding="utf8")
    after = written(in_form(json.loads(before), path.stem))
    if write and after != before:
        path.write_text(after, encoding="utf8")
    return after == before


def execute(path: Path) -> None:
    """Run every cell of `path` in its folder and keep the outputs."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": path.parent}})
    try:
        client.execute(stderr=subprocess.DEVNULL)  # the kernel's own; what cells say is kept
    except CellExecutionError as error:
        sys.exit(f"{path}: {error}")
    nbformat.write(notebook, path)


def point_at_remote(paths: list[Path]) -> int:
    """Rewrite the address in every first cell to the git remote's; 1 if there is none."""
    sys.path.insert(0, str(ROOT / "book" / "extensions"))
    from repository import find

    address, branch = find(ROOT)
    if not address:
        print("This clone has no public git remote: git remote add origin https://…")
        return 1
    for path in paths:
        text = path.read_text(encoding="utf8")
        path.write_text(INSTALL.sub(rf"\g<1>{address}@{branch}", text), encoding="utf8")
    print(f"{len(paths)} notebooks now install from {address}, branch {branch}")
    return 0


def main(verb: str, *files: str) -> int:
    paths = [Path(f) for f in files] or sorted(CHAPTERS.glob("*.ipynb"))
    if missing := [str(path) for path in paths if not path.is_file()]:
        sys.exit(f"No such notebook: {', '.join(missing)}")
    if verb == "remote":
        return point_at_remote(paths)
    if verb not in ("run", "form", "check"):
        sys.exit(__doc__)
    for path in paths if verb == "run" else []:
        print(f"running {path.name}", flush=True)
        execute(path)
    untidy = [p for p in paths if not bring_into_form(p, write=verb != "check")]
    for path in untidy:
        print(f"{path}: {'not in form: run make notebooks' if verb == 'check' else 'written'}")
    return 1 if verb == "check" and untidy else 0


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["help"])))
