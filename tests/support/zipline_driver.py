"""The real driver of zipline-ai: what it makes of its arguments, and what it does with a stand-in for the JVM beside it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PARSE = """
import json, sys
from ai.chronon.repo.constants import ROUTES
from ai.chronon.repo.zipline import zipline
command = zipline.commands["run"]
answers = []
for argv in json.load(sys.stdin):
    seen = {}
    command.callback = lambda **params: seen.update(params)
    assert argv[1] == "run", argv
    context = command.make_context("run", list(argv[2:]))
    extra = list(context.args)
    command.callback(**context.params)
    folder = seen["conf"].split("/")[-3]
    answers.append({**{key: value for key, value in seen.items() if isinstance(value, str | bool | int | None)},
                    "extra": extra, "route": ROUTES[folder].get(seen["mode"])})
json.dump(answers, sys.stdout)
"""


def parsed_by_driver(argvs: Sequence[Sequence[str]], *, compiler: Path) -> list[dict[str, Any]]:
    """What the real click command makes of argument lists: its parameters, ``extra`` ones, and the ``route`` of the mode."""
    command = [str(compiler / "bin/python"), "-c", _PARSE]
    done = subprocess.run(command, input=json.dumps(argvs), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


#: What the submitters in the jars of Chronon do with their arguments, and what they print.
_JVM = """#!{python}
import json, os, sys, time, urllib.request
from pathlib import Path

place = Path(__file__).parent

def hold(where):
    if (place / where).exists():
        (place / "reached").touch()
        time.sleep(60)

def of(keyword):  # the first that begins so, as JobSubmitter.getArgValue has it
    found = [each for each in sys.argv if each.startswith(keyword)]
    return found[0].partition("=")[2] if found else None

(place / "calls").open("a").write(json.dumps(sys.argv[1:]) + "\\n")
submitter = sys.argv[3].rpartition(".")[2]
name = of("--job-id")
hold("before")
if (place / "fails").exists():
    sys.exit("Exception in thread main")
if submitter == "EmrServerlessSubmitter":
    import boto3
    client = boto3.client("emr-serverless", region_name=os.environ["AWS_REGION"])
    application = next(each["id"] for each in client.list_applications()["applications"])
    name = "chronon-job-1780000000000" if (place / "old jar").exists() else name
    role = "arn:aws:iam::123456789012:role/spark"
    run = client.start_job_run(applicationId=application, executionRoleArn=role, name=name)
    hold("accepted")
    print(f"Job submitted with ID: {{application}}|{{run['jobRunId']}}")
elif submitter == "DataprocSubmitter":
    with (place / f"dataproc-{{name}}").open("x") as job:  # ALREADY_EXISTS
        job.write("RUNNING")
    hold("accepted")
    print(f"2026/06/10 00:00:00 INFO DataprocSubmitter: Dataproc submitter job id: {{name}}")
    print(f"INFO Safe to exit. Follow the job status at: https://console.cloud.google.com/dataproc/jobs/{{name}}/configuration")
elif submitter == "KyuubiSubmitter":
    request = urllib.request.Request(os.environ["SPARK_CLUSTER_NAME"] + "/api/v1/batches", data=b"{{}}", method="POST")
    batch = json.load(urllib.request.urlopen(request))
    hold("accepted")
    print(f"INFO KyuubiSubmitter: Kyuubi batch job submitted. ID: {{batch['id']}}")
    print(f"INFO KyuubiSubmitter: KyuubiSubmitter job id: {{batch['id']}}")
hold("printed")
"""


@dataclass(frozen=True)
class StandInJvm:
    """A folder with a program ``java`` that does what Chronon's submitters do, and that can be held up."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path, *, compiler: Path) -> StandInJvm:
        folder.mkdir(parents=True)
        java = folder / "java"
        java.write_text(_JVM.format(python=compiler / "bin/python"))
        quick = folder / "zipline"
        quick.write_text('#!/bin/sh\nexec "${0%zipline}java" -cp a.jar "ai.chronon.$SUBMITTER" "$@"\n')
        for program in (java, quick):
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return cls(folder)

    @property
    def quick_driver(self) -> str:
        """A driver that does nothing but start the submitter which ``SUBMITTER`` names."""
        return str(self.folder / "zipline")

    @property
    def path(self) -> str:
        """A PATH that leads to it first."""
        return f"{self.folder}:{os.environ['PATH']}"

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every start."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def hold(self, where: str) -> None:
        """From now on a submission stops ``before`` the service has the job, when it is ``accepted``, or its id ``printed``;
        or it ``fails``, or is of an ``old jar``, which gives jobs no name."""
        (self.folder / where).touch()

    def let_go(self, where: str) -> None:
        (self.folder / where).unlink()
        (self.folder / "reached").unlink(missing_ok=True)

    @property
    def is_held(self) -> bool:
        return (self.folder / "reached").exists()
