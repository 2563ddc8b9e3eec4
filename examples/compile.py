"""Compile the sample repo with the real Chronon compiler.

    python examples/compile.py [--venv .venv-compile] [--output dags/chronon/compiled]

The compiler's pins clash with Airflow's, so it lives in a virtual environment of its own, made here from
``requirements-compile.lock`` when it is missing or the lock has changed. It works on a copy, so that the sources stay
clean. Its output replaces the old tree whole, and only when it compiled everything. Needs only the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPO = ROOT / "examples" / "feature_repo"
LOCK = ROOT / "requirements-compile.lock"
OUTPUT = ROOT / "dags" / "chronon" / "compiled"


def ensure_compiler(*, home: Path) -> Path:
    """The compiler's program, installed from the lock if need be; raises CalledProcessError when pip fails."""
    program, stamp = home / "bin" / "zipline", home / "lock.sha256"
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not (program.exists() and stamp.exists() and stamp.read_text() == digest):
        print(f"installing the Chronon compiler into {home}", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        # The lock names every package, so nothing is to resolve; pip would ask for a second pin of `name[extra]`.
        subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(LOCK)], check=True)
        stamp.write_text(digest)
    return program


def compile_repo(*, program: Path, output: Path) -> None:
    """Compile a copy of the repo and put the result in the place of ``output``.

    Raises CalledProcessError when a conf does not compile; the compiler's words are on stderr, ``output`` is untouched.
    """
    # Neither the caller's modules nor a Chronon setting of theirs may get into the output.
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR")}
    with tempfile.TemporaryDirectory(prefix="feature-repo-") as scratch:
        copy = Path(scratch) / REPO.name
        shutil.copytree(REPO, copy, ignore=shutil.ignore_patterns("__pycache__", "compiled*"))
        done = subprocess.run(
            [str(program), "compile"],
            cwd=copy,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            sys.stderr.write(done.stdout)
            done.check_returncode()
        replace_tree(source=copy / "compiled", target=output)


def replace_tree(*, source: Path, target: Path) -> None:
    """Put a copy of ``source`` in the place of ``target``; a reader finds the old one, briefly none, or the new."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiled-") as beside:
        shutil.copytree(source, Path(beside) / "new")
        if target.exists():
            target.rename(Path(beside) / "old")
        (Path(beside) / "new").rename(target)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compile the sample repo with the real Chronon compiler.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-compile", help="where the compiler is or goes")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the tree to replace")
    args = parser.parse_args(argv)
    try:
        compile_repo(program=ensure_compiler(home=args.venv), output=args.output)
    except subprocess.CalledProcessError as error:
        print(
            f"{Path(error.cmd[0]).name} ended with exit code {error.returncode}; nothing was replaced", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
