// What `bayplan compare` measured: the metrics that differ between configurations, with intervals.
import { Chart } from "./chart.js";
import { Loading, Name, Problem, count, go, html, plural, useAnswer, useMemo } from "./lib.js";

// Further metrics have no plot, only a row in the table.
const PLOTS_MAX = 12;
// Pixels above and below the line, so that equal runs are seen.
const SPREAD = [0, -4, 4, -2, 2];
const figures = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const figure = (number) => figures.format(number);

const ARROWS = { higher: "higher is better ↑", lower: "lower is better ↓" };

export function Experiment({ params }) {
  const { data, error } = useAnswer("experiment", {});
  if (error) return html`<${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  const alternatives = data.configurations.filter((name) => name !== data.baseline);
  const names = Object.keys(data.inputs);
  const input = names.includes(params.input) ? params.input : names[0];
  const one = data.inputs[input];
  const failures = one.runs.reduce((sum, run) => sum + run.failures, 0);
  const seeds = new Set(one.runs.map((run) => run.seed)).size;
  return html`<h1>${data.title}</h1>
    <p class="note">${plural(data.configurations.length, "configuration")}, ${plural(seeds, "seed")}, ${plural(one.runs.length, "run")}. The baseline is ${data.baseline}.</p>
    ${names.length > 1 && html`<div class="controls"><label>Input <select value=${input}
      onChange=${(event) => go("comparison", { ...params, input: event.currentTarget.value }, { replace: true })}>
      ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label></div>`}
    ${failures > 0 && html`<${Problem} text=${`${plural(failures, "attempt")} failed with an error.`} />`}
    ${one.conclusions.length > 0 && html`<ul class="reasons">${one.conclusions.map((text) => html`<li key=${text}>${text}</li>`)}</ul>`}
    ${alternatives.length > 0 && html`<h2>Metrics that differ</h2>
      ${one.differing.length ? html`<${Differing} baseline=${data.baseline} metrics=${one.differing} alternatives=${alternatives} />` : html`<p class="empty">No metric differs.</p>`}
      <p class="note">Mean ± deviation over the seeds. A difference is the mean over pairs of runs with equal seeds, with its 95 % interval. It is called better or worse only if the interval excludes zero.</p>`}
    <${Plots} data=${data} one=${one} />
    <${Curves} input=${input} />
    <h2>${alternatives.length ? "Metrics that are equal in all runs" : "Metrics"}</h2>
    <${Same} metrics=${one.same} />`;
}

function Metric({ metric }) {
  const about = [metric.meaning, metric.unit && `in ${metric.unit}`, ARROWS[metric.better]].filter(Boolean).join("; ");
  return html`<th scope="row" class="metric">${metric.name}${about && html`<small>${about}</small>`}</th>`;
}

function Differing({ baseline, metrics, alternatives }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Metrics that differ"><table><thead><tr><th>Metric</th><th class="number">${baseline}</th>
    ${alternatives.map((name) => html`<th key=${name} class="number" colspan="2">${name}, and its difference</th>`)}</tr></thead>
    <tbody>${metrics.map((metric) => html`<tr key=${metric.name}><${Metric} metric=${metric} /><td class="number">${metric.baseline}</td>
      ${metric.cells.map((cell) => html`<td key=${`${cell.configuration} value`} class="number">${cell.value}</td>
        <td key=${cell.configuration} class="number">${cell.isSame ? html`<span class="none">same</span>`
          : html`${cell.difference} ${cell.isClear && html`<span class=${`state ${cell.verdict}`}>${cell.verdict}</span>`}`}</td>`)}
    </tr>`)}</tbody></table></div>`;
}

function Same({ metrics }) {
  if (!metrics.length) return html`<p class="empty">There is none.</p>`;
  return html`<details><summary>${count(metrics.length)} metrics</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="Equal metrics"><table><thead><tr><th>Metric</th><th class="number">Every configuration</th></tr></thead>
    <tbody>${metrics.map((metric) => html`<tr key=${metric.name}><${Metric} metric=${metric} /><td class="number">${metric.baseline}</td></tr>`)}</tbody></table></div></details>`;
}

// One line of dots for each configuration: a dot is a run, a bar the mean.
function Plots({ data, one }) {
  const metrics = (one.differing.length ? one.differing : one.same).filter((metric) => !metric.name.startsWith("unschedulable: ")).slice(0, PLOTS_MAX);
  const plots = metrics.map((metric) => [metric, data.configurations.map((name) => one.runs.filter((run) => run.configuration === name && metric.name in run.metrics))])
    .filter(([, runs]) => runs.some((some) => some.length));
  if (!plots.length) return null;
  return html`<h2>Run by run</h2><p class="note">A dot is one run, and a bar the mean of a configuration.</p>
    <div class="charts">${plots.map(([metric, runs]) => html`<${Dots} key=${metric.name} metric=${metric} configurations=${data.configurations} runs=${runs} />`)}</div>`;
}

function Dots({ metric, configurations, runs }) {
  const value = (run) => run.metrics[metric.name];
  const all = runs.flat().map(value);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const place = (number) => `${4 + 92 * (high > low ? (number - low) / (high - low) : 0.5)}%`;
  const mean = (some) => some.reduce((sum, run) => sum + value(run), 0) / some.length;
  const about = [metric.unit && `in ${metric.unit}`, ARROWS[metric.better]].filter(Boolean).join("; ");
  return html`<figure class="dots"><figcaption>${metric.name}${about && html` <small>${about}</small>`}</figcaption>
    ${configurations.map((name, index) => html`<div key=${name} class="dotline"><span class="name"><${Name} text=${name} /></span>
      ${runs[index].length ? html`<svg role="img" aria-label=${`${name}: mean ${figure(mean(runs[index]))}, from ${figure(Math.min(...runs[index].map(value)))} to ${figure(Math.max(...runs[index].map(value)))}`} style=${`color: var(--curve-${(index % 6) + 1})`}>
        <line x1="0" x2="100%" y1="10" y2="10" class="axis" />
        <rect x=${place(mean(runs[index]))} y="1" width="3" height="18" transform="translate(-1.5)" fill="currentColor" />
        ${runs[index].map((run, nth) => html`<circle key=${run.seed} cx=${place(value(run))} cy=${10 + SPREAD[nth % SPREAD.length]} r="3.5" fill="currentColor"><title>${`seed ${run.seed}: ${figure(value(run))}`}</title></circle>`)}</svg>`
        : html`<span class="none">–</span>`}</div>`)}
    <div class="dotline"><span></span><span class="ends"><span>${figure(low)}</span><span>${high > low ? figure(high) : ""}</span></span></div></figure>`;
}

// The mean of each configuration over the seeds. Curves that are equal in all runs are left out.
function Curves({ input }) {
  const { data, error } = useAnswer("curves", { input });
  if (error) return html`<${Problem} text=${error} />`;
  if (!data?.rows.length) return null;
  return html`<h2>Over the run</h2><p class="note">The mean of each configuration over the seeds.</p>
    <div class="charts">${data.rows.map((curve) => html`<${Curve} key=${curve.name} curve=${curve} />`)}</div>`;
}

function Curve({ curve }) {
  // A chart is drawn again for other arrays, so these stay the same objects.
  const series = useMemo(() => curve.configurations.map((one) => ({ label: one.configuration, values: one.mean })), [curve]);
  const [, over] = curve.name.split(" over ");
  return html`<${Chart} title=${curve.name} x=${curve.x} series=${series} xLabel=${over ?? ""} formatX=${figure} formatY=${figure} at=${null} onPick=${() => {}} isLine=${true} syncKey="comparison" />`;
}
