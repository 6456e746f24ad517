"""The built book, served, and a browser."""

import threading
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

import browser as browsers
import pages
from reader import Reader


@pytest.fixture(scope="session")
def site(request, tmp_path_factory, worker_id) -> Path:
    """The folder of the pages, built once for all workers."""
    if given := request.config.getoption("--site"):
        return pages.pages(Path(given).resolve())
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "book"
    with FileLock(f"{folder}.lock"):
        if not (folder / "built").exists():
            pages.build(folder)
            (folder / "built").touch()
    return pages.pages(folder)


@pytest.fixture(scope="session")
def address(site) -> str:
    """The address at which the pages are served."""
    with pages.server(site.parent.parent, port=0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Browser:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=browsers.bring(playwright), args=browsers.FLAGS
        )
        yield running
        running.close()


@pytest.fixture
def reader(chromium, address) -> Reader:
    """A fresh reader of the served book."""
    one = Reader(chromium, address)
    yield one
    one.context.close()
