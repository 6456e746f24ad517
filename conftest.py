"""nbval compares the text of a notebook's outputs; pages are compared in a browser (tests/web)."""


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)
