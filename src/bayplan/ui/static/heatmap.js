// The heat map: one cell of a canvas per node, group by group. The server sends two packed columns,
// the number and the value of each node; names are asked for one at a time.
import {
  Loading, Name, Problem, ask, count, html, percent, plural, useAnswer, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from "./lib.js";

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
const TEXT_HEIGHT_FROM = 16;
const SHADES = 100;
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
// height that is aimed at. `boxes` has four numbers per cell: left, top, width, height.
function layout(groups, width, sizes) {
  let plan = flow(groups, width, CELL_MAX);
  for (let cell = CELL_MAX - 1; cell >= CELL_MIN && plan.height > HEIGHT_AIM; cell -= 1) {
    plan = flow(groups, width, cell);
  }
  const cells = groups.reduce((sum, group) => sum + group.count, 0);
  const boxes = new Float32Array(4 * cells);
  for (const place of plan.places) {
    if (sizes) fillBySize(boxes, place, plan.cell, sizes);
    else fillEqually(boxes, place, plan.cell);
  }
  return { ...plan, boxes };
}

function fillEqually(boxes, place, cell) {
  for (let inside = 0; inside < place.count; inside += 1) {
    const at = 4 * (place.first + inside);
    boxes[at] = place.left + (inside % place.columns) * cell;
    boxes[at + 1] = place.top + Math.floor(inside / place.columns) * cell;
    boxes[at + 2] = cell;
    boxes[at + 3] = cell;
  }
}

// A squarified treemap (Bruls, Huizing, van Wijk, 2000) in the room of the group: the area of a cell
// is what its node offers. A node that offers nothing has no cell.
function fillBySize(boxes, place, cell, sizes) {
  const order = Array.from({ length: place.count }, (_, inside) => place.first + inside)
    .filter((index) => sizes[index] > 0).sort((one, other) => sizes[other] - sizes[one] || one - other);
  const sum = order.reduce((whole, index) => whole + sizes[index], 0);
  const room = { x: place.left, y: place.top, width: place.columns * cell, height: place.rows * cell };
  const scale = sum ? (room.width * room.height) / sum : 0;
  let row = [];
  let rowArea = 0;
  const worst = (area, least, most, side) => Math.max((side * side * most) / (area * area), (area * area) / (side * side * least));
  for (const index of order) {
    const area = sizes[index] * scale;
    const side = Math.min(room.width, room.height);
    const first = row.length ? sizes[row[0]] * scale : 0;
    const last = row.length ? sizes[row.at(-1)] * scale : 0;
    if (row.length && worst(rowArea + area, area, first, side) > worst(rowArea, last, first, side)) {
      placeRow(boxes, room, row, rowArea, sizes, scale);
      [row, rowArea] = [[], 0];
    }
    row.push(index);
    rowArea += area;
  }
  if (row.length) placeRow(boxes, room, row, rowArea, sizes, scale);
}

// One row of a treemap, along the shorter side of the room that is left.
function placeRow(boxes, room, row, area, sizes, scale) {
  const isWide = room.width >= room.height;
  const depth = area / (isWide ? room.height : room.width);
  let along = isWide ? room.y : room.x;
  for (const index of row) {
    const length = (sizes[index] * scale) / depth;
    boxes.set(isWide ? [room.x, along, depth, length] : [along, room.y, length, depth], 4 * index);
    along += length;
  }
  if (isWide) {
    room.x += depth;
    room.width -= depth;
  } else {
    room.y += depth;
    room.height -= depth;
  }
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

function cellAt({ boxes }, x, y) {
  for (let at = 0; at < boxes.length; at += 4) {
    if (x >= boxes[at] && x < boxes[at] + boxes[at + 2] && y >= boxes[at + 1] && y < boxes[at + 1] + boxes[at + 3]) {
      return at / 4;
    }
  }
  return -1;
}

function boxOf({ boxes }, index) {
  const [x, y, width, height] = boxes.subarray(4 * index, 4 * index + 4);
  return { x, y, width, height };
}

// The cell next to another one: the nearest cell that lies wholly on that side.
function neighbour({ boxes }, index, key) {
  const from = boxOf({ boxes }, index);
  const [across, back] = { ArrowLeft: [0, 1], ArrowRight: [0, 0], ArrowUp: [1, 1], ArrowDown: [1, 0] }[key];
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  let [best, least] = [index, Infinity];
  for (let at = 0; at < boxes.length; at += 4) {
    if (!boxes[at + 2]) continue;
    const near = back ? boxes[at + across] + boxes[at + 2 + across] - 0.01 : boxes[at + across] + 0.01;
    const edge = across ? (back ? from.y : from.y + from.height) : back ? from.x : from.x + from.width;
    if (back ? near > edge : near < edge) continue;
    const [dx, dy] = [boxes[at] + boxes[at + 2] / 2 - x, boxes[at + 1] + boxes[at + 3] / 2 - y];
    const distance = across ? Math.abs(dy) + 3 * Math.abs(dx) : Math.abs(dx) + 3 * Math.abs(dy);
    if (distance < least) [best, least] = [at / 4, distance];
  }
  return best;
}

export function HeatMap({ at, color, groupBy, sizeBy, isCount, label, onSelect }) {
  const { data, error } = useAnswer("heat", { at, color, group: groupBy, size: sizeBy });
  const canvas = useRef(null);
  const drawing = useRef(null);
  const [hover, setHover] = useState(null);
  // The cell that the keyboard has chosen. It stays chosen when the focus leaves the map.
  const [focused, setFocused] = useState(-1);
  const [hasFocus, setFocus] = useState(false);
  const text = isCount ? count : percent;
  const hasNone = useMemo(() => data !== null && unpack(data.values, Float32Array).some(Number.isNaN), [data]);

  const draw = () => {
    const target = canvas.current;
    if (!target || !data) return;
    const width = target.parentElement.clientWidth - 2 * PADDING;
    const values = unpack(data.values, Float32Array);
    const sizes = data.sizes ? unpack(data.sizes, Float32Array) : null;
    const plan = layout(data.groups, width, sizes);
    drawing.current = { plan, numbers: unpack(data.nodes, Int32Array), values };
    const scale = devicePixelRatio || 1;
    target.width = width * scale;
    target.height = plan.height * scale;
    target.style.width = `${width}px`;
    target.style.height = `${plan.height}px`;
    const context = target.getContext("2d");
    context.scale(scale, scale);
    paint(context, drawing.current, { data, groupBy, text });
  };

  // The map is drawn at once, because the keys and the pointer need the cells as soon as it is loaded.
  useLayoutEffect(draw, [data]);
  useEffect(() => {
    const watcher = new ResizeObserver(draw);
    watcher.observe(canvas.current.parentElement);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      watcher.disconnect();
      scheme.removeEventListener("change", draw);
    };
  }, [data]);

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
  const point = (index) => {
    setFocused(index);
    setHover({ index, ...boxOf(drawing.current.plan, index) });
  };
  const enter = () => {
    setFocus(true);
    if (canvas.current.matches(":focus-visible") && focused >= 0 && focused < drawing.current?.numbers.length) point(focused);
  };
  const leave = () => {
    setFocus(false);
    setHover(null);
  };
  const press = (event) => {
    const state = drawing.current;
    if (!state || !state.numbers.length) return;
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const isChosen = focused >= 0 && focused < state.numbers.length;
      point(isChosen ? neighbour(state.plan, focused, event.key) : 0);
    } else if (event.key === "Escape") {
      setHover(null);
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
  const ring = hasFocus && focused >= 0 && state && focused < state.numbers.length ? boxOf(state.plan, focused) : null;
  return html`<${Problem} text=${error} />
    <div class="heat">
      ${!data && !error && html`<${Loading} />`}
      <canvas ref=${canvas} tabindex="0" role="img"
        aria-label=${`${label}, one cell per node. Arrow keys move, Enter opens a node. The table below has the same nodes.`}
        onMouseMove=${move} onMouseLeave=${() => setHover(null)} onClick=${(event) => choose(under(event))}
        onKeyDown=${press} onFocus=${enter} onBlur=${leave}></canvas>
      ${ring && html`<div class="ring" style=${{ left: `${ring.x}px`, top: `${ring.y}px`, width: `${ring.width}px`, height: `${ring.height}px` }}></div>`}
      ${hover && state && hover.index < state.numbers.length && html`<${Tip} at=${at} number=${state.numbers[hover.index]} place=${hover}
        width=${canvas.current.clientWidth} value=${text(state.values[hover.index])} />`}
    </div>
    ${data && html`<${Legend} high=${data.high} text=${text} label=${label} hasNone=${hasNone} />
      ${sizeBy && html`<p class="note">The area of a cell is what its node offers of ${sizeBy}. A node that offers none has no cell.</p>`}`}`;
}

function paint(context, { plan, values }, { data, groupBy, text }) {
  const style = getComputedStyle(document.documentElement);
  const quiet = style.getPropertyValue("--text-quiet").trim();
  const nothing = style.getPropertyValue("--line").trim();
  const inset = plan.cell > 8 ? 1 : 0.5;
  const { boxes } = plan;
  const shades = Array.from({ length: SHADES + 1 }, (_, step) => ramp(step / SHADES));
  const fills = shades.map(css);
  context.textBaseline = "middle";
  for (const place of plan.places) {
    context.font = "600 12px system-ui, sans-serif";
    context.fillStyle = quiet;
    context.textAlign = "left";
    const name = groupBy ? place.name || `without ${groupBy}` : "all nodes";
    context.fillText(`${name} · ${count(place.count)}`, place.left, place.title + TITLE / 2);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    for (let index = place.first; index < place.first + place.count; index += 1) {
      const [x, y, width, height] = [boxes[4 * index], boxes[4 * index + 1], boxes[4 * index + 2], boxes[4 * index + 3]];
      const value = values[index];
      const step = Math.round(Math.max(0, Math.min(1, value / (data.high || 1))) * SHADES);
      const shade = Number.isNaN(value) ? null : shades[step];
      context.fillStyle = shade ? fills[step] : nothing;
      context.fillRect(x, y, Math.max(0.5, width - 2 * inset), Math.max(0.5, height - 2 * inset));
      if (width >= TEXT_FROM && height >= TEXT_HEIGHT_FROM) {
        context.fillStyle = shade && !isBright(shade) ? "#fff" : shade ? "#111" : quiet;
        context.fillText(text(value), x + width / 2 - inset, y + height / 2 - inset);
      }
    }
  }
}

function Tip({ at, number, place, width, value }) {
  const { data, isCurrent } = useAnswer("node", { at, number });
  const isRight = place.x > width / 2;
  const style = {
    top: `${place.y + place.height + 4}px`,
    ...(isRight ? { right: `calc(100% - ${place.x + place.width}px)` } : { left: `${place.x}px` }),
  };
  return html`<div class="tip" style=${style} role="status"><b>${isCurrent && data ? html`<${Name} text=${data.name} />` : "…"}</b>
    <span>${value}${isCurrent && data ? `, ${plural(data.pods, "pod")}` : ""}</span></div>`;
}

function Legend({ high, text, label, hasNone }) {
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
    <canvas ref=${canvas} width="160" height="12" aria-hidden="true"></canvas><span>${text(high)}</span>${hasNone && html`<span class="swatch" aria-hidden="true"></span><span>offers none</span>`}</p>`;
}
