"""Builds the book and shows it.

pages.py build [FOLDER]   build all pages, strictly, into FOLDER/_build/html (default: book)
pages.py serve            serve the book on this machine, and open a browser where there is a
                          desktop; builds it first where there is none, or only an older one
"""

import contextlib
import errno
import fcntl
import functools
import gzip
import http.server
import io
import os
import shutil
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
sys.path.append(str(BOOK / "extensions"))

import reading  # noqa: E402

FIRST_PORT, PORTS = 8000, 50
ZIPPED = {".html", ".css", ".js", ".json", ".svg", ".txt"}
NOISE = "[IPKernelApp] WARNING"  # a kernel's remark on its own transport, once for each chapter


def pages(folder: Path = BOOK) -> Path:
    """Where the pages of a build into `folder` are."""
    return folder / "_build" / "html"


def build(folder: Path = BOOK) -> None:
    """Run every notebook and build every page afresh. Exits with a message if anything is wrong.

    The pages of an earlier build stay until the new ones are whole.
    """
    count = len(list((BOOK / "chapters").glob("[0-9]*.*"))) + 1
    print(f"Building the book: {count} pages, and every chapter is run …", flush=True)
    began = time.monotonic()
    aside = folder / "_build" / "next"
    shutil.rmtree(aside, ignore_errors=True)
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(BOOK), "--all"]
    command += ["--path-output", str(aside), "-W", "-n", "--keep-going", "--quiet"]
    said, read = [], 0
    with subprocess.Popen(
        command, env=quiet_kernels(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout:
            if line.startswith(reading.MARK):
                read += 1
                print(
                    f"  {read:2d} of {count}: {line.removeprefix(reading.MARK)}", end="", flush=True
                )
            elif not line.startswith(NOISE):
                said.append(line)
    if running.returncode or not (pages(aside) / "intro.html").exists():
        print("".join(said)[-12000:])
        for report in sorted((pages(aside) / "reports").rglob("*.err.log")):
            print(f"{report.stem.removesuffix('.err')}:\n{report.read_text()[-3000:]}")
        sys.exit("The book was not built: the messages above say where.")
    shutil.rmtree(pages(folder), ignore_errors=True)
    pages(aside).rename(pages(folder))
    shutil.rmtree(aside)
    print(f"Built in {time.monotonic() - began:.0f} s: {pages(folder) / 'index.html'}", flush=True)


@contextlib.contextmanager
def alone(folder: Path = BOOK):
    """Wait until no other command builds into `folder`, and keep others waiting meanwhile."""
    (folder / "_build").mkdir(parents=True, exist_ok=True)
    with open(folder / "_build" / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another command is building the book: waiting for it …", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_current(folder: Path = BOOK) -> bool:
    """Are there pages, newer than every file that they are made of?"""
    index = pages(folder) / "index.html"
    files = [ROOT / "constraints.txt"]
    for top in BOOK, ROOT / "lib", ROOT / "data":
        files += (file for file in top.rglob("*") if file.is_file())
    made = {"_build", "__pycache__"}
    newest = max(
        file.stat().st_mtime for file in files if not made & {*file.relative_to(ROOT).parts}
    )
    return index.exists() and index.stat().st_mtime > newest


def quiet_kernels() -> dict[str, str]:
    """This environment, with the kernels' start-up warnings off and our own programs first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return os.environ | {"PATH": path, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


class Pages(http.server.SimpleHTTPRequestHandler):
    """Files as they are, compressed where that helps, as a public host sends them."""

    protocol_version = "HTTP/1.1"

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        accepted = "gzip" in self.headers.get("Accept-Encoding", "")
        if not (accepted and path.suffix in ZIPPED and path.is_file()):
            return super().send_head()
        body = gzip.compress(path.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Says nothing of readers who leave before a page has arrived."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def server(folder: Path = BOOK, port: int = FIRST_PORT) -> Server:
    """A server of the built pages on the first free port from `port` on (0: any)."""
    handler = functools.partial(Pages, directory=str(pages(folder)))
    for candidate in range(port, port + PORTS):
        try:
            return Server(("127.0.0.1", candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    sys.exit(f"Ports {port} to {port + PORTS - 1} are all taken: stop one of their programs.")


def serve(folder: Path = BOOK) -> None:
    """Serve until Ctrl-C."""
    with alone(folder):
        if not is_current(folder):
            build(folder)
    with server(folder) as running:
        address = f"http://127.0.0.1:{running.server_port}/"
        if running.server_port != FIRST_PORT:
            print(f"Another program has port {FIRST_PORT}.")
        print(f"The book is at {address} (Ctrl-C stops it)", flush=True)
        if (
            sys.platform == "darwin"
            or os.environ.get("DISPLAY")
            or os.environ.get("WAYLAND_DISPLAY")
        ):
            webbrowser.open(address)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print("\nStopped.")


if __name__ == "__main__":
    verb, *folders = sys.argv[1:] or [""]
    folder = Path(*folders[:1] or [BOOK]).resolve()
    try:
        if verb == "serve":
            serve(folder)
        elif verb == "build":
            with alone(folder):
                build(folder)
        else:
            sys.exit(__doc__)
    except KeyboardInterrupt:
        sys.exit("\nStopped. The pages are as they were before.")
