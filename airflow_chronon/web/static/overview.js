// All confs: a row each, grouped by team, with a lamp, its lag and the last days as cells.

import { ask } from "./api.js";
import { LAMPS, STATES, ago, counted, day, drawStack, moment, sized, span } from "./look.js";

const { createElement: h, memo, useEffect, useLayoutEffect, useMemo, useRef, useState } = globalThis.React;
const ROW = 28;
const CELL = 8;
const AHEAD = 8; // rows that are drawn beyond those to be seen
const DAY = 86_400;
const EIGHTHS = 8; // a day's cell says how many eighths of it have not landed
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function Overview({ state, setState, open, now }) {
  const [data, setData] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    ask("confs.json", { days: 35 }, stop.signal)
      .then((found) => (setData(found), setProblem("")))
      .catch((error) => error.name === "AbortError" || setProblem(error.message));
    return () => stop.abort();
  }, [now]);
  const lines = useMemo(() => (data ? linesOf(data.confs, state) : []), [data, state.q, state.team, state.type, state.lamp, state.tag, state.sort]);
  if (!data) return problem ? h("div", { className: "problem", role: "alert" }, problem) : h("p", { className: "quiet" }, "Loading …");
  if (!data.confs.length) return h("p", { className: "problem", role: "alert" }, data.problem);
  const some = (name) => [...new Set(data.confs.flatMap((conf) => conf[name] ?? []))].sort();
  const shown = lines.filter((line) => line.conf).length;
  return h(
    "div",
    null,
    h(
      "div",
      { className: "bar" },
      h(
        "div",
        { className: "title" },
        h("h1", null, "Partitions"),
        h("div", { className: "quiet", role: "status", title: `oldest look: ${moment(data.seen)} UTC` }, `${counted(shown, "conf")} · tables looked at ${ago(data.seen, data.at)}`),
      ),
      h(
        "div",
        { className: "controls" },
        h("input", {
          type: "search",
          "aria-label": "search",
          placeholder: "Search  ( / )",
          value: state.q ?? "",
          id: "chronon-search",
          onChange: (event) => setState({ q: event.target.value }),
        }),
        choice("team", "all teams", some("team"), state, setState),
        choice("type", "all types", some("type"), state, setState),
        choice("lamp", "all states", Object.keys(LAMPS), state, setState, (lamp) => `${LAMPS[lamp].mark} ${LAMPS[lamp].name}`),
        choice("tag", "all tags", some("tags"), state, setState),
        choice("sort", "by team", ["lag"], state, setState, () => "by lag"),
      ),
    ),
    problem && h("div", { className: "problem", role: "alert" }, problem),
    h(Rows, { lines, data, open }),
    !lines.length && h("p", { className: "quiet" }, "No conf fits."),
  );
}

function choice(name, all, values, state, setState, word = (value) => value) {
  return h(
    "select",
    { key: name, "aria-label": name, value: state[name] ?? "", onChange: (event) => setState({ [name]: event.target.value }) },
    h("option", { value: "" }, all),
    values.map((value) => h("option", { key: value, value }, word(value))),
  );
}

