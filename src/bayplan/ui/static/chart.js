// Curves over the run. All charts of a view share one horizontal axis and one cursor.
//
// A drag over a span calls `onZoom`, which brings the points of the span; a chart shows all its points.
import uPlot from "./vendor/uPlot.js";
import { html, useEffect, useRef } from "./lib.js";

const HEIGHT = 200;
// A shorter drag is a click.
const DRAG_PIXELS = 6;
// Seconds between the marks of an axis of time: round in minutes, hours and days.
const TIMES = [0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 8640000];
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// `series`: [{label, values}]; `x`: numbers; `at`: where the page is, or null. Without `onZoom`, a
// drag does nothing. `isLine`: the points are joined; else a value holds until the next one.
export function Chart({ title, x, series, xLabel = "Time", formatX, formatY, isWhole, isLine = false, at, onPick, onZoom, onReset, syncKey }) {
  const element = useRef(null);
  const plot = useRef(null);
  const position = useRef(at);
  position.current = at;
  // The charts of a view share the drag, too, but the user dragged over only one of them.
  const isDragged = useRef(false);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;

  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(), [x, ...series.map((one) => one.values)], element.current);
      requestAnimationFrame(showPosition);
    };
    const options = () => ({
      width: element.current.clientWidth,
      height: HEIGHT,
      cursor: { sync: { key: syncKey }, drag: { x: Boolean(onZoom), y: false, setScale: false }, points: { size: 6 } },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
      axes: [
        axis({ values: (_, splits) => splits.map(formatX), space: 90, ...(xLabel === "Time" ? { incrs: TIMES } : {}) }),
        axis({ values: (_, splits) => splits.map(formatY), size: 58, ...(isWhole ? { incrs: WHOLE } : {}) }),
      ],
      series: [
        { label: xLabel, value: (_, value) => (value === null ? "–" : formatX(value)) },
        ...series.map((one, index) => ({
          label: one.label,
          stroke: color(`--curve-${(index % 6) + 1}`),
          width: 1.75,
          dash: index >= 6 ? [6, 4] : undefined,
          points: { show: x.length < 3 },
          paths: isLine ? uPlot.paths.linear() : uPlot.paths.stepped({ align: 1 }),
          value: (_, value) => (value === null ? "–" : formatY(value)),
        })),
      ],
      hooks: { draw: [marker], setSelect: [select] },
    });
    const axis = (more) => ({
      stroke: color("--text-quiet"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line"), width: 1 },
      font: "12px system-ui, sans-serif",
      ...more,
    });
    const select = (self) => {
      const { left, width } = self.select;
      if (!isDragged.current || width < DRAG_PIXELS) return;
      isDragged.current = false;
      zoom.current?.(self.posToVal(left, "x"), self.posToVal(left + width, "x"));
    };
    const marker = (self) => {
      const { min, max } = self.scales.x;
      if (position.current === null || position.current < min || position.current > max) return;
      const left = Math.round(self.valToPos(position.current, "x", true));
      self.ctx.save();
      self.ctx.strokeStyle = color("--text");
      self.ctx.lineWidth = 1.5 * devicePixelRatio;
      self.ctx.setLineDash([4, 3]);
      self.ctx.beginPath();
      self.ctx.moveTo(left, self.bbox.top);
      self.ctx.lineTo(left, self.bbox.top + self.bbox.height);
      self.ctx.stroke();
      self.ctx.restore();
    };
    draw();
    const watcher = new ResizeObserver(() => {
      const width = element.current?.clientWidth;
      if (width && plot.current && width !== plot.current.width) plot.current.setSize({ width, height: HEIGHT });
    });
    watcher.observe(element.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      watcher.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [x, series]);

  useEffect(() => {
    plot.current?.redraw(false);
    requestAnimationFrame(showPosition);
  }, [at]);

  // Without a cursor the legend has the values at the position of the page.
  function showPosition() {
    let index = x.findIndex((value) => value > position.current);
    index = index < 0 ? x.length - 1 : Math.max(0, index - 1);
    plot.current?.setLegend({ idx: index });
  }
  const pick = (event) => {
    const index = plot.current?.cursor.idx;
    if (index !== null && index !== undefined) onPick(index, event.detail);
  };
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    <div ref=${element} onMouseDown=${() => { isDragged.current = true; }} onClick=${pick} onDblClick=${onReset} onMouseLeave=${showPosition}></div>
  </figure>`;
}
