"""Says which page is being read: a chapter's code is run then, which takes seconds."""

MARK = "reading "


def _say(app, docname, source):
    print(f"{MARK}{docname}", flush=True)


def setup(app):
    app.connect("source-read", _say)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
