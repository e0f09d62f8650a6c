// A paged table of pods, with a search by name and the table as CSV.
import {
  Empty, Loading, Name, Pager, Problem, Search, address, amount, count, html, plural, query, tableAddress, time, useAnswer,
  useEffect, useState,
} from "./lib.js";

const PAGE = 50;

export function PodTable({ at, filter, show, empty, search: fixed, onSearch }) {
  const [own, setOwn] = useState("");
  const [search, setSearch] = onSearch ? [fixed, onSearch] : [own, setOwn];
  const [offset, setOffset] = useState(0);
  const key = query(filter);
  useEffect(() => setOffset(0), [search, at, key]);
  const { data, error } = useAnswer("pods", { at, ...filter, search, offset, limit: PAGE });
  return html`<div class="controls"><${Search} label="Pod name" value=${search} onSearch=${setSearch} />
      ${data && html`<span class="note">${plural(data.total, "pod")}</span>`}
      <a class="csv" href=${tableAddress("pods", { at, ...filter, search })} download>CSV</a></div>
    <${Problem} text=${error} />
    ${!data ? !error && html`<${Loading} />` : !data.total
      ? html`<${Empty}>${search ? `No pod here has “${search}” in its name.` : empty}</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Pods"><table class="pods"><thead><tr><th>Pod</th>
      ${show.includes("state") && html`<th>State</th>`}
      ${show.includes("node") && html`<th>Node</th>`}
      ${show.includes("since") && html`<th class="number">Since</th>`}
      ${show.includes("attempts") && html`<th class="number">Attempts</th>`}
      ${show.includes("requests") && html`<th>Requests</th>`}</tr></thead>
      <tbody>${keyed(data.rows).map(([row, key]) => html`<tr key=${key}>
        <th scope="row" class="name"><a href=${address("pods", { at, name: row.name })}><${Name} text=${row.name} /></a></th>
        ${show.includes("state") && html`<td><span class=${`state ${row.state}`}>${row.state}</span></td>`}
        ${show.includes("node") && html`<td class="name">${row.node && html`<a href=${address("nodes", { at, node: row.node })}><${Name} text=${row.node} /></a>`}</td>`}
        ${show.includes("since") && html`<td class="number">${time(row.sinceSeconds)}</td>`}
        ${show.includes("attempts") && html`<td class="number">${count(row.attempts)}</td>`}
        ${show.includes("requests") && html`<td class="requests">${requestsText(row.requests)}</td>`}
      </tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

// A name and which pod of this name: a row keeps its element, and the focus in it, when other rows go.
function keyed(rows) {
  const counts = new Map();
  return rows.map((row) => {
    counts.set(row.name, (counts.get(row.name) ?? 0) + 1);
    return [row, `${row.name} ${counts.get(row.name)}`];
  });
}

export function requestsText(requests) {
  const parts = Object.entries(requests).map(([resource, number]) => `${resource}: ${amount(resource, number)}`);
  return parts.length ? parts.join(", ") : "none";
}
