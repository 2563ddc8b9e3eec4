"""Where this checkout is: tests that run its programs or read its files start from there."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
