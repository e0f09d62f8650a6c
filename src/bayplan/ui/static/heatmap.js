// The heat map: one cell of a canvas per node, group by group. The server sends two packed columns,
// the number and the value of each node; names are asked for one at a time.
import { Problem, ask, count, html, percent, useAnswer, useEffect, useRef, useState } from "./lib.js";

// Of the element around the canvas.
const PADDING = 12;
const CELL_MAX = 44;
const CELL_MIN = 5;
const HEIGHT_AIM = 480;
const TITLE = 20;
const GROUP_GAP = 16;
const TITLE_WIDTH = 7;
const BLOCK_MIN = 8;
const TEXT_FROM = 34;
// From empty to full: equal steps in lightness, so that it also works without color.
const RAMPS = {
  light: [[236, 243, 250], [158, 198, 226], [80, 146, 196], [29, 94, 150], [10, 44, 84]],
  dark: [[34, 44, 58], [30, 78, 122], [36, 126, 168], [104, 182, 196], [226, 240, 214]],
};

function unpack(text, kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new kind(bytes.buffer);
}

function isDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function ramp(share) {
  const colors = RAMPS[isDark() ? "dark" : "light"];
  const place = Math.max(0, Math.min(1, share)) * (colors.length - 1);
  const low = Math.min(Math.floor(place), colors.length - 2);
  return colors[low].map((part, i) => Math.round(part + (colors[low + 1][i] - part) * (place - low)));
}

const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;
const isBright = ([red, green, blue]) => 0.3 * red + 0.59 * green + 0.11 * blue > 140;

// Where each group and cell is: groups flow like words, and cells are as large as fits into the
// height that is aimed at.
function layout(groups, width) {
  let plan = flow(groups, width, CELL_MAX);
  for (let cell = CELL_MAX - 1; cell >= CELL_MIN && plan.height > HEIGHT_AIM; cell -= 1) {
    plan = flow(groups, width, cell);
  }
  return plan;
}

function flow(groups, width, cell) {
  const most = Math.max(1, Math.floor(width / cell));
  const block = blockOf(groups, width, cell);
  let [top, height, first] = [0, 0, 0];
  const places = groups.map((group, index) => {
    const turn = index % block.perRow;
    if (turn === 0 && index > 0) {
      top += height + GROUP_GAP;
      height = 0;
    }
    const columns = Math.max(1, Math.min(most, group.count, block.columns));
    const rows = Math.ceil(group.count / columns);
    const left = Math.round(turn * (block.width + GROUP_GAP));
    const place = { ...group, first, columns, rows, left, title: top, top: top + TITLE };
    height = Math.max(height, TITLE + rows * cell);
    first += group.count;
    return place;
  });
  return { cell, places, height: top + height };
}

// One group fills the width. Several groups are blocks of one width, about twice as wide as high, and
// full rows of blocks fill the width.
function blockOf(groups, width, cell) {
  if (groups.length < 2) return { columns: Math.max(1, Math.floor(width / cell)), width, perRow: 1 };
  const largest = Math.max(...groups.map((group) => group.count));
  const title = TITLE_WIDTH * (Math.max(...groups.map((group) => group.name.length)) + 8);
  const columns = Math.min(largest, Math.max(BLOCK_MIN, Math.ceil(Math.sqrt(2 * largest))));
  const least = Math.min(width, Math.max(columns * cell, title));
  const perRow = Math.max(1, Math.floor((width + GROUP_GAP) / (least + GROUP_GAP)));
  if (perRow >= groups.length) return { columns, width: least, perRow };
  const wide = (width + GROUP_GAP) / perRow - GROUP_GAP;
  return { columns: Math.max(1, Math.floor(wide / cell)), width: wide, perRow };
}

function cellAt(plan, x, y) {
  for (const place of plan.places) {
    const row = Math.floor((y - place.top) / plan.cell);
    const column = Math.floor((x - place.left) / plan.cell);
    if (row < 0 || row >= place.rows || column < 0 || column >= place.columns) continue;
    const inside = row * place.columns + column;
    return inside < place.count ? place.first + inside : -1;
  }
  return -1;
}

function boxOf(plan, index) {
  const place = plan.places.findLast((one) => one.first <= index);
  const inside = index - place.first;
  return {
    x: place.left + (inside % place.columns) * plan.cell,
    y: place.top + Math.floor(inside / place.columns) * plan.cell,
    columns: place.columns,
  };
}

