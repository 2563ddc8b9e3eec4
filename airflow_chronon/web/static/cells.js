// The cells of one conf: newest line at the top, drawn on a canvas, with a cursor, a selection and what the mouse is over.

import { CODES, LETTERS, STATES, counted, day, drawCell, drawStack, labelOf, moment, sized } from "./look.js";

const { createElement: h, useEffect, useLayoutEffect, useMemo, useRef, useState } = globalThis.React;
const DAY = 86_400;
const HEAD = 92; // pixels for what a line is
const AXIS = 18; // pixels for what a column is
const HEIGHTS = { partition: 20, day: 26, month: 40 }; // of a line, the space below it included
const CHOSEN = "#3478d4";
const WORST = "FWMTRQDSALO";
/** Seconds of a line of partitions, by their interval: up to a hundred cells in each. Days have a month, months a year. */
const LINES = [[300, 3_600], [900, 21_600], [3_600, 86_400], [DAY - 1, 604_800]];

/** What is drawn: for each cell where it starts and its letter, and for people what it holds. */
export function cellsOf(data) {
  if (data.cells) {
    const found = data.cells.map(([start, count, letters]) => ({ start, count, letters, letter: [...WORST].find((each) => letters[each]) }));
    return { length: found.length, start: (at) => found[at].start, letter: (at) => found[at].letter, cell: (at) => found[at], find: (start) => found.findLastIndex((each) => each.start <= start), late: () => false };
  }
  const length = data.spans.reduce((sum, [, count]) => sum + count, 0);
  const codes = new Uint8Array(length);
  const reasons = new Int16Array(length).fill(-1);
  let place = 0;
  for (const [letter, count, reason] of data.spans) {
    codes.fill(CODES[letter], place, place + count);
    if (reason !== undefined) reasons.fill(reason, place, place + count);
    place += count;
  }
  const late = new Uint8Array(length);
  for (const [start, count] of data.late) {
    const first = (start - data.first) / data.interval;
    late.fill(1, Math.max(0, first), Math.max(0, first + count));
  }
  return {
    length,
    start: (at) => data.first + at * data.interval,
    letter: (at) => LETTERS[codes[at]],
    reason: (at) => (reasons[at] < 0 ? "" : data.reasons[reasons[at]]),
    late: (at) => late[at] === 1,
    find: (start) => Math.floor((start - data.first) / data.interval),
  };
}

/** Where the first and the last of a range are that are drawn: a range is the starts of both ends, as cells may come and go. */
export const placesOf = (cells, range) => [Math.max(0, cells.find(Math.min(...range))), Math.min(cells.length - 1, cells.find(Math.max(...range)))];

/** How many partitions there are of each state. */
export function countsOf(data) {
  const counts = {};
  const add = (letter, number) => (counts[letter] = (counts[letter] ?? 0) + number);
  if (data.cells) for (const [, , letters] of data.cells) for (const [letter, number] of Object.entries(letters)) add(letter, number);
  else for (const [letter, number] of data.spans) add(letter, number);
  return counts;
}

/** Which line a cell is in, and where. */
function layoutOf(data, cells, zoom) {
  const calendar = zoom === "month" ? "year" : zoom === "day" || data.interval === DAY ? "month" : null;
  const seconds = calendar ? null : LINES.find(([most]) => data.interval <= most)[1];
  const place = (at) => {
    const start = cells.start(at);
    if (!calendar) return [Math.floor((start - data.offset) / seconds), Math.round((((start - data.offset) % seconds) + seconds) % seconds / data.interval)];
    const date = new Date(start * 1000);
    return calendar === "month" ? [date.getUTCFullYear() * 12 + date.getUTCMonth(), date.getUTCDate() - 1] : [date.getUTCFullYear(), date.getUTCMonth()];
  };
  const columns = calendar === "year" ? 12 : calendar === "month" ? 31 : Math.round(seconds / data.interval);
  const head = (at) => {
    const start = cells.start(at);
    if (calendar) return labelOf(start, calendar === "year" ? "yyyy" : "yyyy-MM");
    return seconds < DAY ? moment(start).slice(5) : day(start);
  };
  const column = (number) => {
    if (calendar === "year") return labelOf(Date.UTC(2000, number) / 1000, "MM");
    if (calendar) return String(number + 1);
    const at = data.offset + number * data.interval;
    return seconds > DAY ? `+${Math.floor((number * data.interval) / DAY)} d` : labelOf(at, seconds < DAY ? "mm" : "HH:mm");
  };
  const first = cells.length ? place(0)[0] : 0;
  const last = cells.length ? place(cells.length - 1)[0] : 0;
  return { place, columns, column, head, first, last, lines: cells.length ? last - first + 1 : 0 };
}

