"""Joins what a kernel printed in several parts, as it was printed.

myst-nb ends every part with a new line, which breaks a row that was printed in pieces.
"""

import sys
from pathlib import Path

from myst_nb.core import render
from sphinx.application import Sphinx

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from notebooks import merge_streams  # noqa: E402

_theirs = render.coalesce_streams


def setup(app: Sphinx) -> dict:
    render.coalesce_streams = lambda outputs: _theirs(merge_streams(outputs))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
