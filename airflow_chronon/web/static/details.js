// One partition: what it is, why, the tasks of its run, what it waits for and what reads it.

import { ask, tasksOf } from "./api.js";
import { labelOf, moment, span } from "./look.js";

const { createElement: h, useEffect, useState } = globalThis.React;

export function Details({ dagId, start, data, now, open, navigate, close }) {
  const [found, setFound] = useState(null);
  const [tasks, setTasks] = useState([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    ask(`dags/${encodeURIComponent(dagId)}/partition.json`, { start }, stop.signal)
      .then((answer) => {
        setFound(answer);
        setProblem("");
        return answer.run_id ? tasksOf(dagId, answer.run_id, stop.signal).then(setTasks) : setTasks([]);
      })
      .catch((error) => error.name === "AbortError" || setProblem(error.message));
    return () => stop.abort();
  }, [dagId, start, now]);
  const link = (text, go) => h("a", { tabIndex: 0, role: "link", onClick: go, onKeyDown: (event) => event.key === "Enter" && go() }, text);
  const run = found?.run_id && `/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(found.run_id)}`;
  const facts = found
    ? [
        `${moment(found.start)} to ${moment(found.end)} UTC`,
        found.late_since && `late since ${moment(found.late_since)} UTC`,
        found.reason,
        found.fire && `its run ${found.fire > data.at ? "fires" : "fired"} at ${moment(found.fire)} UTC`,
      ].filter(Boolean)
    : [];
  return h(
    "div",
    { className: "panel", role: "region", "aria-label": "partition", "aria-live": "polite" },
    h(
      "div",
      { style: { display: "flex", gap: 8, alignItems: "start" } },
      h("h2", { style: { flex: 1 } }, `${labelOf(start, data.format)}${found ? `: ${found.state}` : ""}`),
      h("button", { className: "plain", onClick: close, "aria-label": "close", title: "Escape" }, "✕"),
    ),
    problem && h("div", { className: "problem", role: "alert" }, problem),
    facts.map((fact) => h("div", { key: fact }, fact)),
    run && [h("h3", { key: "head" }, "Run"), h("div", { key: "run" }, link(found.run_id, () => navigate?.(run)))],
    run && tasks.length > 0 && h("ul", null, tasks.map((task) => h("li", { key: `${task.task_id} ${task.map_index}` }, link(task.task_id, () => navigate?.(`${run}/tasks/${encodeURIComponent(task.task_id)}`)), ` ${task.state ?? "not begun"}${task.try_number > 1 ? `, try ${task.try_number}` : ""}`))),
    found?.waits.length > 0 && [
      h("h3", { key: "head" }, "It needs"),
      h("ul", { key: "list" }, found.waits.map((wait) => h("li", { key: wait.table }, waitText(wait, data.at), wait.dag_id && [" ", h("span", { key: "of" }, link(wait.dag_id, () => open(wait.dag_id)))]))),
    ],
    found?.readers.length > 0 && [
      h("h3", { key: "head" }, "It is read by"),
      h("ul", { key: "list" }, found.readers.map((reader) => h("li", { key: reader.dag_id }, link(reader.key, () => open(reader.dag_id)), reader.labels.length ? `: ${some(reader.labels)}` : ""))),
    ],
    found && found.state !== "landed" && [h("h3", { key: "head" }, "The whole chain, in a shell"), h("code", { key: "why" }, `airflow-chronon why ${dagId} ${labelOf(start, data.format)}`)],
  );
}

const some = (labels) => (labels.length > 3 ? `${labels.slice(0, 3).join(", ")} and ${labels.length - 3} more` : labels.join(", "));

function waitText(wait, now) {
  const needs = wait.until ? `${wait.table} up to ${moment(wait.until)}` : `${wait.table} ${some(wait.labels)}`;
  if (wait.missing === null) return `${needs} (no conf here writes it)`;
  return wait.missing.length ? `${needs}: ${some(wait.missing)} not there ${span(Math.max(0, now - wait.seen))} ago` : `${needs}: there`;
}