export function Cells({ data, cells, zoom, range, setRange, pick, picked, height }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(900);
  const [top, setTop] = useState(0);
  const [tip, setTip] = useState(null);
  const [cursor, setCursor] = useState(null); // where the keyboard is: the start of a partition
  const drag = useRef(null);
  const layout = useMemo(() => layoutOf(data, cells, zoom), [data, cells, zoom]);
  const line = HEIGHTS[zoom];
  const cell = Math.max(3, Math.min(zoom === "month" ? 48 : 34, Math.floor((width - HEAD - 14) / layout.columns)));
  useEffect(() => {
    const seen = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  const indexOf = (wantedLine, wantedColumn) => {
    const at = firstAt((each) => {
      const [l, c] = layout.place(each);
      return l > wantedLine || (l === wantedLine && c >= wantedColumn);
    }, cells.length);
    if (at >= cells.length) return null;
    const [l, c] = layout.place(at);
    return l === wantedLine && c === wantedColumn ? at : null;
  };
  const cellAt = (event) => {
    const bounds = box.current.getBoundingClientRect();
    const y = event.clientY - bounds.top - AXIS;
    const column = Math.floor((event.clientX - bounds.left - HEAD) / cell);
    if (y < 0 || column < 0 || column >= layout.columns) return null;
    return indexOf(layout.last - Math.floor((y + box.current.scrollTop) / line), column); // newest first
  };
  const placeOf = (at) => {
    const [l, column] = layout.place(at);
    return { x: HEAD + column * cell, y: AXIS + (layout.last - l) * line - top };
  };
  useLayoutEffect(() => {
    const context = sized(canvas.current, width, height);
    const ink = getComputedStyle(box.current).color;
    context.font = "12px sans-serif";
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height);
    context.clip();
    for (let number = layout.last - Math.floor(top / line); number >= layout.first && (layout.last - number) * line < top + height; number--) {
      let at = firstAt((each) => layout.place(each)[0] >= number, cells.length);
      if (at >= cells.length || layout.place(at)[0] !== number) continue;
      context.fillStyle = ink;
      context.globalAlpha = 0.75;
      context.fillText(layout.head(at), 6, placeOf(at).y + line / 2);
      context.globalAlpha = 1;
      for (; at < cells.length && layout.place(at)[0] === number; at++) {
        const { x, y } = placeOf(at);
        const wide = cell > 5 ? cell - 1 : cell;
        if (data.cells) drawStack(context, cells.cell(at).letters, x, y + 3, wide, line - 6);
        else drawCell(context, cells.letter(at), x, y + 3, wide, line - 6);
        if (cells.late(at)) (context.fillStyle = STATES.F.colour), context.fillRect(x, y + line - 3, wide, 2);
      }
    }
    const outline = (start, colour, wide) => {
      const at = cells.find(start);
      if (!(at >= 0 && at < cells.length)) return;
      const { x, y } = placeOf(at);
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.strokeRect(x - 0.5, y + 1.5, cell, line - 3);
    };
    outline(Date.now() / 1000, ink, 1);
    if (picked !== null) outline(picked, CHOSEN, 2.5);
    if (range) drawRange(context, placesOf(cells, range), { layout, cell, line, placeOf });
    if (cursor !== null) outline(cursor, ink, 2);
    context.restore();
    drawAxis(context, layout, { ink, cell });
    box.current.dataset.drawn = String(cells.length);
  }, [cells, layout, width, height, top, range, cursor, cell, picked]);
  const show = (at) => {
    const y = (layout.last - layout.place(at)[0]) * line;
    if (y < box.current.scrollTop) box.current.scrollTop = Math.max(0, y - line);
    else if (y + line + AXIS > box.current.scrollTop + height) box.current.scrollTop = y - height + AXIS + 2 * line;
  };
  const here = () => {
    const at = cells.find(cursor ?? picked ?? Date.now() / 1000);
    return Math.min(cells.length - 1, Math.max(0, at));
  };
  const stepped = (at, key) => {
    if (key === "ArrowRight" || key === "ArrowLeft") return at + (key === "ArrowRight" ? 1 : -1);
    const [l, column] = layout.place(at);
    if (key === "Home" || key === "End") return firstAt((each) => layout.place(each)[0] >= l + (key === "End" ? 1 : 0), cells.length) - (key === "End" ? 1 : 0);
    const to = l + (key === "ArrowUp" ? 1 : -1);
    return indexOf(to, column) ?? (to > layout.last ? cells.length - 1 : to < layout.first ? 0 : firstAt((each) => layout.place(each)[0] > to, cells.length) - 1);
  };
  const onKeyDown = (event) => {
    if (!cells.length) return;
    if (event.key === "Enter") pick(cells.start(here()));
    else if (["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
      const at = here();
      const next = cursor === null && !event.shiftKey ? at : Math.min(cells.length - 1, Math.max(0, stepped(at, event.key)));
      if (event.shiftKey && zoom === "partition") setRange([range ? range[0] : cells.start(at), cells.start(next)]);
      else if (range) setRange(null);
      setCursor(cells.start(next));
      show(next);
    } else return;
    event.preventDefault();
  };
  const onDown = (event) => {
    if (event.button !== 0) return;
    const at = cellAt(event);
    drag.current = at === null ? null : cells.start(at);
    if (at === null) return;
    setCursor(drag.current);
    if (event.shiftKey && range && zoom === "partition") {
      setRange([range[0], drag.current]);
      drag.current = null;
    } else setRange(null);
  };
  const onMove = (event) => {
    const at = cellAt(event);
    setTip(at === null ? null : { at, x: event.clientX, y: event.clientY });
    if (drag.current !== null && at !== null && zoom === "partition" && (range || cells.start(at) !== drag.current)) setRange([drag.current, cells.start(at)]);
  };
  const onUp = (event) => {
    const at = cellAt(event);
    if (at !== null && cells.start(at) === drag.current && !range) pick(cells.start(at));
    drag.current = null;
  };
  const spoken = cursor === null ? "" : wordsOf(data, cells, here(), zoom).join(", ");
  return h(
    "div",
    { style: { position: "relative", minWidth: 0 } },
    h(
      "div",
      {
        className: "scroll",
        ref: box,
        style: { height, userSelect: "none" },
        tabIndex: 0,
        role: "application",
        "aria-label": `partitions of ${data.key}`,
        "aria-roledescription": "calendar of partitions",
        "aria-description": "arrows move, shift and arrows select, Enter tells about one, Escape goes back",
        onKeyDown,
        onScroll: (event) => (setTop(event.target.scrollTop), setTip(null)),
        onMouseMove: onMove,
        onMouseLeave: () => (setTip(null), (drag.current = null)),
        onMouseDown: onDown,
        onMouseUp: onUp,
      },
      h("div", { style: { height: layout.lines * line + AXIS + 4 } }, h("canvas", { ref: canvas, style: { position: "sticky", top: 0, display: "block" } })),
      !cells.length && h("p", { className: "quiet", style: { position: "absolute", top: 8 } }, "No partition starts in this range."),
    ),
    h("div", { className: "unseen", "aria-live": "polite", "aria-label": "cursor" }, spoken),
    tip && tip.at < cells.length && h("div", { className: "tip", role: "tooltip", style: { left: Math.min(tip.x + 14, globalThis.innerWidth - 330), top: tip.y + 16 } }, tipOf(data, cells, tip.at, zoom, range, drag.current)),
  );
}

/** The first of ``length`` places at which something holds that holds at all later ones. */
function firstAt(holds, length) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** One shape around all that is chosen, from the oldest, which is the lowest, to the newest. */
function drawRange(context, [from, to], { layout, cell, line, placeOf }) {
  if (from > to) return;
  const left = HEAD;
  const right = HEAD + layout.columns * cell;
  const low = placeOf(from);
  const high = placeOf(to);
  const shapes = [];
  if (low.y === high.y) shapes.push([[low.x, low.y], [high.x + cell, low.y], [high.x + cell, low.y + line], [low.x, low.y + line]]);
  else if (high.y + line === low.y && high.x + cell <= low.x)
    shapes.push(
      [[left, high.y], [high.x + cell, high.y], [high.x + cell, low.y], [left, low.y]],
      [[low.x, low.y], [right, low.y], [right, low.y + line], [low.x, low.y + line]],
    );
  else
    shapes.push([[left, high.y], [high.x + cell, high.y], [high.x + cell, high.y + line], [right, high.y + line], [right, low.y + line], [low.x, low.y + line], [low.x, low.y], [left, low.y]]);
  for (const corners of shapes) {
    context.beginPath();
    corners.forEach(([x, y], place) => (place ? context.lineTo(x - 0.5, y) : context.moveTo(x - 0.5, y)));
    context.closePath();
    context.fillStyle = "rgba(52, 120, 212, .28)";
    context.fill();
    context.strokeStyle = CHOSEN;
    context.lineWidth = 2;
    context.stroke();
  }
}

function drawAxis(context, layout, { ink, cell }) {
  context.fillStyle = ink;
  context.globalAlpha = 0.6;
  context.font = "11px sans-serif";
  let free = 0;
  for (let number = 0; number < layout.columns; number++) {
    const x = HEAD + number * cell;
    const text = layout.column(number);
    if (x < free) continue;
    context.fillText(text, x, AXIS / 2);
    free = x + Math.max(40, context.measureText(text).width + 8);
  }
  context.globalAlpha = 1;
}

function wordsOf(data, cells, at, zoom) {
  const start = cells.start(at);
  if (zoom !== "partition") {
    const { count, letters } = cells.cell(at);
    const held = Object.entries(letters).map(([letter, number]) => `${number.toLocaleString("en")} ${STATES[letter].name}`);
    return [zoom === "day" ? day(start) : labelOf(start, "yyyy-MM"), `${counted(count, "partition")}: ${held.join(", ")}`];
  }
  const reason = cells.reason(at);
  return [
    labelOf(start, data.format),
    `${moment(start)} to ${moment(start + data.interval)} UTC`,
    `${STATES[cells.letter(at)].name}${cells.late(at) ? ", late" : ""}${reason ? `: ${reason}` : ""}`,
  ];
}

function tipOf(data, cells, at, zoom, range, dragged) {
  if (range && dragged !== null) {
    const [from, to] = placesOf(cells, range);
    return [h("b", { key: 0 }, counted(to - from + 1, "partition")), h("div", { key: 1 }, `${labelOf(cells.start(from), data.format)} to ${labelOf(cells.start(to), data.format)}`)];
  }
  return wordsOf(data, cells, at, zoom).map((text, place) => h(place ? "div" : "b", { key: place }, text));
}
