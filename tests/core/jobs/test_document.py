"""What a job file may say, and what a plan makes of it (H1 to H15, C26)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.resolve import JobPlan, resolve_jobs
from airflow_chronon.core.settings.model import OnRetire, Pause, Settings
from airflow_chronon.core.settings.yaml import read_settings
from airflow_chronon.errors import Rejected
from tests.support.confs import at
from tests.support.jobs import HEAD, job, job_faults, plan_of

EVERY_KEY = """\
version: 3
runner: {kind: command, argv: ["python", "jobs/ingest.py"], cwd: /srv}
env: {REGION: eu}
schedule:
  cron_expression: "0 0 * ? * * *"
  start_time: 2026-01-01T00:00:17Z
  end_time: 2027-01-01
  start_time_offset_seconds: 3600
  end_time_offset_seconds: null
  lookback_seconds: null
  catchup: true
  max_active_runs: 2
  max_catchup_runs: 24
  skip_to_date: 2026-02-01 12:00:00
  enabled: true
legacy_start_time_arg: true
retries: 5
owner: ingest
task_defaults: {pool: small}
max_pending_runs: 8
on_retire: stop
"""


class TestGoodFiles:
    def test_every_key_counts(self) -> None:
        plan = plan_of(EVERY_KEY)
        assert (plan.key, plan.dag_id, plan.version) == ("job/etl.hourly", "job.etl.hourly", "3")
        assert plan.env == {"REGION": "eu"} and plan.job.document.legacy_start_time_arg
        of, settings = plan.schedule, plan.settings
        assert of is not None and of.catch_up.start is not None and of.catch_up.skip_to is not None
        assert iso(of.catch_up.start) == "2026-01-01T00:00:17Z"  # H15: seconds are kept
        assert iso(of.catch_up.skip_to) == "2026-02-01T12:00:00Z"
        assert (of.offset, of.lookback, of.catch_up.enabled, of.catch_up.max_runs) == (3600, None, True, 24)
        assert (settings.max_active_runs, settings.max_pending_runs, settings.retries) == (2, 8, 5)
        assert (settings.owner, settings.task_defaults.pool, settings.on_retire) == ("ingest", "small", OnRetire.STOP)
        assert settings.runner.model_dump()["argv"] == ["python", "jobs/ingest.py"]
        assert plan.warnings == ()

    def test_the_defaults(self) -> None:
        plan = plan_of(HEAD + "schedule: {cron_expression: '@hourly'}")
        assert plan.schedule is not None and plan.schedule.enabled
        assert not plan.schedule.catch_up.enabled  # H8
        assert plan.settings.max_active_runs == 1  # H12
        assert plan.settings.pause is Pause.ALLOW  # H14
        assert plan.schedule.active_since is None  # a job is active from its first reconcile on (H14)

    def test_without_a_schedule_it_runs_by_hand_only(self) -> None:
        plan = plan_of(HEAD)
        assert plan.schedule is None and "unscheduled" in plan.tags

    def test_tags(self) -> None:
        plan = plan_of(HEAD + "schedule: {cron_expression: '@hourly'}", branch="try")
        assert plan.tags == ("branch:try", "chronon", "team:etl", "type:job", "version:1")
        assert plan.dag_id == "try--job.etl.hourly"  # C24

    def test_a_runner_without_a_kind_is_a_command(self) -> None:
        plan = plan_of("version: 1\nrunner: {argv: ['true']}\n")
        assert plan.settings.runner.kind == "command"

    def test_variables_are_left_for_the_worker(self) -> None:
        plan = plan_of(HEAD + "env: {TOKEN: '${TOKEN:-none}'}")
        assert plan.env == {"TOKEN": "${TOKEN:-none}"}


class TestWarnings:
    def test_an_end_offset_is_ignored_with_a_warning(self) -> None:  # H2
        text = HEAD + "schedule:\n  cron_expression: '@hourly'\n  end_time_offset_seconds: 3600\n"
        plan, without = plan_of(text), plan_of(text.replace("3600", "null"))
        assert plan.schedule == without.schedule and without.warnings == ()
        (warning,) = plan.warnings
        assert warning.rule == "H2" and warning.field == "line 5, schedule.end_time_offset_seconds"

    def test_an_end_before_the_first_fire_is_reported(self) -> None:  # H15
        plan = plan_of(
            HEAD + "schedule: {cron_expression: '@daily', start_time: 2026-06-01, end_time: 2026-06-01T12:00}"
        )
        assert [warning.rule for warning in plan.warnings] == ["H15"]


class TestRejectedFiles:
    @pytest.mark.parametrize("key", ["start_time_offset_seconds", "lookback_seconds"])
    def test_hours_and_minutes_are_refused_with_their_seconds(self, key: str) -> None:  # H2, H3
        with pytest.raises(Rejected, match=rf"schedule\.{key}: .*25:00.*seconds: 90000"):
            job(HEAD + f"schedule: {{cron_expression: '@hourly', {key}: '25:00'}}")

    @pytest.mark.parametrize(
        ("section", "rule", "place"),
        [
            ("cron_expression: '0 0 0 1,L * ?'", "H1", "line 4, schedule.cron_expression"),
            (
                "cron_expression: '@hourly'\n  start_time_offset_seconds: -1",
                "H2",
                "line 5, schedule.start_time_offset_seconds",
            ),
            ("cron_expression: '@hourly'\n  lookback_seconds: 0", "H3", "line 5, schedule.lookback_seconds"),
            (
                "cron_expression: '@hourly'\n  lookback_seconds: 9\n  start_time_offset_seconds: 9",
                "H3",
                "line 5, schedule.lookback_seconds",
            ),
        ],
    )
    def test_a_broken_rule_is_named_with_its_place(self, section: str, rule: str, place: str) -> None:
        (fault,) = job_faults(f"{HEAD}schedule:\n  {section}\n")
        assert (fault.rule, fault.field) == (rule, place) and fault.remedy

    def test_every_broken_rule_is_reported_at_once(self) -> None:
        text = HEAD + "schedule: {cron_expression: x, start_time_offset_seconds: -1}"
        assert [fault.rule for fault in job_faults(text)] == ["H1", "H2"]

    @pytest.mark.parametrize(
        ("text", "place", "said"),
        [
            (HEAD + "schedul: {}", "line 3, schedul", "did you mean schedule"),
            (
                HEAD + "schedule:\n  cron_expresion: x\n",
                "line 4, schedule.cron_expresion",
                "did you mean cron_expression",
            ),
            (HEAD + "schedule: {}", "line 3, schedule.cron_expression", "is missing"),
            (HEAD + "schedule: hourly", "line 3, schedule", "write keys and values below it"),
            (HEAD + "schedule: {cron_expression: 5}", "line 3, schedule.cron_expression", "write text"),
            (HEAD + "schedule: {cron_expression: x, catchup: 1}", "line 3, schedule.catchup", "true or false"),
            (
                HEAD + "schedule: {cron_expression: x, max_active_runs: 0}",
                "line 3, schedule.max_active_runs",
                "1 or more",
            ),
            (
                HEAD + "schedule: {cron_expression: x, max_catchup_runs: 0}",
                "line 3, schedule.max_catchup_runs",
                "1 or more",
            ),
            (
                HEAD + "schedule: {cron_expression: x, max_active_runs: '2'}",
                "line 3, schedule.max_active_runs",
                "whole number",
            ),
            (
                HEAD + "schedule: {cron_expression: x, start_time: soon}",
                "line 3, schedule.start_time",
                "an instant is text",
            ),
            (HEAD + "schedule: {cron_expression: x, start_time: 1960-01-01}", "line 3, schedule.start_time", "1970"),
            (
                HEAD + "schedule: {cron_expression: x, start_time: 1980010112000}",
                "line 3, schedule.start_time",
                "an instant is text",
            ),
            (HEAD + "env: {PORT: 8080}", "line 3, env.PORT", "in quotes"),
            (HEAD + "env: {'A=B': x}", "line 3, env.A=B", "without ="),
            (HEAD + "retries: -1", "line 3, retries", "0 or more"),
            (HEAD + "max_pending_runs: 2147483648", "line 3, max_pending_runs", "2147483647 or less"),
            (HEAD + "version: 2", "line 3, version", "stands on line 1 too"),
            ("runner: {argv: [x]}", "line 1, version", "is missing"),
            ("version: 1.5\nrunner: {argv: [x]}", "line 1, version", "a version is"),
            ("version: a b\nrunner: {argv: [x]}", "line 1, version", "a version is"),
            ("", "", "the file is empty"),
            ("- a", "line 1", "write keys and values below it"),
            ("version: [", "line 1", "it is not yaml"),
        ],
    )
    def test_a_bad_file_is_reported_with_line_key_and_remedy(self, text: str, place: str, said: str) -> None:
        with pytest.raises(Rejected) as refused:
            job(text)
        fault = refused.value.faults[-1]
        assert fault.field == place and said in str(fault).lower()

    @pytest.mark.parametrize(
        ("line", "place"),
        [
            ("env: {SINCE: '${HOPS_START_TIME}'}", "line 2, env.SINCE"),
            ("env: {SINCE: '${HOPS_START_TIME:-none}'}", "line 2, env.SINCE"),
            ("runner: {argv: [sh, -c, 'load ${CHRONON_PARTITION:-}']}", "line 2, runner.argv[2]"),
        ],
    )
    def test_a_variable_of_the_run_has_no_braces(self, line: str, place: str) -> None:  # H5
        with pytest.raises(Rejected, match=r"[Ww]rite \$(HOPS_START_TIME|CHRONON_PARTITION) without braces") as refused:
            job(f"version: 1\n{line}\n")
        assert [fault.field for fault in refused.value.faults] == [place]

    def test_a_variable_of_the_run_without_braces_is_left_to_the_shell(self) -> None:  # H5
        plan = plan_of("version: 1\nrunner: {argv: [sh, -c, 'load $HOPS_START_TIME']}\n")
        assert plan.settings.runner.model_dump()["argv"][2] == "load $HOPS_START_TIME"

    @pytest.mark.parametrize("version", ["010", "1_0", "0x1F", "0b1"])
    def test_a_version_is_read_as_it_is_written(self, version: str) -> None:
        plan = plan_of(f"version: {version}\nrunner: {{argv: [x]}}")
        assert (plan.version, plan.key, plan.dag_id) == (version, "job/etl.hourly", "job.etl.hourly")  # H21
        assert f"version:{version}" in plan.tags

    def test_a_truth_value_is_no_version(self) -> None:  # C26
        with pytest.raises(Rejected) as refused:
            job("version: true\nrunner: {argv: [x]}\n")
        assert refused.value.conf == "job/etl.hourly"

    @pytest.mark.parametrize("text", ["version: 7\nx: 1", "x: 1", "["])
    def test_a_bad_file_is_known_by_its_key(self, text: str) -> None:
        with pytest.raises(Rejected) as refused:
            job(text)
        assert refused.value.conf == "job/etl.hourly"

    def test_aliases_of_aliases_end_in_one_fault(self) -> None:
        layers = ["a: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        layers += [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
        with pytest.raises(Rejected, match="more than"):
            job("\n".join(layers))

    @pytest.mark.parametrize(
        ("runner", "said"),
        [
            ("", "the job has no command"),
            ("runner: {kind: command}", "the job has no command"),
            ("runner: {kind: local}", "runner kind 'local'"),
        ],
    )
    def test_a_job_needs_a_command(self, runner: str, said: str) -> None:
        (fault,) = job_faults(f"version: 1\n{runner}")
        assert fault.field == "runner" and said in fault.message and "argv" in fault.remedy


class TestSettings:
    def test_partition_settings_of_the_deployment_do_not_reach_jobs(self) -> None:
        settings = read_settings(
            "start_date: 2026-01-01\ncatchup: true\nmax_catchup_runs: 3\nmax_active_runs: 9\nretries: 7"
        )
        plan = plan_of(HEAD + "schedule: {cron_expression: '@hourly'}", settings)
        assert plan.schedule is not None and not plan.schedule.catch_up.enabled and plan.schedule.catch_up.start is None
        assert (plan.settings.max_active_runs, plan.settings.retries) == (1, 7)

    def test_a_deployment_that_is_switched_off_switches_its_jobs_off(self) -> None:  # H14
        plan = plan_of(HEAD + "schedule: {cron_expression: '@hourly'}", read_settings("enabled: false"))
        assert plan.schedule is not None and not plan.schedule.enabled and "unscheduled" in plan.tags

    @pytest.mark.parametrize("match", ["job/etl.*", "job/etl.hourly", "team:etl", "type:job"])
    def test_an_override_wins_over_the_file(self, match: str) -> None:
        text = (
            f"overrides: [{{match: '{match}', catchup: true, start_date: 2026-03-01, max_active_runs: 4, retries: 0}}]"
        )
        plan = plan_of(HEAD + "schedule: {cron_expression: '@hourly', start_time: 2026-01-01}", read_settings(text))
        assert plan.schedule is not None and plan.schedule.catch_up.enabled
        assert plan.schedule.catch_up.start == at("2026-03-01")
        assert (plan.settings.max_active_runs, plan.settings.retries) == (4, 0)

    def test_an_override_of_a_group_by_does_not(self) -> None:
        settings = read_settings("overrides: [{match: 'group_by/*', retries: 0}]")
        assert plan_of(HEAD, settings).settings.retries == 2

    def test_a_label_is_no_date_of_a_job(self) -> None:
        settings = read_settings("overrides: [{match: 'job/*', start_date: 2026-01-01-00-00}]")
        (fault,) = job_faults(HEAD + "schedule: {cron_expression: '@hourly'}", settings)
        assert (fault.rule, fault.field) == ("H15", "start_date")

    def test_the_deployments_command_settings_hold_for_jobs(self) -> None:
        settings = read_settings("runner: {kind: command, cwd: /srv, env: {A: '1'}}")
        runner = plan_of("version: 1\nrunner: {argv: ['true']}", settings).settings.runner.model_dump()
        assert runner == {"kind": "command", "cwd": "/srv", "env": {"A": "1"}, "argv": ["true"]}


class TestIds:
    def test_two_jobs_never_share_an_id(self) -> None:  # C26
        same = [job(HEAD, team="a.b", name="c"), job(HEAD, team="a", name="b.c"), job(HEAD, name="other")]
        verdicts = resolve_jobs(same, Settings())
        assert isinstance(verdicts["job/etl.other"], JobPlan)
        rejected = [verdict for verdict in verdicts.values() if isinstance(verdict, RejectedConf)]
        assert [verdict.faults[0].rule for verdict in rejected] == ["C26", "C26"]
        assert "jobs/a/b.c.yaml" in rejected[0].faults[0].message and "jobs/a.b/c.yaml" in rejected[1].faults[0].message

    def test_what_airflow_cannot_carry_is_distinguished(self) -> None:  # C26
        first, second = resolve_jobs([job(HEAD, name="a b"), job(HEAD, name="a+b")], Settings()).values()
        assert isinstance(first, JobPlan) and isinstance(second, JobPlan)
        assert first.dag_id != second.dag_id and first.dag_id.startswith("job.etl.a_b_")

    def test_one_asked_dag_is_judged_alone(self) -> None:
        jobs = [job(HEAD, name="a"), job("version: 1", name="b")]
        assert set(resolve_jobs(jobs, Settings(), wanted="job.etl.a")) == {"job/etl.a"}
