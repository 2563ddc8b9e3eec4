"""Which options the installed Airflow knows, its providers' (this one too) included."""

from __future__ import annotations

import json
import subprocess
import sys


def airflow_options() -> dict[str, list[str]]:
    """Section to option names."""
    program = (
        "import json; from airflow.configuration import conf\n"
        "print('options=' + json.dumps({name: list(section['options'])"
        " for name, section in conf.configuration_description.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("options="))
    options: dict[str, list[str]] = json.loads(line.removeprefix("options="))
    return options
