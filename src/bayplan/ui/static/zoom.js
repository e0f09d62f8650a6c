// The span of the charts: all of the run, or a part of it that the address has as `from` and `to`.
import { Button, go, html } from "./lib.js";
import { useSpan } from "./live.js";

const FACTOR = 2;
// The charts show no shorter span: seconds, or changes.
const SPAN_MIN = { time: 0.01, changes: 4 };

// `byTime`: `from` and `to` are seconds; else they are changes.
export function useZoom(source, params, byTime) {
  const span = useSpan(source);
  const [first, last] = byTime ? span : [0, source.lastChange];
  const [from, to] = [params.from, params.to].map(Number.parseFloat);
  const isZoomed = Number.isFinite(from) && Number.isFinite(to) && from < to && to > first && from < last;
  const least = SPAN_MIN[byTime ? "time" : "changes"];
  const put = (changes) => go("overview", { ...params, ...changes }, { replace: true });
  const rounded = (value) => (byTime ? Number(value.toFixed(3)) : Math.round(value));
  const showAll = (changes = {}) => put({ from: undefined, to: undefined, ...changes });
  const show = (start, end) => {
    const length = Math.max(least, Math.min(end - start, last - first));
    const bounded = Math.max(first, Math.min(start, last - length));
    if (length >= last - first) showAll();
    else put({ from: rounded(bounded), to: rounded(bounded + length) });
  };
  return {
    first, last, least, isZoomed, show, showAll,
    from: isZoomed ? from : undefined,
    to: isZoomed ? to : undefined,
  };
}

// `middle`: the position of the page, around which the charts zoom.
export function ZoomControls({ zoom, middle, format }) {
  const { first, last, least, isZoomed } = zoom;
  const [from, to] = isZoomed ? [zoom.from, zoom.to] : [first, last];
  const length = to - from;
  const resize = (factor) => {
    const isInside = middle >= from && middle <= to;
    const center = isInside ? middle : (from + to) / 2;
    zoom.show(center - ((center - from) * factor), center + ((to - center) * factor));
  };
  const shift = (part) => zoom.show(from + length * part, to + length * part);
  return html`<div class="zoom" role="group" aria-label="Span of the charts">
    ${isZoomed && html`<span class="note" role="status">${format(from)} to ${format(to)}</span>`}
    <${Button} onClick=${() => shift(-1 / FACTOR)} isOff=${!isZoomed || from <= first}>Earlier</${Button}>
    <${Button} onClick=${() => shift(1 / FACTOR)} isOff=${!isZoomed || to >= last}>Later</${Button}>
    <${Button} onClick=${() => resize(1 / FACTOR)} isOff=${length / FACTOR < least}>Zoom in</${Button}>
    <${Button} onClick=${() => resize(FACTOR)} isOff=${!isZoomed}>Zoom out</${Button}>
    <${Button} onClick=${() => zoom.showAll()} isOff=${!isZoomed}>Show all</${Button}>
  </div>`;
}
