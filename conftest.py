"""What all tests share. nbval compares the text of outputs; pages are compared in a browser."""

import re

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# Random tests draw the same examples on every machine, however busy it is.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

collect_ignore_glob = ["*/conftest.py"]  # they hold no doctests, and share one module name


def pytest_addoption(parser):
    parser.addoption("--site", metavar="FOLDER", help="test the book built there, not a new build")


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)


def pytest_collection_modifyitems(items):
    """What takes longest starts first: one worker builds the book, one makes environments."""
    first = ["test_build", "test_kernels"]
    items.sort(key=lambda item: -1 if item.path.stem in first else "web" in item.path.parts)


class ByChapter(LoadScopeScheduling):
    """A worker takes a file at a time, but all page tests of a chapter: its code runs once."""

    def _split_scope(self, nodeid):
        page = re.match(r"tests/web/test_(?:figures|pages|pictures)\.py::.*\b(\d\d_\w+)", nodeid)
        return page[1] if page else nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ByChapter(config, log)