/** Rows and the heads of teams, in the order in which they stand. */
function linesOf(confs, { q, team, type, lamp, tag, sort }) {
  const words = (q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (conf) =>
    (!team || conf.team === team) &&
    (!type || conf.type === type) &&
    (!lamp || conf.lamp === lamp) &&
    (!tag || conf.tags.includes(tag)) &&
    words.every((word) => conf.key.toLowerCase().includes(word) || conf.table.toLowerCase().includes(word));
  const found = confs.filter(fits);
  if (sort === "lag") return found.sort((a, b) => (b.lag ?? Infinity) - (a.lag ?? Infinity)).map((conf) => ({ conf }));
  const teams = new Map();
  for (const conf of found) teams.has(conf.team) ? teams.get(conf.team).push(conf) : teams.set(conf.team, [conf]);
  return [...teams.keys()].sort().flatMap((name) => [{ team: name, count: teams.get(name).length }, ...teams.get(name).map((conf) => ({ conf }))]);
}

function Rows({ lines, data, open }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [here, setHere] = useState(-1);
  const [tip, setTip] = useState(null);
  const [height, setHeight] = useState(500);
  useLayoutEffect(() => {
    const fit = () => setHeight(Math.max(200, globalThis.innerHeight - box.current.getBoundingClientRect().top - 16));
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, []);
  useEffect(() => {
    box.current.dataset.drawn = String(data.confs.length);
  }, [data]);
  const first = Math.max(0, Math.floor(top / ROW) - AHEAD);
  const last = Math.min(lines.length, Math.ceil((top + height) / ROW) + AHEAD);
  const move = (step) => {
    let at = here;
    do at += step;
    while (lines[at] && !lines[at].conf);
    if (!lines[at]) return;
    setHere(at);
    const y = at * ROW;
    if (y < box.current.scrollTop) box.current.scrollTop = y - ROW;
    else if (y + ROW > box.current.scrollTop + height) box.current.scrollTop = y - height + 2 * ROW;
  };
  const page = Math.floor(height / ROW) - 1;
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) move(step);
    else if (event.key === "PageDown" || event.key === "PageUp") box.current.scrollTop += (event.key === "PageDown" ? 1 : -1) * page * ROW;
    else if (event.key === "Enter" && lines[here]?.conf) open(lines[here].conf.dag_id);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== "/" || event.target.matches?.("input, select, textarea")) return;
      document.getElementById("chronon-search")?.focus();
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const selected = lines[here]?.conf?.dag_id;
  return h(
    "div",
    null,
    h(
      "div",
      { className: "row names", "aria-hidden": true },
      h("span"),
      h("span", null, "conf"),
      h("span", null, "lag"),
      h("span", { className: "wide" }, "grid"),
      h("span", { className: "wide" }, "schedule"),
      h("span", { className: "wide" }, "next fire (UTC)"),
      h(Axis, { data }),
    ),
    h(
      "div",
      {
        className: "scroll",
        ref: box,
        style: { height },
        tabIndex: 0,
        role: "listbox",
        "aria-label": "confs",
        "aria-activedescendant": selected && `chronon ${selected}`,
        onKeyDown,
        onScroll: (event) => (setTop(event.target.scrollTop), setTip(null)),
        onMouseLeave: () => setTip(null),
      },
      h(
        "div",
        { style: { height: lines.length * ROW, position: "relative" } },
        lines.slice(first, last).map((line, place) =>
          line.conf
            ? h(Row, { key: line.conf.dag_id, conf: line.conf, y: (first + place) * ROW, data, open, setTip, isHere: first + place === here })
            : h("div", { key: `team ${line.team}`, className: "row head", role: "presentation", style: { top: (first + place) * ROW, height: ROW } }, `${line.team} (${line.count})`),
        ),
      ),
    ),
    tip && h("div", { className: "tip", role: "tooltip", style: { left: Math.min(tip.x + 14, globalThis.innerWidth - 330), top: tip.y + 16 } }, tip.lines.map((text, place) => h(place ? "div" : "b", { key: place }, text))),
  );
}

/** The first day and each Monday, which stands four days from it at least. */
function Axis({ data }) {
  const ticks = [];
  for (let number = 0; number < data.days; number++) {
    const date = new Date((data.from + number * DAY) * 1000);
    if (number === 0 || (date.getUTCDay() === 1 && number > 5 && number < data.days - 4)) ticks.push([number, `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`]);
  }
  return h("span", { className: "axis", style: { width: data.days * CELL, overflow: "visible" } }, ticks.map(([number, text]) => h("span", { key: number, style: { left: number * CELL } }, text)));
}

const Row = memo(function Row({ conf, y, data, open, setTip, isHere }) {
  const canvas = useRef(null);
  const days = data.days;
  useLayoutEffect(() => {
    const context = sized(canvas.current, days * CELL, ROW - 10);
    let x = 0;
    for (const [letter, count, eighths = EIGHTHS] of conf.cells)
      for (let number = 0; number < count; number++, x += CELL) drawStack(context, { [letter]: eighths, L: letter === "L" ? 8 : EIGHTHS - eighths }, x, 0, CELL - 1, ROW - 10);
  }, [conf, days]);
  const lamp = LAMPS[conf.lamp];
  const over = [conf.words, [conf.failed && `${conf.failed} failed`, conf.late && `${conf.late} late`, conf.missing && `${conf.missing} missing`].filter(Boolean).join(", ")].filter(Boolean);
  const onMove = (event) => {
    let number = Math.floor((event.clientX - canvas.current.getBoundingClientRect().left) / CELL);
    const date = day(data.from + number * DAY);
    const cell = conf.cells.find(([, count]) => (number -= count) < 0);
    if (cell) setTip({ x: event.clientX, y: event.clientY, lines: [date, cell[2] ? `${STATES[cell[0]].name}: about ${cell[2]} eighths of the day, the rest landed` : STATES[cell[0]].name] });
    event.stopPropagation();
  };
  return h(
    "div",
    {
      id: `chronon ${conf.dag_id}`,
      className: `row${isHere ? " here" : ""}`,
      role: "option",
      "aria-selected": isHere,
      style: { top: y, height: ROW },
      onClick: () => open(conf.dag_id),
      onMouseMove: (event) => setTip({ x: event.clientX, y: event.clientY, lines: [conf.key, ...over] }),
    },
    h("span", { style: { color: lamp.colour }, role: "img", "aria-label": lamp.name }, lamp.mark),
    h("span", null, conf.key),
    h("span", null, span(conf.lag)),
    h("span", { className: "wide" }, conf.grid),
    h("span", { className: "wide" }, conf.schedule),
    h("span", { className: "wide" }, conf.paused ? "paused" : moment(conf.next_fire)),
    h("canvas", { ref: canvas, onMouseMove: onMove }),
  );
});