export function HeatMap({ at, color, groupBy, isCount, label, onSelect }) {
  const { data, error } = useAnswer("heat", { at, color, group: groupBy });
  const canvas = useRef(null);
  const drawing = useRef(null);
  const [hover, setHover] = useState(null);
  const [focused, setFocused] = useState(-1);
  const text = isCount ? count : percent;

  const draw = () => {
    const target = canvas.current;
    if (!target || !data) return;
    const width = target.parentElement.clientWidth - 2 * PADDING;
    const [numbers, values] = [unpack(data.nodes, Int32Array), unpack(data.values, Float32Array)];
    const plan = layout(data.groups, width);
    drawing.current = { plan, numbers, values };
    const scale = devicePixelRatio || 1;
    target.width = width * scale;
    target.height = plan.height * scale;
    target.style.width = `${width}px`;
    target.style.height = `${plan.height}px`;
    const context = target.getContext("2d");
    context.scale(scale, scale);
    paint(context, drawing.current, { data, groupBy, text, focused });
  };

  useEffect(() => {
    draw();
    const watcher = new ResizeObserver(draw);
    watcher.observe(canvas.current.parentElement);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      watcher.disconnect();
      scheme.removeEventListener("change", draw);
    };
  }, [data, focused]);

  const under = (event) => {
    const state = drawing.current;
    if (!state) return -1;
    const bounds = canvas.current.getBoundingClientRect();
    return cellAt(state.plan, event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const choose = async (index) => {
    if (index < 0) return;
    const node = await ask("node", { at, number: drawing.current.numbers[index] });
    onSelect(node.name);
  };
  const press = (event) => {
    const state = drawing.current;
    if (!state) return;
    const { columns } = boxOf(state.plan, Math.max(0, focused));
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (step) {
      event.preventDefault();
      const next = Math.max(0, Math.min(state.numbers.length - 1, focused + step));
      setFocused(next);
      setHover({ index: next, ...boxOf(state.plan, next) });
    } else if (event.key === "Enter" && focused >= 0) {
      event.preventDefault();
      choose(focused);
    }
  };
  const move = (event) => {
    const index = under(event);
    if (index !== (hover?.index ?? -1)) {
      setHover(index < 0 ? null : { index, ...boxOf(drawing.current.plan, index) });
    }
  };
  const state = drawing.current;
  return html`<${Problem} text=${error} />
    <div class="heat">
      <canvas ref=${canvas} tabindex="0" role="img"
        aria-label=${`${label}, one cell per node. Arrow keys move, Enter opens a node. The table below has the same nodes.`}
        onMouseMove=${move} onMouseLeave=${() => setHover(null)} onClick=${(event) => choose(under(event))}
        onKeyDown=${press} onBlur=${() => { setFocused(-1); setHover(null); }}></canvas>
      ${hover && state && html`<${Tip} at=${at} number=${state.numbers[hover.index]} place=${hover}
        cell=${state.plan.cell} width=${canvas.current.clientWidth} value=${text(state.values[hover.index])} />`}
    </div>
    ${data && html`<${Legend} high=${data.high} text=${text} label=${label} />`}`;
}

function paint(context, { plan, values }, { data, groupBy, text, focused }) {
  const style = getComputedStyle(document.documentElement);
  const quiet = style.getPropertyValue("--text-quiet").trim();
  const nothing = style.getPropertyValue("--line").trim();
  const inset = plan.cell > 8 ? 1 : 0.5;
  context.textBaseline = "middle";
  for (const place of plan.places) {
    context.font = "600 12px system-ui, sans-serif";
    context.fillStyle = quiet;
    context.textAlign = "left";
    const name = groupBy ? place.name || `without ${groupBy}` : "all nodes";
    context.fillText(`${name} · ${count(place.count)}`, place.left, place.title + TITLE / 2);
    for (let inside = 0; inside < place.count; inside += 1) {
      const x = place.left + (inside % place.columns) * plan.cell;
      const y = place.top + Math.floor(inside / place.columns) * plan.cell;
      const value = values[place.first + inside];
      const shade = Number.isNaN(value) ? null : ramp(value / (data.high || 1));
      context.fillStyle = shade ? css(shade) : nothing;
      context.fillRect(x, y, plan.cell - 2 * inset, plan.cell - 2 * inset);
      if (plan.cell >= TEXT_FROM) {
        context.font = "11px system-ui, sans-serif";
        context.textAlign = "center";
        context.fillStyle = shade && !isBright(shade) ? "#fff" : shade ? "#111" : quiet;
        context.fillText(text(value), x + plan.cell / 2 - inset, y + plan.cell / 2 - inset);
      }
    }
  }
  if (focused >= 0) {
    const { x, y } = boxOf(plan, focused);
    context.strokeStyle = style.getPropertyValue("--accent").trim();
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, plan.cell, plan.cell);
  }
}

function Tip({ at, number, place, cell, width, value }) {
  const { data, isCurrent } = useAnswer("node", { at, number });
  const isRight = place.x > width / 2;
  const style = {
    top: `${place.y + cell + 4}px`,
    ...(isRight ? { right: `calc(100% - ${place.x + cell}px)` } : { left: `${place.x}px` }),
  };
  return html`<div class="tip" style=${style} role="status"><b>${isCurrent && data ? data.name : "…"}</b>
    <span>${value}${isCurrent && data ? `, ${count(data.pods)} pods` : ""}</span></div>`;
}

function Legend({ high, text, label }) {
  const canvas = useRef(null);
  useEffect(() => {
    const paintRamp = () => {
      const context = canvas.current.getContext("2d");
      for (let x = 0; x < 160; x += 1) {
        context.fillStyle = css(ramp(x / 159));
        context.fillRect(x, 0, 1, 12);
      }
    };
    paintRamp();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", paintRamp);
    return () => scheme.removeEventListener("change", paintRamp);
  }, []);
  return html`<p class="legend"><span>${label}</span><span>${text(0)}</span>
    <canvas ref=${canvas} width="160" height="12" aria-hidden="true"></canvas><span>${text(high)}</span></p>`;
}
