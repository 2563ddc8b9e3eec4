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
def revision_of(root: ConfRoot, revision: str, *, notes: list[Fault]) -> Iterator[ConfRoot]:
    """The conf root as it was at a revision, on the branch of ``root``, so that DAG ids compare.

    It holds every conf, those included that a branch leaves to its base. A revision without the folder holds none, as the
    one before the first conf does. ``notes`` gets what a reader of the comparison should know: that the folder is not there,
    and links that lead out of the root, which are not followed. Raises ``ChrononError`` when the root is in no repository,
    the revision does not exist, or its settings cannot be read.
    """
    place = root.path.resolve()
    if not place.is_dir():
        raise _fault(f"there is no conf root {root.path}", "name a folder of a git checkout with --root")
    if revision.startswith("-"):
        raise _fault(f"{revision!r} is not a revision", "name a commit, a tag or a branch")
    prefix = _git(place, "rev-parse", "--show-prefix").decode().strip()
    _git(place, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", about=revision)
    # git archive of a folder that a revision lacks is an error; a tree that has it lists the folder by its path from the top
    is_there = not prefix or _git(place, "ls-tree", "--full-tree", revision, prefix.rstrip("/"), about=revision)
    if not is_there:
        problem = f"{revision} has no folder {prefix.rstrip('/')}: every conf is new, and no grid is compared"
        notes.append(Fault("input", "--base", problem, "go on, unless the folder lay elsewhere then"))
    with tempfile.TemporaryDirectory(prefix="chronon-base-") as folder:
        if is_there:
            archive = _git(place, "archive", "--format=tar", revision, ".", about=revision)
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                notes += _unpack(tar, folder)
        found = read_conf_root(Path(folder), environ=os.environ, branch=root.branch).whole
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
