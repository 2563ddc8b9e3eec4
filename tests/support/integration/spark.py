"""Spark itself: where its ``spark-submit`` is, and an application that writes a partition and says when it begins and ends."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

INSTALL = (
    "spark-submit was found neither on PATH nor in CHRONON_TEST_SPARK: give Java 17 or newer and, in an environment of its own,"
    " 'pip install pyspark'; then set CHRONON_TEST_SPARK to the spark-submit beside its Python"
)

#: ``APPLICATION LABEL TABLE FOLDER``: tells, waits as long as it is held, writes the partition, tells again.
_APPLICATION = """
import os, pathlib, sys, time
from pyspark.sql import SparkSession
label, table, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
def tell(what):
    with (folder / "told").open("a") as file:
        file.write(f"{what} {label} {os.getpid()} {os.getppid()}\\n")
spark = SparkSession.builder.getOrCreate()
tell("begins")
while (folder / f"hold {label}").exists():
    time.sleep(0.1)
spark.range(10).write.mode("overwrite").parquet(f"{table}/ds={label}")
tell("ends")
"""

#: ``submit TOKEN COMMAND…``, ``status ID``, ``cancel ID``, ``find TOKEN``: jobs that outlive whoever submitted them.
_LAUNCHER = """#!/bin/sh
what=$1 job="$(dirname "$0")/jobs/$2"
case "$what" in
run)
  shift 2
  "$@" > "$job/log" 2>&1
  echo $? > "$job/code.new"
  mv "$job/code.new" "$job/code"
  ;;
submit)
  mkdir -p "$job"
  id=$2
  shift 2
  setsid "$0" run "$id" "$@" < /dev/null > /dev/null 2>&1 &
  echo $! > "$job/pid"
  echo "Job submitted with ID: $id"
  while [ -e "$(dirname "$0")/hold submit" ]; do touch "$(dirname "$0")/submitted"; sleep 0.1; done
  ;;
status)
  if [ ! -e "$job/code" ]; then echo RUNNING
  elif [ "$(cat "$job/code")" = 0 ]; then echo FINISHED
  else echo FAILED
  fi
  ;;
cancel) kill -TERM "-$(cat "$job/pid")" ;;
find) [ ! -d "$job" ] || echo "$2" ;;
esac
"""


def spark_submit() -> Path:
    """Where it is. Fails the test when there is none."""
    found = os.environ.get("CHRONON_TEST_SPARK") or shutil.which("spark-submit")
    if not found:
        pytest.fail(INSTALL)
    return Path(found)


@dataclass(frozen=True)
class SparkLab:
    """A folder with the application and the launcher, through which they and the tests talk."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> SparkLab:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "application.py").write_text(_APPLICATION)
        launcher = folder / "launcher"
        launcher.write_text(_LAUNCHER)
        launcher.chmod(0o755)
        return cls(folder)

    @property
    def argv(self) -> list[str]:
        """The command that runs the application, as the setting has it."""
        local = ("spark.ui.enabled=false", "spark.driver.bindAddress=127.0.0.1", "spark.driver.host=127.0.0.1")
        settings = [part for setting in local for part in ("--conf", setting)]
        of_run = ["{partition}", "${CHRONON_WAREHOUSE}/{table}", str(self.folder)]
        return [str(spark_submit()), "--master", "local[1]", *settings, str(self.folder / "application.py"), *of_run]

    @property
    def env(self) -> dict[str, str]:
        """The interpreter of the Python that Spark is installed in."""
        python = spark_submit().parent / "python"
        return dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(python)) if python.exists() else {}

    def told(self, label: str) -> list[tuple[str, list[int]]]:
        """What the applications of a partition have told: ``begins`` or ``ends``, and the processes of Python and of Java."""
        file = self.folder / "told"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(what, [int(pid) for pid in pids]) for what, of, *pids in lines if of == label]
