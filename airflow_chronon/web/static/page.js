// The page of partitions: all confs, or one. Airflow's own React draws it; there is no build and no dependency.

import { CSS } from "./look.js";
import { Overview } from "./overview.js";
import { Timeline } from "./timeline.js";

const { createElement: h, useCallback, useEffect, useState } = globalThis.React;
const POLL = 30_000;
const NAMES = ["conf", "zoom", "from", "to", "at", "q", "team", "type", "lamp", "tag", "sort"];
const OF_CONF = { conf: "", at: "", zoom: "", from: "", to: "" };

/** What the address says, so that a link shows the same to someone else. */
function useAddress() {
  const read = () => {
    const query = new URLSearchParams(location.search);
    return Object.fromEntries(NAMES.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  };
  const [state, set] = useState(read);
  const setState = useCallback((changes, { isStep = false } = {}) => {
    const after = Object.fromEntries(Object.entries({ ...read(), ...changes }).filter(([, value]) => value));
    const url = new URL(location.href);
    for (const name of NAMES) url.searchParams.delete(name);
    for (const [name, value] of Object.entries(after)) url.searchParams.set(name, value);
    history[isStep ? "pushState" : "replaceState"](history.state, "", url);
    set(after);
  }, []);
  const visited = globalThis.ReactRouterDOM?.useLocation?.()?.key; // Airflow's own links to this page
  useEffect(() => {
    const back = () => set(read());
    back();
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, [visited]);
  return [state, setState];
}

/** Counts up every half minute while somebody can see the page. */
function useClock() {
  const [now, setNow] = useState(0);
  const tick = useCallback(() => document.hidden || setNow((before) => before + 1), []);
  useEffect(() => {
    const timer = setInterval(tick, POLL);
    document.addEventListener("visibilitychange", tick);
    return () => (clearInterval(timer), document.removeEventListener("visibilitychange", tick));
  }, [tick]);
  return [now, tick];
}

function Page({ dagId }) {
  const [state, setState] = useAddress();
  const [now, refresh] = useClock();
  const dag = dagId ?? state.conf;
  const navigate = globalThis.ReactRouterDOM?.useNavigate?.();
  const isAlone = Boolean(dagId);
  const open = (conf) =>
    isAlone && navigate ? navigate(`/dags/${encodeURIComponent(conf)}/plugin/chronon-partitions`) : setState({ ...OF_CONF, conf }, { isStep: true });
  const back = isAlone ? null : () => setState(OF_CONF, { isStep: true });
  return h(
    "div",
    { className: "chronon" },
    h("style", null, CSS),
    dag ? h(Timeline, { key: dag, dagId: dag, state, setState, now, refresh, open, back, navigate }) : h(Overview, { state, setState, open, now }),
  );
}

globalThis.Chronon = globalThis.Partitions = globalThis.AirflowPlugin = Page;
export default Page;
