#!/bin/sh
# setup.sh REQUIREMENTS: make .venv with what the file lists. Does nothing where that is done already.
set -eu
cd "$(dirname "$0")/.."
wanted=$1

say() { printf '%s\n' "$*"; }
fail() { printf '\n%s\n' "$*" >&2; exit 1; }

find_python() {
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if [ "$("$name" -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null)" = True ]; then
            say "$name"
            return
        fi
    done
    [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is no Python 3.11 or newer. Name another, or none."
    fail "No Python 3.11 or newer found. Install one and run this again:
  Debian, Ubuntu   sudo apt install python3 python3-venv
  macOS            brew install python@3.13
  Windows          use WSL, then as for Ubuntu
or name one: make book PYTHON=/path/to/python3"
}

# One at a time: a second command waits. The lock is a link to the number of the process.
lock=.venv.lock
until ln -s $$ $lock 2>/dev/null; do
    if kill -0 "$(readlink $lock)" 2>/dev/null; then
        [ -n "${told:-}" ] || say "Another command is making the environment: waiting for it …"
        told=yes
        sleep 1
    else
        rm -f $lock
    fi
done
trap 'rm -f $lock' EXIT
trap 'exit 130' INT TERM

stamp=.venv/$(printf '%s' "$wanted" | tr / -).installed
state=$({ pwd && cat requirements.txt tests/requirements.txt constraints.txt pyproject.toml; } | cksum)
[ -x .venv/bin/python ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ] && exit 0

python=$(find_python)
here() { grep -qF "$(pwd)/.venv" .venv/pyvenv.cfg 2>/dev/null; }
if ! here || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv # not there, half made, made for another folder, or its Python is gone
    say "Making the environment .venv with $("$python" --version) …"
    "$python" -m venv .venv || {
        rm -rf .venv
        fail "$python cannot make a virtual environment. On Debian and Ubuntu: sudo apt install python3-venv"
    }
fi
say "Installing what $wanted lists (a few minutes the first time) …"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$wanted" ||
    fail "The installation failed: see the message above. It needs the Python package index and about 1 GB of disk."
printf '%s' "$state" >"$stamp"
say "The environment is ready."
