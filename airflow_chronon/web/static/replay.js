// Replaying what was dragged over: which labels, shown before anything is done, through Airflow's own API.

import { cancel, dryRun, newestBackfill, replayLabel, replayRange } from "./api.js";
import { counted, labelOf } from "./look.js";

const { createElement: h, useCallback, useEffect, useMemo, useState } = globalThis.React;
const CHOICES = { missing: ["missing", "FWMS"], failed: ["failed", "FW"], all: ["all", "LTFWMSA"] };
const MOST_BY_KEY = 200; // scattered labels that a page starts by itself
const POLL = 4_000;
const SETTLED = 300; // milliseconds without another change until Airflow is asked

/** The newest backfill of a DAG while it is active, and how to look again. */
export function useBackfill(dagId, now) {
  const [active, setActive] = useState(null);
  const look = useCallback(async () => {
    const newest = await newestBackfill(dagId).catch(() => null); // who may not read backfills sees none
    setActive(newest && !newest.completed_at ? newest : null);
  }, [dagId]);
  useEffect(() => void look(), [look, now]);
  return { active, look };
}

/** A replay that Airflow works on: how far it is, and a way to end it. */
export function UnderWay({ data, backfill, refresh }) {
  const { active, look } = backfill;
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => (look(), refresh()), POLL);
    return () => clearInterval(timer);
  }, [active?.id, look, refresh]);
  if (!active) return null;
  const [first, last] = [active.from_date, active.to_date].map((date) => Date.parse(date) / 1000);
  const stop = () =>
    cancel(active.id)
      .then(() => (look(), refresh()))
      .catch((error) => setProblem(error.message));
  return h(
    "div",
    { className: "panel", role: "region", "aria-label": "replay under way", style: { marginBottom: 10 } },
    h("h2", null, "Replay under way"),
    h("div", null, `${labelOf(first, data.format)} to ${labelOf(last, data.format)}`),
    h("div", { className: "quiet" }, progress(data, first, last)),
    problem && h("div", { className: "problem", role: "alert" }, problem),
    h("div", { className: "bar" }, h("button", { onClick: stop }, "cancel it"), h("span", { className: "quiet" }, "what has begun goes on")),
  );
}

function progress(data, first, last) {
  if (!data.spans || data.first === null || first < data.first) return "";
  const counts = {};
  let at = data.first;
  for (const [letter, count] of data.spans) {
    const within = Math.min(at + count * data.interval, last + data.interval) - Math.max(at, first);
    if (within > 0) counts[letter] = (counts[letter] ?? 0) + within / data.interval;
    at += count * data.interval;
  }
  const said = [["L", "landed"], ["R", "running"], ["Q", "queued"], ["F", "failed"]].filter(([letter]) => counts[letter]);
  return said.map(([letter, word]) => `${counts[letter].toLocaleString("en")} ${word}`).join(", ");
}

