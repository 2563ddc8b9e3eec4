// How states look, in colour and in shape, and how times and labels read.

export const STATES = {
  L: { name: "landed", colour: "#3f9c6d" },
  T: { name: "stale", colour: "#c9a227" },
  R: { name: "running", colour: "#3478d4" },
  Q: { name: "queued", colour: "#8d93a5" },
  W: { name: "stranded", colour: "#a2602c" },
  F: { name: "failed", colour: "#d3423f" },
  M: { name: "missing", colour: "#e59a2b" },
  A: { name: "absent on purpose", colour: "#c7c2d6" },
  S: { name: "skipped", colour: "#a99fc4" },
  D: { name: "due", colour: "#7fb4e6" },
  O: { name: "open", colour: "#9aa0ad" },
};
export const LETTERS = Object.keys(STATES);
export const CODES = Object.fromEntries(LETTERS.map((letter, code) => [letter, code]));
export const LAMPS = {
  good: { name: "good", colour: STATES.L.colour, mark: "●" },
  late: { name: "late", colour: STATES.M.colour, mark: "◐" },
  bad: { name: "failed", colour: STATES.F.colour, mark: "✕" },
  off: { name: "paused", colour: STATES.Q.colour, mark: "‖" },
  unknown: { name: "not looked at yet", colour: STATES.O.colour, mark: "?" },
};

/** One cell. Shape tells the states apart where colour does not, and so does the letter where there is room. */
export function drawCell(context, letter, x, y, width, height) {
  const colour = STATES[letter].colour;
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = 1;
  const half = Math.max(1, Math.round(height / 2));
  if (letter === "M" || letter === "D") context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
  else if (letter === "O") context.fillRect(x, y + height - 2, width, 2);
  else if (letter === "S" || letter === "A") context.fillRect(x, y + half, width, height - half);
  else if (letter === "Q") context.fillRect(x, y, width, half);
  else context.fillRect(x, y, width, height);
  context.fillStyle = letter === "R" || letter === "F" || letter === "W" || letter === "T" ? "#fff" : colour;
  if (letter === "R" && width > 2) context.fillRect(x + 1, y + half, width - 2, 1);
  if (letter === "W" && width > 2) context.fillRect(x + 1, y + 2, width - 2, 1);
  if (letter === "T" && width > 2) context.fillRect(x + 1, y + height - 3, width - 2, 1);
  if (letter === "F" && width > 4) line(context, x + 1, y + height - 1, x + width - 1, y + 1);
}

const STACKED = "FWMTRQDSAOL"; // from the top of a cell that holds several
const PALE = { S: 0.75, A: 0.75, O: 0.12 };

/** A cell that holds several partitions: of each state as much as there is of it, never less than can be seen. */
export function drawStack(context, letters, x, y, width, height) {
  const held = [...STACKED].filter((letter) => letters[letter]);
  const all = held.reduce((sum, letter) => sum + letters[letter], 0);
  let left = height;
  let top = y;
  held.forEach((letter, place) => {
    const least = 3 * (held.length - place - 1);
    const part = place === held.length - 1 ? left : Math.max(3, Math.min(left - least, Math.round((letters[letter] / all) * height)));
    context.fillStyle = STATES[letter].colour;
    context.globalAlpha = PALE[letter] ?? 1;
    context.fillRect(x, top, width, part);
    context.globalAlpha = 1;
    if ((letter === "M" || letter === "D") && part > 4 && width > 4) context.clearRect(x + 1, top + 1, width - 2, part - 2);
    if (letter === "F" && part > 6 && width > 4) line(context, x + 1, top + part - 1, x + width - 1, top + 1);
    if (letter === "R" && part > 4) line(context, x + 1, top + part / 2, x + width - 1, top + part / 2);
    top += part;
    left -= part;
  });
}

function line(context, fromX, fromY, toX, toY) {
  context.strokeStyle = "#fff";
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}

const two = (number) => String(number).padStart(2, "0");

/** A label in the table's own format, a pattern as Java writes it. */
export function labelOf(seconds, pattern) {
  const date = new Date(seconds * 1000);
  const parts = {
    yyyy: String(date.getUTCFullYear()),
    MM: two(date.getUTCMonth() + 1),
    dd: two(date.getUTCDate()),
    HH: two(date.getUTCHours()),
    mm: two(date.getUTCMinutes()),
    ss: two(date.getUTCSeconds()),
  };
  return pattern.replace(/'([^']*)'|yyyy|MM|dd|HH|mm|ss/g, (found, literal) => (literal === undefined ? parts[found] : literal || "'"));
}

export const day = (seconds) => labelOf(seconds, "yyyy-MM-dd");
export const moment = (seconds) => (seconds == null ? "" : labelOf(seconds, "yyyy-MM-dd HH:mm"));
/** Where a day begins; null for what is none. */
export const secondsOf = (text) => {
  const found = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(found) ? null : Math.floor(found / 1000);
};

/** A span of time in its two largest units. */
export function span(seconds) {
  if (seconds == null) return "–";
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const at = units.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 min";
  const [name, size] = units[at];
  const rest = at + 1 < units.length ? Math.floor((seconds % size) / units[at + 1][1]) : 0;
  return `${Math.floor(seconds / size)} ${name}${rest ? ` ${rest} ${units[at + 1][0]}` : ""}`;
}

/** How long ago a moment was, for people. */
export const ago = (seconds, now) => (seconds == null ? "never" : now - seconds < 60 ? "just now" : `${span(now - seconds)} ago`);

