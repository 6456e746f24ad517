"""The chapters with a kernel: in JupyterLab, by Binder's steps, and alone as in Colab."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import notebooks
from chapters import CHAPTERS, ROOT, cells

CHAPTER = ROOT / "book" / "chapters" / "14_bandwidth_bound.ipynb"
RUN = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], 4)
place = {"metadata": {"path": sys.argv[2]}}
NotebookClient(book, timeout=180, kernel_name="python3", resources=place).execute()
for cell in book.cells:
    for out in cell.get("outputs", []):
        print(out.get("text") or out.get("data", {}).get("text/plain", ""))
"""


def clean_environment(**extra) -> dict[str, str]:
    """Ours without what would let a fresh environment see this one."""
    ours = {"PYTHONPATH", "VIRTUAL_ENV", "SERVESIM_PRERENDER", "PYTEST_CURRENT_TEST"}
    return {k: v for k, v in os.environ.items() if k not in ours} | extra


def fresh_environment(folder: Path, *install: str, cwd: Path) -> Path:
    """A new virtual environment with what pip is told to install; its python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, env=clean_environment())
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    pip += ["--disable-pip-version-check", *install]
    done = subprocess.run(pip, cwd=cwd, env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return python


def clone(folder: Path) -> Path:
    """The project as it stands, committed or not, as a git repository of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    return folder


def stored_text(chapter: Path) -> list[str]:
    """The printed lines of the committed notebook."""
    outputs = [o for cell in cells(chapter, "code") for o in cell["outputs"]]
    return "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream").split("\n")


def test_alone_in_colab(tmp_path):
    """One file in an empty folder, ipywidgets 7, and only the address in its first cell."""
    remote = clone(tmp_path / "remote")
    alone = tmp_path / "content"
    alone.mkdir()
    shutil.copy(CHAPTER, alone)
    stock = ["numpy", "matplotlib", "ipywidgets<8", "ipykernel", "nbclient", "nbformat"]
    python = fresh_environment(tmp_path / "env", *stock, cwd=alone)
    address = notebooks.INSTALL.search(CHAPTER.read_text(encoding="utf8"))[2]
    redirect = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{remote}.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [python, "-c", RUN, CHAPTER.name, "."],
        cwd=alone,
        env=clean_environment(**redirect),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(stored_text(CHAPTER)) <= set(done.stdout.split("\n"))
    where = [
        python,
        "-c",
        "import servesim, ipywidgets as w; print(servesim.__file__, w.__version__)",
    ]
    path, version = subprocess.run(where, cwd=alone, capture_output=True, text=True).stdout.split()
    assert str(tmp_path / "env") in path and version.startswith("7.")


def test_binders_steps(tmp_path):
    """What repo2docker does: requirements.txt into a fresh environment, then the notebook."""
    repository = clone(tmp_path / "repository")
    python = fresh_environment(tmp_path / "env", "-r", "requirements.txt", cwd=repository)
    chapter = CHAPTER.relative_to(ROOT)
    done = subprocess.run(
        [python, "-c", RUN, chapter, chapter.parent],
        cwd=repository,
        env=clean_environment(PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(stored_text(CHAPTER)) <= set(done.stdout.split("\n"))


def test_binder_and_colab_buttons_follow_the_remote():
    import repository

    assert re.match(r"python-3\.1[1-3]$", (ROOT / "runtime.txt").read_text().strip())
    env = {"BOOK_REPOSITORY_URL": "git@github.com:someone/fork.git"}
    assert repository.find(ROOT, env)[0] == "https://github.com/someone/fork"
    assert repository.find("/", {}) == ("", "main")


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab over a copy of the chapters."""
    for chapter in CHAPTERS:
        shutil.copy(chapter, tmp_path)
    settings = tmp_path / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)  # all cells in the page at once, not only those in view
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--IdentityProvider.token=", "--ServerApp.port_retries=0"]
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=clean_environment(
            JUPYTER_CONFIG_DIR=str(tmp_path / "config"),
            JUPYTERLAB_SETTINGS_DIR=str(tmp_path / "settings"),
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).read()
            break
        except OSError:
            time.sleep(0.25)
    yield address
    running.terminate()
    running.wait(20)


def test_sliders_work_in_jupyterlab(lab, chromium):
    """A real kernel: run all cells; a key on a slider draws anew, Enter marks a typed answer."""
    page = chromium.new_page(viewport={"width": 1300, "height": 1000})
    page.goto(f"{lab}/lab/tree/{CHAPTER.name}")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    note = page.locator(".widget-vbox .live-note").first
    note.wait_for(timeout=60_000)
    before = note.text_content()
    handle = page.locator(".widget-vbox .noUi-handle").first
    handle.scroll_into_view_if_needed()
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.widget-vbox .live-note').textContent !== before",
        arg=before,
        timeout=10_000,
    )
    assert "tok/s" in note.text_content()
    form = page.locator(".jp-OutputArea .ask-variant[data-tolerance]:visible").first
    form.locator("input").fill("1")
    form.locator("input").press("Enter")
    assert form.locator(".ask-mark").text_content() == "Not quite: see the working."
    page.close()
