"""Binder, Colab and source buttons that open the repository this copy was cloned from.

The address comes from BOOK_REPOSITORY_URL, else from GitHub's or GitLab's CI variables, else from
the git remote. With no public host there, the buttons are left out.
"""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

PROVIDERS = {"github.com": "github", "gitlab.com": "gitlab"}


def public_address(remote: str) -> str:
    """https://host/owner/name for any spelling of a git remote; '' for a path or file://.

    >>> public_address("git@github.com:owner/name.git")
    'https://github.com/owner/name'
    >>> public_address("https://token@github.com/owner/name/")
    'https://github.com/owner/name'
    >>> public_address("/srv/git/name")
    ''
    """
    if scp := re.fullmatch(r"(?:[\w.-]+@)?([\w.-]+\.[\w.-]+):(?!//)(.+)", remote.strip()):
        host, path = scp.groups()
    else:
        parts = urlsplit(remote.strip())
        if parts.scheme not in ("https", "http", "ssh", "git") or not parts.hostname:
            return ""
        host, path = parts.hostname, parts.path
    path = re.sub(r"\.git$", "", path.strip("/"))
    return f"https://{host}/{path}" if "/" in path else ""


def _git(folder, *arguments) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find(folder, env=os.environ) -> tuple[str, str]:
    """(address, branch) of the repository that holds `folder`; ('', branch) where there is none."""
    remotes = _git(folder, "remote").split()
    remote = "origin" if "origin" in remotes else (remotes or [""])[0]
    if github := env.get("GITHUB_REPOSITORY"):
        github = f"{env.get('GITHUB_SERVER_URL', 'https://github.com')}/{github}"
    url = (
        env.get("BOOK_REPOSITORY_URL")
        or github
        or env.get("CI_PROJECT_URL")
        or (_git(folder, "remote", "get-url", remote) if remote else "")
    )
    head = _git(folder, "symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD")
    return public_address(url), head.partition("/")[2] or "main"


def _set_buttons(app, config):
    address, branch = find(app.srcdir)
    options = config.html_theme_options
    provider = PROVIDERS.get(urlsplit(address).hostname or "")
    if not provider:
        options["launch_buttons"] = {}
        options["repository_url"] = ""
        options["use_repository_button"] = False
        return
    options |= dict(
        repository_url=address,
        repository_branch=branch,
        repository_provider=provider,
        use_repository_button=True,
        path_to_docs=Path(app.srcdir).name,  # below the top of the repository
    )
    if provider != "github":  # Colab opens notebooks from GitHub only
        options.get("launch_buttons", {}).pop("colab_url", None)


def setup(app):
    app.connect("config-inited", _set_buttons, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
