"""What all tests share. nbval compares the text of outputs; pages are compared in a browser."""

from pathlib import Path

import pytest
from hypothesis import settings

# Random tests draw the same examples on every machine, however busy it is.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

collect_ignore_glob = ["*/conftest.py"]  # they hold no doctests, and share one module name


def pytest_addoption(parser):
    parser.addoption("--site", metavar="FOLDER", help="test the book built there, not a new build")


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """Says which tests stay together on one worker, and which start first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(together(item)))
    first = ["test_build", "test_kernels"]  # one worker builds the book, one makes environments
    items.sort(key=lambda item: -1 if item.path.stem in first else "web" in item.path.parts)


def together(item) -> str:
    """A notebook with its kernel; all tests of one page, whose figures are drawn once; a file."""
    given = getattr(item, "callspec", None)
    page = given and (given.params.get("chapter") or given.params.get("name"))
    if page and "web" in item.path.parts:
        return Path(page).stem
    return item.name if item.path.stem == "test_kernels" else item.path.name
