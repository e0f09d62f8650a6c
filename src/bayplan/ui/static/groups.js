// Groups: pods that are placed together.
import {
  Bar, Empty, Loading, Name, Pager, Problem, Search, address, count, go, html, plural, tableAddress, time, useAnswer,
  useEffect, useFew, useState,
} from "./lib.js";
import { ObjectLink } from "./object.js";
import { PodTable, timesOf } from "./podtable.js";
import { GroupLevels } from "./explanation.js";
import { CauseParts, KIND_TITLES } from "./causes.js";

const PAGE = 50;
const SHOWN = 6;
const RESULTS = { short: "members missing" };

export function Groups({ source, params }) {
  return params.name ? html`<${Group} key=${params.name} source=${source} params=${params} />` : html`<${GroupList} hasDecisions=${source.hasDecisions} params=${params} />`;
}

function GroupList({ hasDecisions, params }) {
  const { at, search = "" } = params;
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [search, at]);
  const { data, error } = useAnswer("groups", { at, search, offset, limit: PAGE });
  return html`<h1>Groups</h1>
    <div class="controls"><${Search} label="Group name" value=${search}
      onSearch=${(text) => go("groups", { ...params, search: text || undefined }, { replace: true })} />
      <a class="csv" href=${tableAddress("groups", { at, search })} download>CSV</a></div>
    <${Problem} text=${error} />
    ${!data ? !error && html`<${Loading} />` : !data.total ? html`<${Empty}>${search ? `No group has “${search}” in its name.` : "There is no group at this moment."}</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Groups"><table><thead><tr><th>Group</th><th class="wide">Placed</th><th class="number">Members</th><th class="number">Minimum</th><th class="number">Waiting</th><th class="number">Ended</th>${hasDecisions && html`<th>Last attempt</th>`}</tr></thead>
      <tbody>${data.rows.map((row) => html`<tr key=${row.name}>
        <th scope="row" class="name"><a href=${address("groups", { at, name: row.name })}><${Name} text=${row.name} /></a></th>
        <td class="wide"><${Bar} share=${row.members > row.ended ? row.placed / (row.members - row.ended) : 0} /><span class="share">${count(row.placed)}</span></td>
        <td class="number">${count(row.members)}</td><td class="number">${row.minimum ? count(row.minimum) : "–"}</td>
        <td class="number">${count(row.waiting)}</td><td class="number">${count(row.ended)}</td>${hasDecisions && html`<td>${RESULTS[row.result] ?? (row.result || "–")}</td>`}</tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

function Group({ source, params }) {
  const { at, name } = params;
  const { data, error } = useAnswer("group", { at, name });
  if (error) return html`<h1 class="name">${name}</h1><${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  const { group, attempts, nodes } = data;
  return html`<p class="crumbs"><a href=${address("groups", { at })}>Groups</a> ${group.minimum > 0 && html`<${ObjectLink} at=${at} kind="PodGroup" name=${group.name} />`}</p>
    <h1 class="name">${group.name}</h1>
    <${Verdict} data=${data} />
    <ul class="figures">
      <li><b>${count(group.placed)}</b><span>of ${plural(group.members, "member")} on nodes</span></li>
      ${group.ended > 0 && html`<li><b>${count(group.ended)}</b><span>${group.ended === 1 ? "member has" : "members have"} ended</span></li>`}
      ${group.minimum > 0 && html`<li><b>${count(group.minimum)}</b><span>${group.minimum === 1 ? "member is" : "members are"} the minimum</span></li>`}
      <li class=${group.waiting ? "alert" : ""}><b>${count(group.waiting)}</b><span>${group.waiting === 1 ? "member waits" : "members wait"}</span></li>
      ${group.minimum > 0 && html`<li class=${missing(group) ? "alert" : ""}><b>${count(missing(group))}</b><span>${missing(group) === 1 ? "member does" : "members do"} not exist</span></li>`}
    </ul>
    ${group.message && html`<p class="message">${group.message}</p>`}
    <${Causes} data=${data} at=${at} />
    ${data.waitingMember && source.hasModel && html`<${GroupLevels} source=${source} params=${params} pod=${data.waitingMember} />`}
    ${data.domains.length > 0 && group.placed > 0 && html`<${Domains} domains=${data.domains} />`}
    ${Object.keys(nodes).length > 0 && html`<h2>Nodes</h2><ul class="tags">${Object.entries(nodes).map(([node, pods]) => html`<li key=${node} class="tag">
      <a href=${address("nodes", { at, node })}><${Name} text=${node} /></a> ${plural(pods, "member")}</li>`)}</ul>`}
    ${source.hasDecisions && html`<h2>Attempts</h2>
    ${attempts.length ? html`<${Attempts} attempts=${attempts} />` : html`<${Empty}>No attempt so far.</${Empty}>`}`}
    <h2>Members</h2>
    <${PodTable} at=${at} filter=${{ group: name }} show=${["state", "node", ...timesOf(source, "attempts")]} empty="No member exists at this moment." />`;
}

// The newest attempts first.
function Attempts({ attempts }) {
  const [visible, button] = useFew(attempts.slice().reverse(), SHOWN, "attempts");
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Attempts"><table><thead><tr><th class="number">Time</th><th>Result</th><th class="number">Assigned before</th><th class="number">Placed now</th><th>Domain</th><th>Message</th></tr></thead>
      <tbody>${visible.map((one) => html`<tr key=${one.change}><td class="number">${time(one.seconds)}</td><td>${RESULTS[one.result] ?? one.result}</td>
        <td class="number">${count(one.assigned)}</td><td class="number">${count(one.fitting)}</td><td>${one.domain || "–"}</td><td class="text">${one.message}</td></tr>`)}</tbody></table></div>${button}`;
}

const missing = (group) => Math.max(0, group.minimum - group.members);

// What the group needs next, and the reservation.
function Verdict({ data }) {
  const { group, reservation } = data;
  const needed = Math.max(0, group.minimum - group.placed);
  const isOver = needed > 0 && !missing(group) && !group.waiting;
  const text = !group.minimum ? "No PodGroup object has this name, so nothing says how many members the group needs."
    : !needed ? "The group has its minimum on nodes."
    : isOver ? "No member waits: the members without a node have ended."
    : missing(group) ? `${plural(missing(group), "member")} must be created before the group is tried.`
      : `${plural(needed, "more member")} must fit at the same time.`;
  return html`<p class=${`verdict ${(group.minimum ? needed && !isOver : group.waiting) ? "bad" : "good"}`}>${text}
    ${reservation && html` <b>${plural(reservation.nodes, "node")} ${reservation.nodes === 1 ? "is" : "are"} kept for it</b> since ${time(reservation.sinceSeconds)}; expected start: ${reservation.startSeconds === null ? "once room is free" : time(reservation.startSeconds)}.`}</p>`;
}

function Causes({ data, at }) {
  const entries = Object.entries(data.waitingCauses);
  if (!entries.length) return null;
  return html`<h2>Why members wait</h2><ul class="cards">${entries.map(([number, pods]) => html`<li key=${number}>
    <p><a href=${address("waiting", { at, cause: number })}>${plural(pods, "member")}</a>: ${KIND_TITLES[data.causes[number].kind] ?? data.causes[number].kind}</p>
    <${CauseParts} cause=${data.causes[number]} /></li>`)}</ul>`;
}

function Domains({ domains }) {
  const most = Math.max(1, ...domains.map((one) => one.members));
  return html`<h2>Domains</h2><div class="scroll" tabindex="0" role="region" aria-label="Domains"><table><thead><tr><th>Label</th><th>Domain</th><th class="wide">Members</th><th class="number">Nodes</th></tr></thead>
    <tbody>${domains.map((one) => html`<tr key=${`${one.key}=${one.name}`}><td class="name label">${one.key}</td>
      <th scope="row" class="name">${one.name}${one.isChosen && html` <span class="tag">chosen</span>`}</th>
      <td class="wide"><${Bar} share=${one.members / most} /><span class="share">${count(one.members)}</span></td><td class="number">${count(one.nodes)}</td></tr>`)}</tbody></table></div>`;
}
