"""A generator of hostile files: whatever a careless or an evil hand may drop into a conf root, by seed (S1, S2).

Each is one file, or one link, in a place of its own; the same seed gives the same file. What it holds may be bad or odd and
still good: that is for the reader to say, and for the tests to hold it to.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.support.confs import dependency, entities, events, group_by, join, staging_query

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "x" * 300,
    "x" * 600,
    "x" * 3_000,
    "x" * 100_000,
    "a\0b",
    "a\nb",
    "a\x1b[31mb",
    "a\x7fb",
    "a\ud800",
    "\udfff",
    "a\u202eb",
    "ö" * 251,
    "🚀" * 300,
    "../../etc/passwd",
    "${HOME}",
    "{{ ds }}",
    "%s%n",
    "a,b;c",
    "'; DROP TABLE dag; --",
    "<script>",
    "nan",
    "2026-01-01",
    "9999-12-31",
    "0001-01-01",
    "0 0 31 2 *",
    ",".join(["0"] * 400) + " 0 * * *",
    "yyyy-MM-dd'" + "x" * 300 + "'",
    "yyyy-MM-dd'\0'",
    "yyyy-MM-dd'\n'",
    "yyyy-MM-dd'\ud800'",
)
NUMBERS: tuple[Any, ...] = (
    -1,
    0,
    2**31,
    3_000_000_000,
    2**63,
    10**400,
    -(2**31) - 1,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    True,
)
SHAPES: tuple[Any, ...] = (
    None,
    [],
    {},
    [[]],
    [None],
    {"length": 1, "timeUnit": 9},
    {"length": 10**30, "timeUnit": 1},
    {"length": -400, "timeUnit": 0},
    {"a\0": 1},
    {"\ud800": 1},
)
NAMES: tuple[bytes, ...] = (
    b"\xff\xfe",
    b"x\xc3",
    b"a\nb",
    b"a\tb",
    b"a\x1b[2Jb",
    b"a\x7fb",
    "ö".encode() * 120,
    b"y" * 245,
    b"a b",
    b"-rf",
    b"$(id)",
    "a\u202eb".encode(),
    "a\u2028b".encode(),
)
YAML_VALUES: tuple[str, ...] = (
    "!!binary aGVsbG8=",
    "!!binary /w==",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!pairs [a: 1]",
    "!!timestamp 2026-01-01",
    "!!python/object:os.system {}",
    "!!float nan",
    ".inf",
    "!!int abc",
    "{1: 2}",
    "? [a]\n  : b",
    "[[[[[[1]]]]]]",
    "*nowhere",
    "&a [*a]",
    "[" * 3_000,
    "3000000000",
    "-3000000000",
    "1" * 400,
    '"\\0"',
    '"\\ud800"',
    '"a\\nb"',
    '"\\e[31m"',
    "x" * 257,
    "x" * 501,
    "x" * 3_000,
    '""',
    "null",
    "yes",
    "[a, b]",
    "{a: b}",
    "2026-01-01",
    "${HOME}",
)
JOB_KEYS = (
    "version",
    "owner",
    "retries",
    "env",
    "max_pending_runs",
    "on_retire",
    "task_defaults",
    "schedule",
    "runner",
    "legacy_start_time_arg",
    "unknown",
)
TASK_KEYS = ("pool", "queue", "priority_weight", "email", "on_failure_callback", "unknown")
SCHEDULE_KEYS = (
    "cron_expression",
    "start_time",
    "end_time",
    "start_time_offset_seconds",
    "lookback_seconds",
    "catchup",
    "max_active_runs",
    "max_catchup_runs",
    "skip_to_date",
    "enabled",
)
SETTING_KEYS = (
    *TASK_KEYS,
    *("owner", "retries", "start_date", "end_date", "skip_to_date", "max_active_runs", "max_pending_runs"),
    *("catchup", "max_catchup_runs", "lookback", "sensor", "catalog", "runner"),
)
FIELDS = (
    *("name", "team", "version", "outputNamespace", "customJson", "environments", "online", "offlineSchedule"),
    *("onlineSchedule", "partitionColumn", "partitionFormat", "partitionInterval", "partitionOffset", "partitionLag"),
    *("table", "snapshotTable", "mutationTable", "topic", "triggerExpr", "subPartitionsToWaitFor", "startPartition"),
    *(
        "endPartition",
        "startOffset",
        "endOffset",
        "startCutOff",
        "endCutOff",
        "query",
        "accuracy",
        "windows",
        "sources",
    ),
)
_FOLDERS = {"staging_query": "staging_queries", "group_by": "group_bys", "join": "joins"}


@dataclass(frozen=True)
class HostileFile:
    """One file: where it lies below the conf root, as bytes, and how it is made."""

    path: bytes
    write: Callable[[bytes], None]
    what: str  #: for the report of a test that fails

    def drop(self, root: Path) -> None:
        full = os.fsencode(root) + b"/" + self.path
        os.makedirs(os.path.dirname(full), exist_ok=True)
        self.write(full)


def hostile_files(count: int, *, outside: Path) -> Iterator[HostileFile]:
    """As many files, one for each seed; links among them lead to ``outside``."""
    for seed in range(count):
        yield hostile_file(seed, outside=outside)


def hostile_file(seed: int, *, outside: Path) -> HostileFile:
    random = Random(seed)
    kinds = (_conf, _conf, _conf, _own_settings, _job, _job, _raw, _odd_name, _link)
    return kinds[seed % len(kinds)](random, seed, outside)


def _conf(random: Random, seed: int, _outside: Path) -> HostileFile:
    """A conf of any type with hostile values at random places."""
    name = f"t{seed}.h.x__1"
    kind, document = _document(random, name)
    said = []
    for _ in range(random.randint(1, 3)):
        node, key = random.choice(list(_places(document)))
        value = copy.deepcopy(random.choice((*TEXTS, *NUMBERS, *SHAPES)))
        if random.random() < 0.4:
            key = random.choice(FIELDS)
            node = random.choice([each for each, _ in _places(document) if isinstance(each, dict)])
        node[key] = value
        said.append(f"{key}={str(value)[:40]!r}")
    return _json_file(kind, seed, document, f"{kind} with {said}")


def _own_settings(random: Random, seed: int, _outside: Path) -> HostileFile:
    """A conf that says hostile things of itself in its customJson."""
    key, value = random.choice(SETTING_KEYS), copy.deepcopy(random.choice((*TEXTS, *NUMBERS, *SHAPES)))
    own = {"task_defaults": {key: value}} if key in TASK_KEYS else {key: value}
    document = staging_query(f"t{seed}.h.x__1", customJson=json.dumps({"airflow": own}))
    return _json_file("staging_query", seed, document, f"own settings {key}={str(value)[:40]!r}")


def _job(random: Random, seed: int, _outside: Path) -> HostileFile:
    """A job file with a hostile value at one key."""
    lines = {"version": "1", "runner": "{kind: command, argv: ['true']}"}
    value = random.choice(YAML_VALUES)
    place = random.choice(("top", "task_defaults", "schedule"))
    if place == "top":
        key = random.choice(JOB_KEYS)
        lines[key] = value
    elif place == "task_defaults":
        key = random.choice(TASK_KEYS)
        lines["task_defaults"] = f"\n  {key}: {value}"
    else:
        key = random.choice(SCHEDULE_KEYS)
        head = "" if key == "cron_expression" else "\n  cron_expression: '@daily'"
        lines["schedule"] = f"{head}\n  {key}: {value}"
    text = "".join(f"{each}: {said}\n" for each, said in lines.items())
    return HostileFile(f"jobs/t{seed}/h.yaml".encode(), _writing(text.encode()), f"job {place} {key}: {value[:40]}")


def _raw(random: Random, seed: int, _outside: Path) -> HostileFile:
    """What is no conf at all, or one without measure."""
    deep: Any = events("a.b")
    for _ in range(60):
        deep = {"joinSource": {"join": join("t.j.x__1", left=deep), "query": {}}}
    many = staging_query(f"t{seed}.h.x__1", dependencies=[dependency(f"a.b{n}") for n in range(1_500)])
    contents: tuple[bytes, ...] = (
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[" * 50_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
        b"[" + b"1," * 300_000 + b"1]",
        json.dumps(group_by(f"t{seed}.h.x__1", sources=[deep])).encode(),
        json.dumps(many).encode(),
        random.randbytes(500),
    )
    kind = random.choice(list(_FOLDERS.values()))
    content = random.choice(contents)
    return HostileFile(f"compiled/{kind}/t{seed}/h.x__1".encode(), _writing(content), f"raw {content[:30]!r}")


def _odd_name(random: Random, seed: int, _outside: Path) -> HostileFile:
    """A good conf or job under a hostile name of its file or its team's folder."""
    odd, is_job = random.choice(NAMES), random.random() < 0.4
    team, name = (odd[:200] + str(seed).encode(), b"h") if random.random() < 0.5 else (f"t{seed}".encode(), odd)
    if is_job:
        text = b"version: 1\nrunner: {kind: command, argv: ['true']}\n"
        return HostileFile(b"jobs/" + team + b"/" + name + b".yaml", _writing(text), f"job called {team!r}/{name!r}")
    text = json.dumps(staging_query(f"t{seed}.h.x__1")).encode()
    path = b"compiled/staging_queries/" + team + b"/" + name
    return HostileFile(path, _writing(text), f"conf called {team!r}/{name!r}")


