"""What a shell offers for a conf or a job while it is typed."""

from __future__ import annotations

import argparse
import os

from airflow_chronon.deployment import find_deployment


def complete_confs(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The names of the confs and jobs of the root; ``type/name`` once a slash is typed."""
    keys = _keys(parsed_args)
    return keys if "/" in prefix else [key.partition("/")[2] for key in keys]


def complete_jobs(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The same of the jobs alone."""
    keys = [key for key in _keys(parsed_args) if key.startswith("job/")]
    return keys if "/" in prefix else [key.partition("/")[2] for key in keys]


def _keys(options: argparse.Namespace) -> list[str]:
    root = find_deployment(environ=os.environ, conf_root=getattr(options, "root", None)).read_root()
    return [*(str(conf.key) for conf in root.confs), *(job.key for job in root.jobs)]