export function Replay({ dagId, data, range, close, refresh, backfill }) {
  const [choice, setChoice] = useState(null);
  const [said, setSaid] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const of = useMemo(() => Object.fromEntries(Object.entries(CHOICES).map(([name, [, letters]]) => [name, range.filter((each) => letters.includes(each.letter)).map((each) => each.start)])), [range]);
  const chosen = choice ?? (of.missing.length ? "missing" : "all");
  const starts = of[chosen];
  const label = (start) => labelOf(start, data.format);
  const isRange = starts.length > 1 && starts.at(-1) - starts[0] === (starts.length - 1) * data.interval;
  const tooMany = !isRange && starts.length > MOST_BY_KEY;
  const key = `${chosen} ${starts[0]} ${starts.at(-1)} ${starts.length}`;
  const [planned, setPlanned] = useState({}); // what Airflow would run of a range, by what was asked
  useEffect(() => {
    setSaid(null);
    if (!isRange) return undefined;
    const timer = setTimeout(() => {
      dryRun(dagId, starts[0], starts.at(-1))
        .then((labels) => setPlanned({ key, labels }))
        .catch((error) => setPlanned({ key, problem: error.message }));
    }, SETTLED);
    return () => clearTimeout(timer);
  }, [dagId, key]);
  const isAsked = !isRange || planned.key === key;
  const labels = isRange ? (isAsked ? (planned.labels ?? []) : []) : starts.map(label);
  const start = async () => {
    setBusy(true);
    let begun = 0;
    try {
      if (isRange) {
        await replayRange(dagId, starts[0], starts.at(-1));
        setSaid({ text: `Airflow has taken ${counted(labels.length, "partition")}.` });
        await backfill.look();
      } else {
        for (const each of starts) await replayLabel(dagId, label(each)).then(() => setSaid({ text: `${counted((begun += 1), "run")} of ${starts.length} started.` }));
      }
    } catch (error) {
      setSaid({ text: `${begun ? `${counted(begun, "run")} started, then: ` : ""}${error.message}`, isProblem: true });
    }
    setBusy(false);
    refresh();
  };
  const differs = isRange && isAsked && planned.labels && difference(starts.map(label), planned.labels);
  const problem = isRange && isAsked ? planned.problem : "";
  return h(
    "div",
    { className: "panel", role: "region", "aria-label": "replay" },
    h(
      "div",
      { style: { display: "flex", gap: 8, alignItems: "start" } },
      h("h2", { style: { flex: 1 } }, range.length > 1 ? `Replay ${label(range[0].start)} to ${label(range.at(-1).start)}` : `Replay ${label(range[0].start)}`),
      h("button", { className: "plain", onClick: close, "aria-label": "close", title: "Escape" }, "✕"),
    ),
    h(
      "div",
      { className: "bar segments", role: "group", "aria-label": "which" },
      Object.entries(CHOICES).map(([name, [words]]) => h("button", { key: name, "aria-pressed": name === chosen, disabled: isBusy, onClick: () => setChoice(name) }, `${words} ${of[name].length.toLocaleString("en")}`)),
    ),
    h("div", { role: "status" }, !starts.length ? "None of these." : !isAsked ? "Asking Airflow …" : problem ? "" : `Airflow would run ${counted(labels.length, "partition")}${isRange || starts.length === 1 ? "" : ", one by one"}:`),
    problem && h("div", { className: "problem", role: "alert" }, problem),
    labels.length > 0 && h("div", { className: "labels", tabIndex: 0, "aria-label": "labels" }, labels.slice(0, 2_000).map((each) => h("div", { key: each }, each)), labels.length > 2_000 && h("div", null, `and ${labels.length - 2_000} more`)),
    differs && h("div", { className: "quiet" }, differs),
    tooMany && h("div", { className: "problem" }, `These are scattered, and more than ${MOST_BY_KEY}: use the command below.`),
    backfill.active && isRange && h("div", { className: "quiet" }, "Airflow works on one range of a DAG at a time: another one is under way."),
    h("div", { className: "bar" }, h("button", { className: "main", disabled: isBusy || !labels.length || tooMany || Boolean(said && !said.isProblem) || Boolean(isRange && backfill.active), onClick: start }, labels.length ? `Replay ${counted(labels.length, "partition")}` : "Replay")),
    said && h("div", { className: said.isProblem ? "problem" : "", role: "alert" }, said.text),
    h("h3", null, "In a shell, with what is upstream"),
    h("code", null, `airflow-chronon backfill ${dagId} --start-ds ${label(range[0].start)} --end-ds ${label(range.at(-1).start)}${chosen === "all" ? "" : ` --${chosen}`} --with-upstream`),
  );
}

/** How what Airflow would run differs from what was chosen; a run may also write several partitions. */
function difference(wanted, planned) {
  const [asked, found] = [new Set(wanted), new Set(planned)];
  const without = wanted.filter((each) => !found.has(each)).length;
  const more = planned.filter((each) => !asked.has(each)).length;
  const said = [without && `${counted(without, "partition")} of those chosen ${without === 1 ? "has" : "have"} no run of their own, or one under way`, more && `${more} more belong to the same runs`].filter(Boolean);
  return said.length ? `${said.join("; ")}.` : "";
}
