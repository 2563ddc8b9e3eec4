// One conf over time: its cells by partition, day or month, and beside them what is asked about one or done with several.

import { ask } from "./api.js";
import { Cells, cellsOf, countsOf, placesOf } from "./cells.js";
import { Details } from "./details.js";
import { LAMPS, LETTERS, STATES, ago, day, drawCell, moment, secondsOf, sized } from "./look.js";
import { Replay, UnderWay, useBackfill } from "./replay.js";

const { createElement: h, useEffect, useLayoutEffect, useMemo, useRef, useState } = globalThis.React;
const DAY = 86_400;
const ZOOMS = ["partition", "day", "month"];

export function Timeline({ dagId, state, setState, now, refresh, open, back, navigate }) {
  const zoom = ZOOMS.includes(state.zoom) ? state.zoom : "partition";
  const [data, setData] = useState(null);
  const [problem, setProblem] = useState(null);
  const [range, setRange] = useState(null); // what is dragged over: where the partitions of both ends start
  const backfill = useBackfill(dagId, now);
  const today = Math.floor(Date.now() / 1000 / DAY) * DAY;
  const to = (secondsOf(state.to) ?? today + DAY) + DAY;
  const from = secondsOf(state.from) ?? today - daysBefore(data?.interval, zoom) * DAY;
  useEffect(() => {
    const stop = new AbortController();
    ask(`dags/${encodeURIComponent(dagId)}/partitions.json`, { from, to, zoom }, stop.signal)
      .then((found) => (setData(found), setProblem(null)))
      .catch((error) => error.name === "AbortError" || setProblem(error));
    return () => stop.abort();
  }, [dagId, from, to, zoom, now]);
  const cells = useMemo(() => data && cellsOf(data), [data]);
  useEffect(() => setRange(null), [zoom, from, to, dagId]);
  const at = state.at ? Number(state.at) : null;
  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== "Escape" || event.target.matches?.("input, select, textarea")) return;
      if (range) setRange(null);
      else if (at !== null) setState({ at: "" });
      else back?.();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [range, at, back, setState]);
  const body = useRef(null);
  const [height, setHeight] = useState(480);
  useLayoutEffect(() => {
    const fit = () => body.current && setHeight(Math.max(220, globalThis.innerHeight - body.current.getBoundingClientRect().top - 16));
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, [data === null, data?.producers.length, data?.consumers.length]);
  if (problem && !data) return h(Nothing, { problem, back });
  if (!data) return h("p", { className: "quiet" }, "Loading …");
  const isShown = data.zoom === zoom; // else the answer for another zoom is still on its way
  const chosen = range && isShown ? rangeOf(cells, range) : null;
  const panel = chosen
    ? h(Replay, { dagId, data, range: chosen, close: () => setRange(null), refresh, backfill })
    : at !== null
      ? h(Details, { key: at, dagId, start: at, data, now, open, navigate, close: () => setState({ at: "" }) })
      : h(Rest, { data, zoom });
  return h(
    "div",
    null,
    h(
      "div",
      { className: "bar" },
      back && h("button", { onClick: back, "aria-label": "all confs", title: "all confs (Escape)" }, "←"),
      h(
        "div",
        { className: "title" },
        h("h1", { title: data.key }, data.key),
        h("div", { className: "quiet", title: `looked at ${moment(data.seen)} UTC` }, `${data.table} · looked at ${ago(data.seen, data.at)}`),
      ),
      h(
        "div",
        { className: "controls" },
        h(
          "div",
          { className: "segments", role: "group", "aria-label": "zoom" },
          ZOOMS.map((each) => h("button", { key: each, "aria-pressed": each === zoom, onClick: () => setState({ zoom: each === "partition" ? "" : each, from: "", to: "", at: "" }) }, each)),
        ),
        h("input", { type: "date", "aria-label": "from", value: day(from), max: day(to - DAY), onChange: (event) => setState({ from: event.target.value }) }),
        h("span", null, "–"),
        h("input", { type: "date", "aria-label": "to", value: day(to - DAY), min: day(from), onChange: (event) => setState({ to: event.target.value }) }),
      ),
    ),
    h(Chain, { data, open }),
    problem && h("div", { className: "problem", role: "alert" }, problem.message),
    h(
      "div",
      { className: "beside", ref: body },
      h(Cells, { data, cells, zoom: data.zoom, range: isShown ? range : null, setRange, picked: at, height, pick: (start) => pick(start, zoom, setState) }),
      h("div", { className: `side${chosen || at !== null ? " full" : ""}`, style: { height: chosen || at !== null ? height : undefined } }, h(UnderWay, { dagId, data, backfill, refresh }), panel),
    ),
  );
}

