"""What all tests share. nbval compares the text of outputs; pages are compared in a browser."""


def pytest_addoption(parser):
    parser.addoption("--site", metavar="FOLDER", help="test the book built there, not a new build")


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)
