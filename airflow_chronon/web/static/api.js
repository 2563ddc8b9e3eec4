// Calls of the page: its own routes, and Airflow's public API with the user's own cookie and rights.

const baseHref = () => document.querySelector("head > base")?.getAttribute("href") ?? "/";
const address = (path) => new URL(baseHref().replace(/\/?$/, "/") + path, location.origin);

/** What Airflow and FastAPI say in several shapes, as text. */
function sentence(detail) {
  if (Array.isArray(detail)) return detail.map(sentence).join("; ");
  return typeof detail === "string" ? detail : (detail?.msg ?? detail?.reason ?? "");
}

async function answer(response) {
  if (response.ok) return response.status === 204 ? {} : response.json();
  let said = "";
  try {
    said = sentence((await response.json()).detail);
  } catch {
    /* no JSON: the status has to do */
  }
  if (response.status === 401) said = "You are logged out: load the page again.";
  if (response.status === 403) said = "You lack the right to do this in Airflow.";
  const error = new Error(said || `Airflow answers with status ${response.status}.`);
  error.status = response.status;
  throw error;
}

export const ask = (path, query = {}, signal) => {
  const url = address(`chronon/${path}`);
  for (const [name, value] of Object.entries(query)) if (value != null) url.searchParams.set(name, value);
  return fetch(url, { signal }).then(answer);
};

const airflow = (method, path, body, signal) =>
  fetch(address(`api/v2/${path}`), {
    method,
    signal,
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  }).then(answer);

const iso = (seconds) => new Date(seconds * 1000).toISOString();
const backfill = (dagId, first, last) => ({
  dag_id: dagId,
  from_date: iso(first),
  to_date: iso(last),
  reprocess_behavior: "completed",
  max_active_runs: 4,
  run_backwards: false,
});

/** The labels that a replay of one range would run; nothing is created. */
export const dryRun = async (dagId, first, last) =>
  (await airflow("POST", "backfills/dry_run", backfill(dagId, first, last))).backfills.map((each) => each.partition_key);
export const replayRange = (dagId, first, last) => airflow("POST", "backfills", backfill(dagId, first, last));
export const replayLabel = (dagId, label) =>
  airflow("POST", `dags/${encodeURIComponent(dagId)}/dagRuns`, { partition_key: label, logical_date: null });
export const newestBackfill = async (dagId) => (await airflow("GET", `backfills?dag_id=${encodeURIComponent(dagId)}&order_by=-id&limit=1`)).backfills[0] ?? null;
export const cancel = (id) => airflow("PUT", `backfills/${id}/cancel`);

/** The tasks of a run, in the order in which they begin. */
export const tasksOf = async (dagId, runId, signal) => {
  const path = `dags/${encodeURIComponent(dagId)}/dagRuns/${encodeURIComponent(runId)}/taskInstances?limit=50&order_by=start_date`;
  return (await airflow("GET", path, undefined, signal)).task_instances;
};
