"""What a scheduled job looks like: it asks for its window and copes without one."""

from __future__ import annotations

import os

from airflow_chronon.window import current_window

window = current_window()
region = os.environ.get("REGION", "everywhere")
if window is None:
    print(f"no window: everything of {region}")
else:
    print(f"rows of {region} in [{window.start.isoformat()}, {window.end.isoformat()})")
