"""Reads chapters, which runs their code, on all cores at once.

Sphinx can (its -j), and Jupyter Book has no option to ask for it. Two of Jupyter Book's extensions
do not say whether they allow it: one is for LaTeX, the other numbers sections when all are read.
"""

import os

from sphinx.application import Sphinx

SILENT = "sphinx_jupyterbook_latex", "sphinx_multitoc_numbering"


def _allow(app: Sphinx) -> None:
    for name in SILENT:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
            app.extensions[name].parallel_write_safe = True


def setup(app: Sphinx) -> dict:
    app.parallel = os.cpu_count() or 1
    app.connect("builder-inited", _allow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
