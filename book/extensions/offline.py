"""A page that asks nobody: every figure drawn beforehand, and nothing that names another host."""

import os
import re
from pathlib import Path

# Fonts that are asked for before they are needed (and refused on file://), and a script of 1.4 MB
# that draws the icons which the theme's font draws as well.
NEEDLESS = re.compile(
    r'<link rel="preload"[^>]*>\s*|<script src="[^"]*fontawesome[^"]*/js/[^"]*"></script>\s*'
)

TABLE = '<div class="pst-scrollable-table-container">'  # a keyboard must be able to scroll it


def _draw_beforehand(app, config):
    os.environ["SERVESIM_PRERENDER"] = "1"  # read by the kernels that execute the notebooks


def _drop_thebe(app, pagename, templatename, context, doctree):
    """Jupyter Book always adds sphinx-thebe's scripts, which load a kernel client from a CDN."""

    def names_thebe(script):
        body = (getattr(script, "attributes", None) or {}).get("body") or ""
        return "THEBE_JS_URL" in body or "thebe" in str(getattr(script, "filename", script) or "")

    scripts = context.get("script_files", [])
    scripts[:] = [script for script in scripts if not names_thebe(script)]


def _mend_pages(app, exception):
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf8")
        text = NEEDLESS.sub("", text)
        page.write_text(text.replace(TABLE, TABLE[:-1] + ' tabindex="0">'), encoding="utf8")


def setup(app):
    app.connect("config-inited", _draw_beforehand)
    app.connect("html-page-context", _drop_thebe, priority=900)
    app.connect("build-finished", _mend_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
