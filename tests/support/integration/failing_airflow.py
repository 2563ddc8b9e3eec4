"""A local Airflow whose parts fail when a test says so: outages of the scheduler, the triggerer and the others."""

from __future__ import annotations

from local_airflow import Component, LocalAirflow
from sessions import end_sessions, hold_signals


class FailingAirflow(LocalAirflow):
    """The demo's Airflow, and what can befall its processes."""

    def stop_component(self, component: Component, *, grace: float = 5) -> None:
        """End one component with all it started, as an outage would; the others go on."""
        with hold_signals():
            running = self._running.pop(component)
            end_sessions([running.process.pid], grace=grace)
            running.process.wait()
            self._sessions.discard(running.process.pid)

    def ensure_component(self, component: Component) -> None:
        """Start one component unless it was started already; it need not be healthy yet when this returns."""
        if component not in self._running:
            self.start_component(component)

    def restart_component(self, component: Component, *, timeout: float = 60) -> None:
        """End one component, start it again and return when it is healthy."""
        self.stop_component(component)
        self.start_component(component)
        self.wait_until_healthy([component], timeout=timeout)
