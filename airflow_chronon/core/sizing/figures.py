"""What things cost, as measured: processor seconds on one core of the machine that ``bench/README.md`` describes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Processor seconds; another machine is slower or faster in all of them alike."""

    build: float  #: of the dag-processor per conf: to make its DAG
    store: float  #: per conf: to serialise it and store an unchanged one
    loop: float  #: of the scheduler per loop that looks at no run
    look_at_known: float  #: per run looked at, its DAG in the scheduler's cache
    look_at_forgotten: float  #: its DAG read and built again, since the cache is too small
    look_at_versioned: float  #: its DAG in the cache, of a bundle with versions: nobody asks for the newest
    cache: int  #: DAGs that Airflow 3.3's scheduler keeps

    def look(self, dags: int, *, is_versioned: bool = False) -> float:
        """Processor seconds per run looked at, with waiting runs of so many DAGs: when the cache is too small for all, those that come
        in turn are never in it."""
        known = self.look_at_versioned if is_versioned else self.look_at_known
        return known if dags <= self.cache else known + self.look_at_forgotten - self.look_at_known

    def parse(self, confs: int) -> float:
        """Processor seconds of one parse of the loader files, that of import errors included."""
        return confs * (2 * self.build + self.store)


#: The looks and the loop by their ratios in one run of ``bench/waiting.py``, and by 3.9 ms for a look at a forgotten DAG, which Airflow's
#: scheduler took on the quiet machine.
FIGURES = Figures(
    build=0.0075,
    store=0.011,
    loop=0.010,
    look_at_known=0.0023,
    look_at_forgotten=0.0039,
    look_at_versioned=0.002,
    cache=512,
)
