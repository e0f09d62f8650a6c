// What pods request by namespace, by the value of a label, or by node pool.
import {
  Choice, Empty, Loading, Name, Pager, Problem, ResourceName, SortHeading, address, count, go, html, plural, tableAddress, useAnswer,
  useEffect, useState,
} from "./lib.js";
import { UsageCells, columnsOf } from "./nodes.js";
import { requestsText } from "./podtable.js";

const PAGE = 50;
const TITLES = { namespace: "Namespace", label: "Label", pool: "Node pool" };

export function UsageBy({ source, params }) {
  const { at, by = "namespace", label = "", sort = "" } = params;
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [at, by, label, sort]);
  const choose = (changes) => go("usage", { ...params, ...changes }, { replace: true });
  const { data, error } = useAnswer("usage", { at, by, label, sort, offset, limit: PAGE });
  const isChosen = by !== "label" || label;
  return html`<h1>Usage</h1>
    <div class="controls">
      <label>By <select value=${by} onChange=${(event) => choose({ by: event.currentTarget.value, sort: undefined })}>
        ${Object.entries(TITLES).map(([key, text]) => html`<option key=${key} value=${key}>${text.toLowerCase()}</option>`)}</select></label>
      ${by === "label" && html`<${Choice} label="Label of pods" value=${label} options=${data?.labels ?? []} first="choose one" onChoose=${(one) => choose({ label: one })} />`}
      ${data && isChosen && html`<span class="note">${plural(data.total, by === "label" ? "value" : TITLES[by].toLowerCase())}; shares of what ${by === "pool" ? "the nodes of the pool" : "all nodes"} offer</span>`}
      ${isChosen && html`<a class="csv" href=${tableAddress("usage", { at, by, label, sort })} download>CSV</a>`}</div>
    <${Problem} text=${error} />
    ${!data ? !error && html`<${Loading} />` : !isChosen ? html`<${Empty}>Choose the label that names your teams.</${Empty}>`
      : !data.total ? html`<${Empty}>There is none at this moment.</${Empty}>`
        : html`<${UsageTable} data=${data} source=${source} at=${at} by=${by} label=${label} order=${{ sort, onSort: (next) => choose({ sort: next }) }} />
          <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

function UsageTable({ data, source, at, by, label, order }) {
  const columns = columnsOf(source.resources, data.rows);
  const isPool = by === "pool";
  // Pods and nodes of a row, and its pods in one state.
  const link = (name, state) => (isPool ? address("nodes", { at, pool: name })
    : address("pods", { at, state, ...(by === "label" ? { label: `${label}=${name}` } : { namespace: name }) }));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Usage"><table><thead><tr>
      <${SortHeading} column="name" ...${order}>${by === "label" ? label : TITLES[by]}</${SortHeading}>
      ${isPool && html`<${SortHeading} column="nodes" isNumber=${true} ...${order}>Nodes</${SortHeading}>`}
      <${SortHeading} column="pods" isNumber=${true} ...${order}>Pods</${SortHeading}>
      ${!isPool && html`<${SortHeading} column="waiting" isNumber=${true} ...${order}>Waiting</${SortHeading}><th>They request</th>`}
      ${columns.map((one) => html`<${SortHeading} key=${one} column=${one} isNumber=${true} span=${2} ...${order}><${ResourceName} resource=${one} /></${SortHeading}>`)}</tr></thead>
    <tbody>${data.rows.map((row) => html`<tr key=${row.name}>
      <th scope="row" class="name">${row.name || !isPool ? html`<a href=${link(row.name)}>${row.name ? html`<${Name} text=${row.name} />` : `without ${label}`}</a>` : "without a pool"}</th>
      ${isPool && html`<td class="number">${count(row.nodes)}</td>`}
      <td class="number">${count(row.pods)}</td>
      ${!isPool && html`<td class="number">${row.waiting ? html`<a href=${link(row.name, "waiting")}>${count(row.waiting)}</a>` : "0"}</td><td class="requests">${row.waiting > 0 && requestsText(row.waitingRequests)}</td>`}
      ${columns.map((one) => html`<${UsageCells} key=${one} usage=${row.usage.find((each) => each.resource === one)} isAmount=${true} />`)}</tr>`)}</tbody></table></div>`;
}
