"""What a job's command gets of the worker's environment, and what a run may not set (S5)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.settings.environment import given_texts, passed_on
from airflow_chronon.core.settings.runners import RUNNERS
from airflow_chronon.errors import ChrononError, Rejected

KEPT = {
    **dict.fromkeys(
        ("PATH", "HOME", "LANG", "JAVA_HOME", "SPARK_HOME", "HADOOP_CONF_DIR", "AWS_SECRET_ACCESS_KEY"), "x"
    ),
    **dict.fromkeys(("AIRFLOW_HOME", "AIRFLOW_CONFIG", "AIRFLOW_CTX_DAG_ID", "CHRONON_WAREHOUSE"), "x"),
}
WITHHELD = {
    **dict.fromkeys(("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__X__Y_CMD"), "secret"),
    **dict.fromkeys(("AIRFLOW_CONN_CHRONON_AIRFLOW", "AIRFLOW_VAR_TOKEN", "_AIRFLOW_WWW_USER_PASSWORD"), "secret"),
    **dict.fromkeys(("_AIRFLOW__STARTUP_MSG", "__AIRFLOW_SUPERVISOR_FD", "_AIRFLOW_PROCESS_CONTEXT"), "secret"),
}


def test_airflows_own_secrets_are_withheld_and_nothing_else() -> None:
    assert passed_on({**KEPT, **WITHHELD, "HOPS_START_TIME": "of another run"}) == KEPT


@pytest.mark.parametrize(
    ("named", "passed"),
    [
        (["AIRFLOW_VAR_TOKEN"], {"AIRFLOW_VAR_TOKEN"}),
        (["AIRFLOW_*_CHRONON_*", "AIRFLOW_VAR_TOKEN"], {"AIRFLOW_CONN_CHRONON_AIRFLOW", "AIRFLOW_VAR_TOKEN"}),
        (["*"], set(WITHHELD)),
        (["AIRFLOW_VAR"], set()),
    ],
)
def test_unless_the_runner_names_them(named: list[str], passed: set[str]) -> None:
    assert set(passed_on({**KEPT, **WITHHELD}, pass_env=named)) - set(KEPT) == passed


@pytest.mark.parametrize("name", ["A=B", "", 5, "AIRFLOW__[AB]*", "A B"])
def test_what_names_no_variable_is_refused(name: object) -> None:
    with pytest.raises(Rejected, match=r"runner.pass_env\[0\]: .* is not the name of a variable"):
        RUNNERS.read({"kind": "command", "pass_env": [name]})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PATH",
            "HOME",
            "BASH_ENV",
            "ENV",
            "IFS",
            "SHELLOPTS",
            "BASH_FUNC_ls%%",
            "PS4",
            "LD_PRELOAD",
            "DYLD_LIBRARY_PATH",
        ),
        *("PYTHONPATH", "PYTHONSTARTUP", "PERL5LIB", "PERL5OPT", "NODE_OPTIONS", "GIT_SSH_COMMAND", "RUBYOPT"),
        *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "CLASSPATH", "JAVA_HOME"),
        *("AIRFLOW__CORE__EXECUTOR", "AIRFLOW_HOME", "_AIRFLOW__X"),
        *("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_PATH", "CHRONON_DRIVER_JAR"),
        *("HADOOP_LIBEXEC_DIR", "HADOOP_USER_NAME", "OPENSSL_CONF", "KUBECONFIG", "AWS_CONFIG_FILE", "GLIBC_TUNABLES"),
    ],
)
def test_a_run_may_not_choose_what_is_executed(name: str) -> None:
    with pytest.raises(
        ChrononError, match=r"decides how the command is found or loaded .S5.. Set it in the job's"
    ) as said:
        given_texts({"FINE": "1", name: "/tmp/evil"})
    assert name in str(said.value) and "evil" not in str(said.value)


def test_a_run_may_set_everything_else() -> None:
    given = {
        "INPUT_PATH": "x",
        "REGION": "eu",
        "HOPS_START_TIME": "2026-01-01T00:00:00Z",
        "OPTIONS": "a",
        "ENVIRONMENT": "b",
    }
    assert given_texts(given) == given


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"A": "x" * 1_000_000}, "'A' has 1000000 characters", id="too long"),
        pytest.param({"A" * 200_000: "x"}, "has 200000 characters", id="too long a name"),
        pytest.param({"A": "x\0y"}, "'A' cannot be set: .* holds a NUL", id="NUL"),
        pytest.param({"A": "\ud800"}, "'A' cannot be set: .* half of a surrogate pair", id="surrogate"),
        pytest.param({"A\ud800": "x"}, "cannot be the name of a variable", id="surrogate in a name"),
        pytest.param({"A": 10**5000}, "'A' cannot be set: the number has more than 64 bits", id="huge number"),
        pytest.param({"A": float("inf")}, "'A' cannot be set: inf is not a number of JSON", id="infinite"),
    ],
)
def test_what_no_process_takes_is_one_sentence(given: dict[str, object], says: str) -> None:  # H5
    with pytest.raises(ChrononError, match=says) as said:
        given_texts(given)
    assert len(str(said.value)) < 300 and str(said.value).isprintable()