def _link(random: Random, seed: int, outside: Path) -> HostileFile:
    """A link that leads out of the root, to a file or a folder, or to itself."""
    target = random.choice([os.fsencode(outside), os.fsencode(outside / "secret"), b"/usr", b"/etc/passwd"])
    place = random.choice([b"compiled/joins/t%d/h.x__1", b"compiled/group_bys/all%d", b"jobs/t%d/h.yaml"]) % seed
    return HostileFile(place, lambda path: os.symlink(target, path), f"link to {target!r}")


def _document(random: Random, name: str) -> tuple[str, dict[str, Any]]:
    kind = random.choice(list(_FOLDERS))
    if kind == "staging_query":
        return kind, staging_query(name, dependencies=[dependency("a.b"), dependency("a.c")])
    if kind == "group_by":
        return kind, group_by(name, sources=[events("a.b"), entities("a.c")], schedule="@daily", windows=["7d"])
    parts = [group_by("t.g.p__1", sources=[events("a.b")], windows=["7d"])]
    return kind, join(name, parts=parts, bootstraps=[{"table": "a.d", "query": {}}])


def _json_file(kind: str, seed: int, document: dict[str, Any], what: str) -> HostileFile:
    path = f"compiled/{_FOLDERS[kind]}/t{seed}/h.x__1"
    return HostileFile(path.encode(), _writing(json.dumps(document).encode()), what)


def _writing(content: bytes) -> Callable[[bytes], None]:
    def write(path: bytes) -> None:
        with open(path, "wb") as file:
            file.write(content)

    return write


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key below a JSON value."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])