/** Why there is no page of a DAG. */
function Nothing({ problem, back }) {
  const text = problem.status === 404 && !back ? "This DAG writes no partitions of a Chronon conf, or its table has not been looked at yet." : problem.message;
  return h("div", { className: "bar" }, back && h("button", { onClick: back, "aria-label": "all confs" }, "←"), h("p", problem.status === 404 ? { className: "quiet", role: "status" } : { className: "problem", role: "alert" }, text));
}

function pick(start, zoom, setState) {
  if (zoom === "partition") return setState({ at: String(start) });
  const date = new Date(start * 1000);
  const end = zoom === "day" ? start : Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0) / 1000;
  return setState({ zoom: zoom === "day" ? "" : "day", from: day(start), to: day(end), at: "" }, { isStep: true });
}

/** So many days back that about a thousand hours are shown, or a year. */
function daysBefore(interval, zoom) {
  if (zoom === "month") return 3 * 365;
  return zoom === "day" || interval >= DAY ? 365 : 42;
}

/** The partitions of a dragged range: where they start, and in which state they are. */
function rangeOf(cells, range) {
  const found = [];
  const [from, to] = placesOf(cells, range);
  for (let at = from; at <= to; at++) found.push({ start: cells.start(at), letter: cells.letter(at) });
  return found.length ? found : null;
}

/** What stands beside the cells while nothing is chosen: how many there are of each state, and what can be done. */
function Rest({ data, zoom }) {
  const counts = useMemo(() => countsOf(data), [data]);
  const letters = LETTERS.filter((letter) => counts[letter]);
  const late = data.late.reduce((sum, [, count]) => sum + count, 0);
  const mark = h("span", { key: "mark", style: { background: STATES.F.colour, height: 2, width: 14 } });
  return h(
    "div",
    null,
    h(
      "div",
      { className: "legend", role: "group", "aria-label": "legend" },
      letters.flatMap((letter) => [h(Sample, { key: letter, letter }), h("span", { key: `${letter} name` }, STATES[letter].name), h("span", { key: `${letter} count` }, counts[letter].toLocaleString("en"))]),
      late > 0 && [mark, h("span", { key: "name" }, "of them late"), h("span", { key: "count" }, late.toLocaleString("en"))],
    ),
    h("p", { className: "quiet", style: { marginTop: 12 } }, zoom === "partition" ? "Click a partition: what it is and why. Drag over several, or shift and arrows: replay them." : `Click a ${zoom} to look into it.`),
  );
}

function Sample({ letter }) {
  const canvas = useRef(null);
  useLayoutEffect(() => drawCell(sized(canvas.current, 14, 14), letter, 0, 0, 14, 14), [letter]);
  return h("canvas", { ref: canvas, "aria-hidden": true });
}

/** Who writes what it reads, and who reads it. */
function Chain({ data, open }) {
  if (!data.producers.length && !data.consumers.length) return null;
  const links = (confs) =>
    confs.map((conf) => {
      const lamp = LAMPS[conf.lamp] ?? LAMPS.unknown;
      const go = () => open(conf.dag_id);
      return h(
        "a",
        { key: conf.dag_id, className: "chip", tabIndex: 0, role: "link", title: `${conf.table} · ${conf.grid} · ${lamp.name}`, onClick: go, onKeyDown: (event) => event.key === "Enter" && go() },
        h("span", { style: { color: lamp.colour }, role: "img", "aria-label": lamp.name }, lamp.mark),
        ` ${conf.key} `,
        h("span", { className: "quiet" }, conf.grid),
      );
    });
  return h(
    "div",
    { className: "chain bar", role: "group", "aria-label": "chain" },
    links(data.producers),
    data.producers.length > 0 && h("span", { role: "img", "aria-label": "read by" }, "→"),
    h("b", null, data.key),
    data.consumers.length > 0 && h("span", { role: "img", "aria-label": "read by" }, "→"),
    links(data.consumers),
  );
}
