"""Finds the browser that the tests drive, or brings one.

In this order: an installed Chromium or Chrome; Playwright's own; on Debian and Ubuntu, as root,
the distribution's package. Where all fail, it says which command helps, and fails.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = [  # a quiet browser: it asks nobody, and runs as root in a container
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def installed(playwright) -> str | None:
    """The path of an installed browser, else of Playwright's own, else None."""
    given = os.environ.get("BROWSER_PATH")
    found = [given] if given else [shutil.which(name) for name in NAMES] + list(PLACES)
    for path in found:
        if path and Path(path).exists():
            return path
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def bring(playwright) -> str:
    """The path of a browser, installed now if need be. Exits with advice where that fails."""
    if path := installed(playwright):
        return path
    print("No Chromium or Chrome found. Fetching Playwright's own …", flush=True)
    fetch = [sys.executable, "-m", "playwright", "install", "chromium"]
    subprocess.run(fetch, timeout=900, capture_output=True)
    if path := installed(playwright):
        return path
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("That did not work. Installing the distribution's package …", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], timeout=600, capture_output=True)
        install = ["apt-get", "install", "-y", "-qq", "chromium"]
        subprocess.run(install, timeout=1200, capture_output=True)
        if path := installed(playwright):
            return path
    sys.exit(
        "The tests need Chromium or Chrome, and none could be brought. Install one:\n"
        "  Debian, Ubuntu   sudo apt install chromium\n"
        "  macOS            brew install --cask google-chrome\n"
        "or name one that is installed: BROWSER_PATH=/path/to/chrome make test"
    )


if __name__ == "__main__":
    with sync_playwright() as running:
        print(f"Browser for the tests: {bring(running)}")