export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** A canvas as sharp as the screen. */
export function sized(canvas, width, height) {
  const scale = globalThis.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export const CSS = `
.chronon { container-type: inline-size; height: 100%; color: var(--chakra-colors-fg); background: var(--chakra-colors-bg); font-size: 14px; line-height: 1.45; padding: 8px 4px; --line: color-mix(in srgb, currentColor 16%, transparent); --soft: color-mix(in srgb, currentColor 8%, transparent); }
.chronon * { box-sizing: border-box; }
.chronon h1 { font-size: 19px; font-weight: 600; margin: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.chronon .bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 6px 0; }
.chronon .title { flex: 1 1 240px; min-width: 0; }
.chronon .title > .quiet { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: 13px; }
.chronon .controls { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; }
.chronon .segments { display: flex; gap: 0; }
.chronon .segments button { border-radius: 0; margin-left: -1px; }
.chronon .segments button:first-child { border-radius: 6px 0 0 6px; margin-left: 0; }
.chronon .segments button:last-child { border-radius: 0 6px 6px 0; }
.chronon .quiet { opacity: .7; }
.chronon .grow { flex: 1; }
.chronon .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.chronon input, .chronon select, .chronon button { font: inherit; color: inherit; background: transparent; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px; padding: 3px 8px; min-width: 0; }
.chronon select { max-width: 130px; }
.chronon select option { color: #111; background: #fff; }
.dark .chronon input { color-scheme: dark; }
.chronon button { cursor: pointer; white-space: nowrap; }
.chronon button:hover:not(:disabled) { background: var(--soft); }
.chronon button[aria-pressed=true] { background: color-mix(in srgb, #3478d4 22%, transparent); border-color: #3478d4; position: relative; }
.chronon button:disabled { opacity: .45; cursor: default; }
.chronon button.main { background: #2f6fc4; color: #fff; border-color: #2f6fc4; }
.chronon button.plain { border-color: transparent; }
.chronon :focus-visible { outline: 2px solid #3478d4; outline-offset: 1px; }
.chronon a { color: inherit; text-decoration: underline; text-decoration-color: color-mix(in srgb, currentColor 40%, transparent); cursor: pointer; overflow-wrap: anywhere; }
.chronon .scroll { overflow: auto; position: relative; border-top: 1px solid var(--line); }
.chronon .row { position: absolute; left: 0; right: 0; display: grid; grid-template-columns: 18px minmax(150px, 3fr) 84px 46px minmax(80px, 1fr) 126px auto; gap: 10px; align-items: center; padding: 0 6px; white-space: nowrap; cursor: pointer; }
.chronon .row > * { overflow: hidden; text-overflow: ellipsis; }
.chronon .row.head { cursor: default; font-weight: 600; grid-template-columns: 1fr; border-bottom: 1px solid var(--line); }
.chronon .row.names { position: static; opacity: .7; cursor: default; height: 26px; font-size: 13px; }
.chronon .axis { position: relative; height: 18px; font-size: 11px; }
.chronon .axis span { position: absolute; border-left: 1px solid currentColor; padding-left: 3px; line-height: 18px; }
.chronon .row.here, .chronon .row:not(.head):not(.names):hover { background: var(--soft); }
.chronon .row.here { box-shadow: inset 2px 0 #3478d4; }
@container (max-width: 860px) { .chronon .row { grid-template-columns: 18px minmax(150px, 1fr) 84px auto; } .chronon .row > .wide { display: none; } }
.chronon .beside { display: grid; grid-template-columns: minmax(0, 1fr) 370px; gap: 14px; position: relative; border-top: 1px solid var(--line); }
.chronon .beside .scroll { border-top: 0; }
.chronon .side { border-left: 1px solid var(--line); padding: 8px 0 8px 14px; overflow: auto; }
@container (max-width: 860px) { .chronon .beside { grid-template-columns: minmax(0, 1fr); } .chronon .side { border-left: 0; } .chronon .side.full { position: absolute; right: 0; top: 0; width: min(370px, 100%); max-height: 100%; padding: 8px 12px; background: var(--chakra-colors-bg); border: 1px solid var(--line); border-radius: 8px; box-shadow: 0 4px 18px rgba(0,0,0,.3); } }
.chronon .legend { display: grid; grid-template-columns: auto 1fr auto; gap: 2px 8px; align-items: center; max-width: 240px; }
.chronon .legend > :nth-child(3n) { text-align: right; font-variant-numeric: tabular-nums; }
.chronon .tip { position: fixed; z-index: 50; pointer-events: none; background: var(--chakra-colors-bg); border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 6px; padding: 5px 10px; max-width: 360px; box-shadow: 0 4px 14px rgba(0,0,0,.25); }
.chronon h2 { font-size: 15px; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
.chronon h3 { font-size: 13px; font-weight: 600; margin: 12px 0 2px; opacity: .75; }
.chronon .panel ul { margin: 2px 0 2px 16px; list-style: disc; }
.chronon .labels { max-height: 220px; overflow: auto; font-family: monospace; font-size: 12px; columns: 2; margin: 6px 0; padding: 6px 8px; background: var(--soft); border-radius: 6px; }
.chronon code { font-size: 12px; overflow-wrap: anywhere; }
.chronon .problem { border-left: 3px solid #d3423f; padding: 4px 10px; margin: 8px 0; }
.chronon .chain { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; font-size: 13px; }
.chronon .chip { border: 1px solid var(--line); border-radius: 999px; padding: 1px 10px; text-decoration: none; }
.chronon a.chip:hover { background: var(--soft); }
`;
