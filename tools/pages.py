"""Builds the book and shows it.

pages.py build [FOLDER]   build all pages, strictly, into FOLDER/_build/html (default: book)
pages.py serve [FOLDER]   serve them on this machine and open a browser where there is a desktop
"""

import errno
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
FIRST_PORT, PORTS = 8000, 50
ZIPPED = {".html", ".css", ".js", ".json", ".svg", ".txt"}


def pages(folder: Path = BOOK) -> Path:
    """Where the pages of a build into `folder` are."""
    return folder / "_build" / "html"


def build(folder: Path = BOOK) -> None:
    """Run every notebook and build every page afresh. Exits with a message if anything is wrong."""
    chapters = len(list((BOOK / "chapters").glob("*.ipynb")))
    print(f"Building the book: {chapters} chapters are run, a minute or two …", flush=True)
    began = time.monotonic()
    shutil.rmtree(folder / "_build", ignore_errors=True)
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(BOOK), "--all"]
    command += ["--path-output", str(folder), "-W", "-n", "--keep-going", "--quiet"]
    done = subprocess.run(command, env=quiet_kernels(), capture_output=True, text=True)
    if done.returncode or not (pages(folder) / "intro.html").exists():
        print(done.stdout[-6000:], done.stderr[-6000:], sep="\n")
        sys.exit("The book was not built: the messages above say where.")
    print(f"Built in {time.monotonic() - began:.0f} s: {pages(folder) / 'index.html'}", flush=True)


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


def server(folder: Path = BOOK, port: int = FIRST_PORT) -> http.server.ThreadingHTTPServer:
    """A server of the built pages on the first free port from `port` on (0: any)."""
    handler = functools.partial(Pages, directory=str(pages(folder)))
    for candidate in range(port, port + PORTS):
        try:
            return http.server.ThreadingHTTPServer(("127.0.0.1", candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    sys.exit(f"Ports {port} to {port + PORTS - 1} are all taken: stop one of their programs.")


def serve(folder: Path = BOOK) -> None:
    """Serve until Ctrl-C."""
    if not (pages(folder) / "index.html").exists():
        sys.exit("There is no built book yet: run make site first.")
    with server(folder) as running:
        address = f"http://127.0.0.1:{running.server_port}/"
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
    verbs = {"build": build, "serve": serve}
    if len(sys.argv) < 2 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*(Path(folder).resolve() for folder in sys.argv[2:3]))
