"""Another revision of a conf root, from its git repository: read from an archive, the checkout is left alone."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from airflow_chronon.conf_root.root import ConfRoot, read_conf_root
from airflow_chronon.core.plan.facts import TreeState
from airflow_chronon.errors import ChrononError, Fault


@contextlib.contextmanager
def revision_of(root: ConfRoot, revision: str, *, left_out: list[Fault]) -> Iterator[ConfRoot]:
    """The conf root as it was at a revision, on the branch of ``root``, so that DAG ids compare.

    It holds every conf, those included that a branch leaves to its base; links that lead out of the root are not followed,
    and ``left_out`` names them. Raises ``ChrononError`` when the root is in no repository, the revision or the folder in it
    does not exist, or its settings cannot be read.
    """
    place = root.path.resolve()
    if not place.is_dir():
        raise _fault(f"there is no conf root {root.path}", "name a folder of a git checkout with --root")
    if revision.startswith("-"):
        raise _fault(f"{revision!r} is not a revision", "name a commit, a tag or a branch")
    prefix = _git(place, "rev-parse", "--show-prefix").decode().strip()
    _git(place, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", about=revision)
    archive = _git(place, "archive", "--format=tar", revision, ".", about=revision)
    with tempfile.TemporaryDirectory(prefix="chronon-base-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            left_out += _unpack(tar, folder)
        at = Path(folder)
        if prefix and not any(at.iterdir()):
            raise _fault(f"{revision} holds no {prefix}", "name a revision that has the conf root")
        found = read_conf_root(at, environ=os.environ, branch=root.branch).whole
        if found.state is TreeState.UNREADABLE:
            raise _fault(f"{revision} cannot be compared with: {found.problems[0]}", "name another revision")
        yield found


def _unpack(tar: tarfile.TarFile, folder: str) -> Iterator[Fault]:
    for member in tar:
        try:
            tar.extract(member, folder, filter="data")
        except tarfile.FilterError:
            problem = f"{member.name} is a link that leads out of the conf root: what is behind it is not compared"
            yield Fault("input", "--base", problem, "take what is said of it for unknown")


def _git(place: Path, *arguments: str, about: str = "") -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(place), *arguments], capture_output=True, check=True)
    except FileNotFoundError:
        raise _fault("git is not installed", "install it, or compare two checkouts with check") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        problem = said[-1].removeprefix("fatal: ") if said else f"there is no revision {about!r}"
        raise _fault(problem, "name a commit, a tag or a branch of the repository that the conf root is in") from None
    return done.stdout


def _fault(problem: str, remedy: str) -> ChrononError:
    return ChrononError(Fault("input", "--base", problem, remedy))
