// What `bayplan compare` measured: the metrics that differ between configurations, with intervals.
import { Loading, Problem, count, go, html, plural, useAnswer } from "./lib.js";

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
