"""Reads chapters, which runs their code, on all cores at once.

Sphinx can (its -j), and Jupyter Book has no option to ask for it.
"""

import os

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    app.parallel = os.cpu_count() or 1
    return {"parallel_read_safe": True, "parallel_write_safe": True}
