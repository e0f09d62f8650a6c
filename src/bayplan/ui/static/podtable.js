// A paged table of pods, with filters, an order and the table as CSV.
import {
  Choice, Empty, Loading, Name, NodeInput, Pager, Problem, Search, SortHeading, address, amount, count, html, plural, query, tableAddress,
  time, useAnswer, useEffect, useState,
} from "./lib.js";

const PAGE = 50;
const STATES = ["waiting", "placed", "missing node", "ended", "gone"];
const FILTERS = ["search", "namespace", "workload", "label", "state", "pool", "node"];

// The columns about times and attempts, which files without a run have not.
export const timesOf = (source, ...more) => (source.hasDecisions ? ["since", ...more] : []);

// `filter`: which pods the table is about. `choices` and `onChoose`: what the reader chose (a text in the
// name, a namespace, a workload, a state, an order), if it is in the address; else the table has it.
export function PodTable({ at, filter, show, empty, choices: fixed, onChoose }) {
  const [own, setOwn] = useState({});
  const choices = fixed ?? own;
  const choose = onChoose ?? ((changes) => setOwn({ ...own, ...changes }));
  const [offset, setOffset] = useState(0);
  const chosen = Object.fromEntries(FILTERS.filter((name) => choices[name]).map((name) => [name, choices[name]]));
  const sort = choices.sort ?? "";
  const key = query({ ...filter, ...chosen, sort });
  useEffect(() => setOffset(0), [at, key]);
  const { data, error } = useAnswer("pods", { at, ...filter, ...chosen, sort, offset, limit: PAGE });
  const order = { sort, onSort: (next) => choose({ sort: next }) };
  const isFiltered = FILTERS.some((name) => choices[name]);
  return html`<div class="controls"><${Search} label="Pod name" value=${choices.search ?? ""} onSearch=${(text) => choose({ search: text || undefined })} />
      ${(data?.namespaces.length > 1 || choices.namespace) && html`<${Choice} label="Namespace" value=${choices.namespace ?? ""} options=${data?.namespaces ?? []} onChoose=${(namespace) => choose({ namespace })} />`}
      ${show.includes("state") && html`<${Choice} label="State" value=${choices.state ?? ""} options=${STATES} onChoose=${(state) => choose({ state })} />`}
      ${onChoose && html`<${Choice} label="Pool" value=${choices.pool ?? ""} options=${data?.pools ?? []} onChoose=${(pool) => choose({ pool })} />
        <${NodeInput} at=${at} value=${choices.node ?? ""} onNode=${(node) => choose({ node: node || undefined })} />`}
      ${choices.workload && html`<button class="tag" onClick=${() => choose({ workload: undefined })} aria-label=${`Show the pods of all workloads, not only of ${choices.workload}`}>${choices.workload} ✕</button>`}
      ${choices.label && html`<button class="tag" onClick=${() => choose({ label: undefined })} aria-label=${`Show the pods of all labels, not only of ${choices.label}`}>${choices.label} ✕</button>`}
      ${data && html`<span class="note">${plural(data.total, "pod")}</span>`}
      <a class="csv" href=${tableAddress("pods", { at, ...filter, ...chosen, sort })} download>CSV</a></div>
    <${Problem} text=${error} />
    ${!data ? !error && html`<${Loading} />` : !data.total
      ? html`<${Empty}>${isFiltered ? "No pod here is as the filters want it." : empty}</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Pods"><table class="pods"><thead><tr><${SortHeading} column="name" ...${order}>Pod</${SortHeading}>
      ${show.includes("workload") && html`<${SortHeading} column="workload" ...${order}>Workload</${SortHeading}>`}
      ${show.includes("state") && html`<${SortHeading} column="state" ...${order}>State</${SortHeading}>`}
      ${show.includes("node") && html`<${SortHeading} column="node" ...${order}>Node</${SortHeading}>`}
      ${show.includes("since") && html`<${SortHeading} column="since" isNumber=${true} ...${order}>Since</${SortHeading}>`}
      ${show.includes("attempts") && html`<${SortHeading} column="attempts" isNumber=${true} ...${order}>Attempts</${SortHeading}>`}
      ${show.includes("requests") && html`<${SortHeading} column="cpu" ...${order}>Requests</${SortHeading}>`}</tr></thead>
      <tbody>${keyed(data.rows).map(([row, key]) => html`<tr key=${key}>
        <th scope="row" class="name"><a href=${address("pods", { at, name: row.name })}><${Name} text=${row.name} /></a></th>
        ${show.includes("workload") && html`<td class="name">${row.workload === `Pod ${row.name}` ? "" : html`<button class="link" onClick=${() => choose({ workload: row.workload })}><${Name} text=${workloadText(row.workload)} /></button>`}</td>`}
        ${show.includes("state") && html`<td><span class=${`state ${row.state}`}>${row.state}</span></td>`}
        ${show.includes("node") && html`<td class="name">${row.node && html`<a href=${address("nodes", { at, node: row.node })}><${Name} text=${row.node} /></a>`}</td>`}
        ${show.includes("since") && html`<td class="number">${time(row.sinceSeconds)}</td>`}
        ${show.includes("attempts") && html`<td class="number">${count(row.attempts)}</td>`}
        ${show.includes("requests") && html`<td class="requests">${requestsText(row.requests)}</td>`}
      </tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

// A key for each row: its name, and a number among rows of that name. So a row keeps its element, and the focus in it,
// when other rows go.
function keyed(rows) {
  const counts = new Map();
  return rows.map((row) => {
    counts.set(row.name, (counts.get(row.name) ?? 0) + 1);
    return [row, `${row.name} ${counts.get(row.name)}`];
  });
}

// Its namespace stands before the name of the pod.
function workloadText(workload) {
  const [kind, name] = workload.split(" ");
  return `${kind} ${name.slice(name.indexOf("/") + 1)}`;
}

export function requestsText(requests) {
  const parts = Object.entries(requests).map(([resource, number]) => `${resource}: ${amount(resource, number)}`);
  return parts.length ? parts.join(", ") : "none";
}
