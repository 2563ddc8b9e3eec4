"""Jobs of 2 to 90 seconds that tell when they live, and what their tales say: who wrote what, and whether two did at once.

A job holds the lock of each of its partitions while it lives: the kernel takes it when the process ends, however that
came about. So a second writer is seen for certain, and the beats say how long it was beside the first.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.support.integration.compiled_confs import CompiledConf, staging_query

BEAT_SECONDS = 0.5
#: Half of the jobs are silent, a quarter of them cannot be asked to end, and which ones the seed decides.
JOB = """
import fcntl, json, os, pathlib, random, signal, sys, time
table, lab, seed = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
labels = os.environ["CHRONON_PARTITIONS"].split(",")
chance = random.Random(f"{seed} {table} {labels}")
works, is_silent, is_stubborn = chance.triangular(2, 90, 4), chance.random() < 0.5, chance.random() < 0.25
if is_stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def tell(what):
    with (lab / "told" / table).open("a") as file:
        file.write(json.dumps({"what": what, "labels": labels, "pid": os.getpid(), "at": time.time()}) + "\\n")
tell("begin")
held = []
for label in labels:
    lock = (lab / "locks" / f"{table} {label}").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("beside")
    held.append(lock)
until = time.monotonic() + works
while time.monotonic() < until:
    time.sleep(min(0.5, max(0, until - time.monotonic())))
    tell("beat")
    if not is_silent:
        print("working on", *labels, flush=True)
for label in labels:
    folder = pathlib.Path(os.environ["CHRONON_WAREHOUSE"]) / table / f"ds={label}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_SUCCESS").touch()
tell("end")
"""


@dataclass(frozen=True)
class Life:
    """One job as its tale has it: instants in seconds since the epoch."""

    table: str
    labels: tuple[str, ...]
    pid: int
    began: float
    last: float  #: of its end, else of its last beat: it lived no longer than a beat after that
    ended: bool
    found_another: bool  #: when it began, somebody else held one of its partitions


class Witness:
    """The folder in which jobs tell, and the command that they are."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self.folder, self._seed = folder, seed
        for name in ("told", "locks"):
            (folder / name).mkdir(parents=True)
        self.script = folder / "job.py"
        self.script.write_text(JOB)

    @property
    def runner(self) -> dict[str, Any]:
        return {
            "kind": "command",
            "argv": [sys.executable, str(self.script), "{table}", str(self.folder), str(self._seed)],
        }

    def lives(self) -> list[Life]:
        """Every job that began."""
        return [life for file in sorted((self.folder / "told").iterdir()) for life in _lives_of(file)]


def beside_each_other(lives: Iterable[Life]) -> list[tuple[Life, Life]]:
    """The pairs of jobs that wrote a partition at one time."""
    by_partition = defaultdict(list)
    for life in lives:
        for label in life.labels:
            by_partition[life.table, label].append(life)
    ordered = [sorted(writers, key=lambda life: life.began) for writers in by_partition.values()]
    pairs = (pair for writers in ordered for pair in combinations(writers, 2))
    return [(first, second) for first, second in pairs if second.began < first.last]


def chains(grids: Iterable[int], *, length: int) -> list[CompiledConf]:
    """Confs in chains, one for each grid (minutes): each reads the one before it. Every other chain has several writers."""
    found = []
    for number, every in enumerate(grids):
        before = None
        for place in range(length):
            conf = staging_query(
                f"chain{number}.step{place}",
                every=every,
                schedule=f"*/{every} * * * *",
                reads=before,
                airflow={"max_active_runs": 1 if number % 2 else 4},
            )
            document = json.loads(json.dumps(conf.document))
            own = json.loads(document["metaData"]["customJson"])
            del own["airflow"]["runner"]  # that of the deployment
            document["metaData"]["customJson"] = json.dumps(own)
            found.append(CompiledConf(conf.kind, conf.name, document))
            before = conf.table
    return found


def _lives_of(file: Path) -> list[Life]:
    tales: list[list[dict[str, Any]]] = []
    by_pid: dict[int, list[dict[str, Any]]] = {}
    for line in file.read_text().splitlines():
        told = json.loads(line)
        if told["what"] == "begin":  # the number of a process that has gone may come back
            by_pid[told["pid"]] = []
            tales.append(by_pid[told["pid"]])
        by_pid[told["pid"]].append(told)
    return [
        Life(
            table=file.name,
            labels=tuple(tale[0]["labels"]),
            pid=tale[0]["pid"],
            began=tale[0]["at"],
            last=tale[-1]["at"],
            ended=tale[-1]["what"] == "end",
            found_another=any(told["what"] == "beside" for told in tale),
        )
        for tale in tales
    ]
