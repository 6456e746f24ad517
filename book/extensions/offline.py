"""A page that asks nobody: every figure drawn beforehand, and nothing that names another host."""

import os


def _draw_beforehand(app, config):
    os.environ["SERVESIM_PRERENDER"] = "1"  # read by the kernels that execute the notebooks


def _drop_thebe(app, pagename, templatename, context, doctree):
    """Jupyter Book always adds sphinx-thebe's scripts, which load a kernel client from a CDN."""

    def names_thebe(script):
        body = (getattr(script, "attributes", None) or {}).get("body") or ""
        return "THEBE_JS_URL" in body or "thebe" in str(getattr(script, "filename", script) or "")

    scripts = context.get("script_files", [])
    scripts[:] = [script for script in scripts if not names_thebe(script)]


def setup(app):
    app.connect("config-inited", _draw_beforehand)
    app.connect("html-page-context", _drop_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
