"""The tools that the two commands of the README run."""

import shutil
import subprocess
import urllib.request
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

import browser
import notebooks
import pages
import repository
from chapters import CHAPTERS, ROOT


@pytest.fixture
def built(tmp_path):
    """A folder with one built page."""
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / "_build" / "html" / "index.html").write_text("<p>here</p>" * 100)
    return tmp_path


def test_a_taken_port_gives_way_to_the_next(built):
    with pages.server(built, port=0) as first:
        with pages.server(built, port=first.server_port) as second:
            assert second.server_port > first.server_port


def test_pages_are_served_compressed_to_who_takes_it(built):
    with pages.server(built, port=0) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{running.server_port}/"
        plain = urllib.request.urlopen(address).read()
        asked = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
        zipped = urllib.request.urlopen(asked)
        assert zipped.headers["Content-Encoding"] == "gzip" and len(zipped.read()) < len(plain)
        running.shutdown()


def test_serving_without_a_built_book_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="run make site first"):
        pages.serve(tmp_path)


def test_no_browser_at_all_ends_with_the_commands_that_help(monkeypatch):
    monkeypatch.setattr(browser, "PLACES", ())
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    monkeypatch.setattr(browser.subprocess, "run", lambda *a, **k: None)
    nothing = SimpleNamespace(chromium=SimpleNamespace(executable_path="/nowhere/chrome"))
    with pytest.raises(SystemExit, match="sudo apt install chromium"):
        browser.bring(nothing)


def test_a_named_browser_is_taken(monkeypatch, tmp_path):
    (tmp_path / "chrome").touch()
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "chrome"))
    assert browser.bring(None) == str(tmp_path / "chrome")


@pytest.mark.parametrize(
    "remote, address",
    [
        ("git@github.com:owner/name.git", "https://github.com/owner/name"),
        ("https://token@github.com/owner/name/", "https://github.com/owner/name"),
        ("ssh://git@gitlab.com:22/group/sub/name.git", "https://gitlab.com/group/sub/name"),
        ("/srv/git/name", ""),
        ("file:///srv/git/name", ""),
        ("", ""),
    ],
)
def test_public_address_of_a_remote(remote, address):
    assert repository.public_address(remote) == address


def test_buttons_are_left_out_where_there_is_no_remote():
    options = {"launch_buttons": {"colab_url": "x", "binderhub_url": "y"}}
    app = SimpleNamespace(srcdir="/")
    repository._set_buttons(app, SimpleNamespace(html_theme_options=options))
    assert options["launch_buttons"] == {} and not options["use_repository_button"]


def test_colab_only_for_github(monkeypatch):
    for url, colab in ("https://github.com/a/b", True), ("https://gitlab.com/a/b", False):
        monkeypatch.setenv("BOOK_REPOSITORY_URL", url)
        options = {"launch_buttons": {"colab_url": "x", "binderhub_url": "y"}}
        app = SimpleNamespace(srcdir="/")
        repository._set_buttons(app, SimpleNamespace(html_theme_options=options))
        assert ("colab_url" in options["launch_buttons"]) == colab
        assert options["repository_url"] == url


def test_a_forks_notebooks_install_from_the_fork(tmp_path, monkeypatch):
    copy = Path(shutil.copy(CHAPTERS[0], tmp_path))
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "https://github.com/someone/fork.git")
    assert notebooks.point_at_remote([copy]) == 0
    assert "git+https://github.com/someone/fork@main" in copy.read_text(encoding="utf8")
    assert notebooks.bring_into_form(copy, write=False)


def test_setup_names_what_is_missing(tmp_path):
    """With no Python in sight the set-up ends with the commands that bring one."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path / "tools")
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "requirements.txt", tmp_path / "tests")
    (tmp_path / "bin").mkdir()
    for tool in ("dirname", "cat", "cksum", "tr"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    done = subprocess.run(
        [shutil.which("sh"), "tools/setup.sh", "requirements.txt"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "apt install python3" in done.stderr
