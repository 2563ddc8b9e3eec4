"""The variables that a job gets: of the worker, of its own, of its run (H5, S5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from airflow_chronon.core.bounds import text_problem, unstorable
from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.errors import ChrononError, Fault

VARIABLE = re.compile(r"[^=\0]+")  #: what a variable's name may be

LONGEST_VALUE = 100_000  #: characters; Linux starts no process with a variable of 128 KiB
#: Set only when the run has a window (H7).
WINDOW_VARIABLES = (
    "HOPS_START_TIME",
    "HOPS_END_TIME",
    "HOPS_LOGICAL_DATE",
    "CHRONON_START_TIME",
    "CHRONON_END_TIME",
    "CHRONON_LOGICAL_DATE",
    "CHRONON_PARTITION",
    "CHRONON_PARTITIONS",
)

#: Airflow's configuration (its keys to the database, to connections and to its own API among it), connections and
#: variables; what its processes tell each other, a task's token among it; what its images are set up with. A list of
#: what is withheld: what jobs need (``PATH``, ``SPARK_*``, ``AWS_*`` …) nobody can list.
_AIRFLOWS_OWN = ("AIRFLOW__*", "AIRFLOW_CONN_*", "AIRFLOW_VAR_*", "_AIRFLOW*", "__AIRFLOW*")

#: Variables by which a program, its interpreter or its libraries are found, or by which these run code of somebody's.
#: Of Spark and Hadoop all: their scripts start what many of them name, and act for whom one of them says.
_LOADING = (
    *("PATH", "HOME", "SHELL", "IFS", "ENV", "CDPATH", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "SHELLOPTS", "BASH*"),
    *("LD_*", "DYLD_*", "GCONV_PATH", "LOCPATH", "MALLOC_*", "GLIBC_*", "OPENSSL_*"),
    *("PYTHON*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "NODE_*", "NPM_*", "LUA_*", "JULIA_*", "PHP*", "CONDA_*"),
    *("R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "DOTNET_*", "CORECLR_*"),
    *("*_OPTIONS", "*_OPTS", "JAVA*", "CLASSPATH", "*_CLASSPATH", "*_JAR", "*_JARS", "*_HOME", "*_CONF_DIR"),
    *("SPARK_*", "PYSPARK_*", "HADOOP_*", "HDFS_*", "YARN_*", "HIVE_*", "FLINK_*"),
    *("KUBECONFIG", "AWS_CONFIG_FILE", "KRB5_CONFIG"),  # they name programs that are started to log in
    *("GIT_*", "PIP_*", "UV_*", "AIRFLOW*", "_AIRFLOW*", "__AIRFLOW*"),
)


def is_airflows_own(name: str) -> bool:
    """Whether a variable may hold a secret of Airflow itself (S5)."""
    return _fits(name, _AIRFLOWS_OWN)


def decides_what_is_loaded(name: str) -> bool:
    """Whether programs, their interpreters or their libraries are found or loaded by a variable (S5)."""
    return _fits(name, _LOADING)


def passed_on(environ: Mapping[str, str], *, pass_env: Iterable[str] = ()) -> dict[str, str]:
    """What a process that does the work of a run gets of the worker's environment.

    Not Airflow's own secrets, unless ``pass_env`` names them, by ``*`` perhaps (S5); and no window: the worker's does not
    belong to this run (H7).
    """
    named = tuple(pass_env)
    return {
        name: value
        for name, value in environ.items()
        if name not in WINDOW_VARIABLES and (not is_airflows_own(name) or _fits(name, named))
    }


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def job_environment(
    *,
    conf: str,
    mode: str,
    run_id: str,
    window: TimeWindow | None,
    logical_date: Instant | None = None,
    partitions: tuple[PartitionKey, ...] = (),
    own: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of one job: what is worked out, then the job's ``own``, then what was ``given`` on the run.

    Instants are ISO-8601 UTC in whole seconds with ``Z``; ``CHRONON_PARTITIONS`` is every label, oldest first, joined by
    commas, and ``CHRONON_PARTITION`` the newest. Where every label would be longer than a variable can be, only the
    newest is there.
    """
    computed = {"CHRONON_CONF": conf, "CHRONON_MODE": mode, "CHRONON_RUN_ID": run_id}
    if window is not None:
        times = {
            "START_TIME": iso(window.start),
            "END_TIME": iso(window.end),
            "LOGICAL_DATE": iso(window.start if logical_date is None else logical_date),
        }
        computed |= {f"{prefix}_{name}": value for prefix in ("HOPS", "CHRONON") for name, value in times.items()}
        if partitions:
            computed["CHRONON_PARTITION"] = partitions[-1]
            if len(every := ",".join(partitions)) <= LONGEST_VALUE:
                computed["CHRONON_PARTITIONS"] = every
    return computed | dict(own or {}) | dict(given or {})


def given_texts(given: object) -> dict[str, str]:
    """The variables that were set on a run, as text: numbers and truth values as JSON writes them, null left out.

    Anything but a mapping is none. Raises ``ChrononError`` for a name or a value that no variable can have, and for one that
    decides how the command is found or loaded: who may start a run may not choose what it executes (S5).
    """
    pairs = given.items() if isinstance(given, Mapping) else ()
    for name, value in pairs:
        if len(str(name)) > LONGEST_VALUE:
            raise _refused(f"the name of a variable has {len(str(name))} characters", f"write at most {LONGEST_VALUE}")
        if not VARIABLE.fullmatch(str(name)) or text_problem(str(name)) is not None:
            raise _refused(f"{name!r} cannot be the name of a variable", "a name is not empty and has no =")
        if decides_what_is_loaded(str(name)):
            problem = f"a run may not set {name}, which decides how the command is found or loaded"
            raise _refused(problem, "set it in the job's or the runner's env, or under another name", rule="S5")
        if value is not None and not isinstance(value, str | int | float):
            raise _refused(f"the variable {name!r} is a list or an object", "write it as text")
        if (bad := unstorable(value)) is not None:
            raise _refused(f"the variable {name!r} cannot be set: {bad.problem}", bad.remedy)
        if isinstance(value, str) and len(value) > LONGEST_VALUE:
            problem = f"the variable {name!r} has {len(value)} characters, and a process takes at most {LONGEST_VALUE}"
            raise _refused(problem, "write it to a file, and give its name")
    return {str(n): v if isinstance(v, str) else json.dumps(v) for n, v in pairs if v is not None}


def _refused(problem: str, remedy: str, *, rule: str = "H5") -> ChrononError:
    return ChrononError(Fault(rule, "env", problem, remedy))
