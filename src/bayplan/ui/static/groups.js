// Groups: pods that are placed together.
import {
  Bar, Empty, Loading, Pager, Problem, Search, address, count, go, html, time, useAnswer, useEffect, useState,
} from "./lib.js";
import { PodTable } from "./podtable.js";

const PAGE = 50;
const SHOWN = 20;

export function Groups({ params }) {
  return params.name ? html`<${Group} key=${params.name} params=${params} />` : html`<${GroupList} params=${params} />`;
}

function GroupList({ params }) {
  const { at, search = "" } = params;
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [search, at]);
  const { data, error } = useAnswer("groups", { at, search, offset, limit: PAGE });
  return html`<h1>Groups</h1>
    <div class="controls"><${Search} label="Group name" value=${search}
      onSearch=${(text) => go("groups", { ...params, search: text || undefined }, { replace: true })} /></div>
    <${Problem} text=${error} />
    ${!data ? html`<${Loading} />` : !data.total ? html`<${Empty}>There is no such group.</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Groups"><table><thead><tr><th>Group</th><th class="wide">Placed</th><th class="number">Members</th><th class="number">Minimum</th><th class="number">Waiting</th><th>Last attempt</th></tr></thead>
      <tbody>${data.rows.map((row) => html`<tr key=${row.name}>
        <th scope="row" class="name"><a href=${address("groups", { at, name: row.name })}>${row.name}</a></th>
        <td class="wide"><${Bar} share=${row.members ? row.placed / row.members : 0} /><span class="share">${count(row.placed)}</span></td>
        <td class="number">${count(row.members)}</td><td class="number">${count(row.minimum)}</td>
        <td class="number">${count(row.waiting)}</td><td>${row.result || "–"}</td></tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

function Group({ params }) {
  const { at, name } = params;
  const { data, error } = useAnswer("group", { at, name });
  if (error) return html`<h1 class="name">${name}</h1><${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  const { group, attempts, nodes } = data;
  const missing = Math.max(0, group.minimum - group.members);
  return html`<p class="crumbs"><a href=${address("groups", { at })}>Groups</a></p>
    <h1 class="name">${group.name}</h1>
    <ul class="figures">
      <li><b>${count(group.placed)}</b><span>members on nodes</span></li>
      <li class=${group.waiting ? "alert" : ""}><b>${count(group.waiting)}</b><span>members waiting</span></li>
      <li><b>${count(group.minimum)}</b><span>minimum${missing > 0 && html`<small>${count(missing)} members do not exist</small>`}</span></li>
    </ul>
    ${group.message && html`<p class="message">${group.message}</p>`}
    ${Object.keys(nodes).length > 0 && html`<h2>Nodes</h2><ul class="tags">${Object.entries(nodes).map(([node, pods]) => html`<li key=${node} class="tag">
      <a href=${address("nodes", { at, node })}>${node}</a> ${count(pods)}</li>`)}</ul>`}
    <h2>Attempts</h2>
    ${attempts.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Attempts"><table><thead><tr><th class="number">Time</th><th>Result</th><th class="number">Assigned before</th><th class="number">Placed now</th><th>Domain</th><th>Message</th></tr></thead>
      <tbody>${attempts.slice(-SHOWN).reverse().map((one) => html`<tr key=${one.change}><td class="number">${time(one.seconds)}</td><td>${one.result}</td>
        <td class="number">${count(one.assigned)}</td><td class="number">${count(one.fitting)}</td><td>${one.domain || "–"}</td><td>${one.message}</td></tr>`)}</tbody></table></div>
      ${attempts.length > SHOWN && html`<p class="note">The last ${SHOWN} of ${count(attempts.length)} attempts.</p>`}`
      : html`<${Empty}>No attempt so far.</${Empty}>`}
    <h2>Members</h2>
    <${PodTable} at=${at} filter=${{ group: name }} show=${["state", "node", "since", "attempts"]} empty="No member exists at this moment." />`;
}
