"""The tools that the two commands of the README run."""

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from threading import Thread, Timer
from types import SimpleNamespace

import nbformat
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


def test_a_book_is_built_again_when_its_sources_are_newer(built):
    assert pages.is_current(built)
    os.utime(built / "_build" / "html" / "index.html", (0, 0))
    assert not pages.is_current(built)
    (built / "_build" / "html" / "index.html").unlink()
    assert not pages.is_current(built)


def fake_builder(folder, monkeypatch, script):
    """A jupyter-book of our own; its `$2` is where it should write."""
    find = 'while [ "$1" != --path-output ]; do shift; done'
    (folder / "jupyter-book").write_text(f"#!/bin/sh\n{find}\n{script}\n")
    (folder / "jupyter-book").chmod(0o755)
    monkeypatch.setattr(pages.sys, "executable", str(folder / "python"))


def test_a_build_says_where_it_is_and_replaces_the_old_pages(built, monkeypatch, capsys):
    write = (
        'mkdir -p "$2/_build/html"; echo "reading intro"; echo new > "$2/_build/html/intro.html"'
    )
    fake_builder(built, monkeypatch, write)
    pages.build(built)
    assert [page.name for page in pages.pages(built).iterdir()] == ["intro.html"]
    assert "   1 of" in capsys.readouterr().out


def test_a_build_that_fails_says_why_and_keeps_the_old_pages(built, monkeypatch, capsys):
    fake_builder(built, monkeypatch, 'echo "WARNING: no such chapter" >&2; exit 1')
    with pytest.raises(SystemExit, match="not built"):
        pages.build(built)
    assert "no such chapter" in capsys.readouterr().out
    assert (pages.pages(built) / "index.html").exists()


def test_a_chapter_that_fails_is_shown(built, monkeypatch, capsys):
    report = 'cd "$2/_build/html/reports"; echo "AssertionError: mine" > 12_prefill.err.log'
    script = f'mkdir -p "$2/_build/html/reports"; {report}; echo "{pages.NOISE} | x"; exit 1'
    fake_builder(built, monkeypatch, script)
    with pytest.raises(SystemExit, match="not built"):
        pages.build(built)
    said = capsys.readouterr().out
    assert "12_prefill:\nAssertionError: mine" in said and pages.NOISE not in said


def test_a_second_build_waits_for_the_first(tmp_path, capsys):
    order = []

    def later():
        with pages.alone(tmp_path):
            order.append("second")

    with pages.alone(tmp_path):
        second = Thread(target=later)
        second.start()
        second.join(0.5)
        order.append("first")
    second.join()
    assert order == ["first", "second"] and "waiting for it" in capsys.readouterr().out


def test_a_reader_who_leaves_early_is_not_reported(built, capsys):
    with pages.server(built, port=0) as running:
        for error in BrokenPipeError(), ValueError("else"):
            try:
                raise error
            except Exception:
                running.handle_error(None, ("127.0.0.1", 1))
    said = capsys.readouterr().err
    assert "ValueError" in said and "BrokenPipe" not in said


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


def test_buttons_open_the_chapters_where_they_are(tmp_path):
    """A book of two pages, built with this book's settings as a clone of a public repository."""
    book = shutil.copytree(
        ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("_build", "*.ipynb")
    )
    for folder in "lib", "tools":
        (tmp_path / folder).symlink_to(ROOT / folder)
    chapter = "chapters/11_unit_of_work.ipynb"
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: page\nchapters:\n- file: {chapter}\n")
    (book / "page.md").write_text("# A page\n")
    empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A chapter")])
    nbformat.write(empty, book / chapter)
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(book)]
    env = pages.quiet_kernels() | {"BOOK_REPOSITORY_URL": "git@github.com:someone/fork.git"}
    built = subprocess.run(command, env=env, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    page = (book / "_build/html/chapters/11_unit_of_work.html").read_text(encoding="utf8")
    for start in (
        "https://mybinder.org/v2/gh/someone/fork/main?urlpath=lab/tree",
        "https://colab.research.google.com/github/someone/fork/blob/main",
    ):
        assert f'href="{start}/book/{chapter}"' in page
    assert (ROOT / "book" / chapter).is_file()


def test_a_forks_notebooks_install_from_the_fork(tmp_path, monkeypatch):
    copy = Path(shutil.copy(CHAPTERS[0], tmp_path))
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "https://github.com/someone/fork.git")
    assert notebooks.point_at_remote([copy]) == 0
    assert "git+https://github.com/someone/fork@main" in copy.read_text(encoding="utf8")
    assert notebooks.bring_into_form(copy, write=False)


@pytest.fixture
def set_up(tmp_path):
    """Runs the set-up in a folder of its own, with the given environment."""
    for name in ("tools/setup.sh", "requirements.txt", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "requirements.txt", tmp_path / "tests")

    def run(**env):
        command = [shutil.which("sh"), "tools/setup.sh", "requirements.txt"]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    return run


def test_setup_names_what_is_missing(tmp_path, set_up):
    """With no Python in sight the set-up ends with the commands that bring one."""
    (tmp_path / "bin").mkdir()
    for tool in ("dirname", "cat", "cksum", "tr", "ln", "rm", "readlink"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    done = set_up(PATH=str(tmp_path / "bin"))
    assert done.returncode != 0
    assert "apt install python3" in done.stderr
    named = set_up(PATH=os.environ["PATH"], PYTHON="/nowhere/python3")
    assert named.returncode != 0 and "PYTHON=/nowhere/python3" in named.stderr
    silent = set_up(PATH=os.environ["PATH"], PYTHON=shutil.which("true"))
    assert silent.returncode != 0 and "is no Python" in silent.stderr
    assert not (tmp_path / ".venv.lock").is_symlink()


def test_a_second_setup_waits_for_the_first(tmp_path, set_up):
    """The lock names a process: one that runs is waited for, one that is gone is not."""
    lock = tmp_path / ".venv.lock"
    lock.symlink_to(str(os.getpid()))
    Timer(2, lock.unlink).start()
    assert "waiting for it" in set_up(PATH=os.environ["PATH"], PYTHON="/nowhere/python3").stdout
    gone = subprocess.Popen("true")
    gone.wait()
    lock.symlink_to(str(gone.pid))
    assert "waiting" not in set_up(PATH=os.environ["PATH"], PYTHON="/nowhere/python3").stdout


def test_setup_makes_a_broken_environment_anew(tmp_path, set_up):
    """One that was interrupted, or whose Python is gone."""
    programs = {
        "python": 'if [ "$1" = -m ]; then cp -r new .venv; else echo True; fi',  # -m venv
        "new/bin/python": "",
        ".venv/bin/python": "exit 1",
    }
    for name, script in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    done = set_up(PATH=os.environ["PATH"], PYTHON=str(tmp_path / "python"))
    assert done.returncode == 0, done.stderr
    assert "Making the environment" in done.stdout and "is ready" in done.stdout
    assert "Making" not in set_up(PATH=os.environ["PATH"]).stdout
