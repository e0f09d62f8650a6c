// Nodes: the heat map, the table of nodes, and one node.
import { HeatMap } from "./heatmap.js";
import { useOpenedFocus } from "./focus.js";
import { Computing, isPast, useComputed } from "./computed.js";
import {
  Bar, Choice, Empty, Loading, Name, Pager, Problem, ResourceName, Search, SortHeading, address, amount, count, go, html, percent, plural,
  tableAddress, time, useAnswer, useEffect, useRef, useState,
} from "./lib.js";
import { ObjectLink } from "./object.js";
import { PodTable, timesOf } from "./podtable.js";
import { whatIfAddress } from "./whatif.js";

const PAGE = 50;
const STATES = ["ready", "not ready", "cordoned", "tainted"];

export function Nodes({ source, params }) {
  const { at, node, color = source.resources[0] ?? "", group = "", fits = "", size = "" } = params;
  const set = (changes) => go("nodes", { ...params, ...changes }, { replace: true });
  // A node that the address had at first was not opened here.
  const first = useRef(node);
  if (node !== first.current) first.current = null;
  const isFit = color === "fits";
  const heatColor = isFit ? `fits:${fits}` : color;
  const label = isFit ? `Pods with the requests of ${fits || "…"} for which there is room`
    : color === "fragmentation" ? "Fragmentation: the largest free share less the smallest"
      : `Requested share of ${color}`;
  if (!source.resources.length) {
    return html`<h1>Nodes</h1><${Empty}>No node offers resources, so every pod waits.</${Empty}>`;
  }
  return html`<h1>Nodes</h1>
    <div class="controls">
      <label>Color <select value=${color} onChange=${(e) => set({ color: e.currentTarget.value })}>
        ${source.resources.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
        <option value="fragmentation">fragmentation</option>
        <option value="fits">how many of a pod fit</option></select></label>
      <label>Group by <select value=${group} onChange=${(e) => set({ group: e.currentTarget.value || undefined })}>
        <option value="">nothing</option>
        ${source.labels.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
      <label>Size by <select value=${size} onChange=${(e) => set({ size: e.currentTarget.value || undefined })}>
        <option value="">nothing</option>
        ${source.resources.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
      ${isFit && html`<${PodField} at=${at} value=${fits} onPod=${(name) => set({ fits: name })} />`}
    </div>
    ${isFit && html`<p class="note">Only free resources count here, not taints, affinity or other filters.</p>`}
    <div class=${node ? "split" : ""}>
      <div>
        ${isFit && !fits ? html`<${Empty}>Choose a pod: the map then shows for how many pods with its requests each node has room.</${Empty}>`
          : html`<${HeatMap} at=${at} color=${heatColor} groupBy=${group} sizeBy=${size} isCount=${isFit} label=${label}
              onSelect=${(name) => set({ node: name })} />`}
        <${NodeTable} at=${at} params=${params} resources=${source.resources} />
      </div>
      ${node && html`<${NodePanel} key=${node} source=${source} at=${at} name=${node} isOpenedHere=${first.current === null} onClose=${() => set({ node: undefined })} />`}
    </div>`;
}

function PodField({ at, value, onPod }) {
  const [text, setText] = useState(value);
  const { data } = useAnswer(text ? "pods" : null, { at, search: text, limit: 12 });
  const choose = (name) => {
    setText(name);
    if (data?.rows.some((row) => row.name === name)) onPod(name);
  };
  return html`<label>Pod <input list="pod-names" value=${text} placeholder="namespace/name"
      onInput=${(event) => choose(event.currentTarget.value)} />
    <datalist id="pod-names">${(data?.rows ?? []).map((row) => html`<option key=${row.name} value=${row.name} />`)}</datalist></label>`;
}

const FIRST = ["cpu", "memory", "pods"];
// Devices that nobody requests are worth a line; ephemeral storage and huge pages are not.
export const isWorthLine = (resource, used) => used > 0 || FIRST.includes(resource) || resource.includes("/");

// The resources that are worth a column of these rows. Devices come first, because their nodes are scarce.
export function columnsOf(resources, rows) {
  const used = new Set(rows.flatMap((row) => row.usage.filter((one) => one.used > 0).map((one) => one.resource)));
  const shares = resources.filter((one) => one !== "pods" && isWorthLine(one, used.has(one)));
  const isDevice = (one) => one.includes("/");
  return [...shares.filter(isDevice), ...shares.filter((one) => !isDevice(one))];
}

function NodeTable({ at, params, resources }) {
  const { search = "", state = "", pool = "", taint = "", sort = "" } = params;
  const chosen = { search, state, pool, taint, sort };
  const choose = (changes) => go("nodes", { ...params, ...changes }, { replace: true });
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [search, state, pool, taint, sort, at]);
  const { data, error } = useAnswer("nodes", { at, ...chosen, offset, limit: PAGE });
  const order = { sort, onSort: (next) => choose({ sort: next }) };
  const columns = columnsOf(resources, data?.rows ?? []);
  return html`<section aria-label="Table of nodes">
    <div class="controls"><${Search} label="Node name" value=${search}
        onSearch=${(text) => choose({ search: text || undefined })} />
      <${Choice} label="State" value=${state} options=${STATES} onChoose=${(one) => choose({ state: one })} />
      <${Choice} label="Pool" value=${pool} options=${data?.pools ?? []} onChoose=${(one) => choose({ pool: one })} />
      <${Choice} label="Taint" value=${taint} options=${data?.taints ?? []} onChoose=${(one) => choose({ taint: one })} />
      ${data && html`<span class="note">${plural(data.total, "node")}</span>`}
      <a class="csv" href=${tableAddress("nodes", { at, ...chosen })} download>CSV</a></div>
    <${Problem} text=${error} />
    ${!data ? !error && html`<${Loading} />` : !data.total ? html`<${Empty}>${search || state || pool || taint ? "No node is as the filters want it." : "There is no node at this moment."}</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Nodes"><table><thead><tr><${SortHeading} column="name" ...${order}>Node</${SortHeading}>
      ${data.pools.length > 0 && html`<${SortHeading} column="pool" ...${order}>Pool</${SortHeading}>`}
      <${SortHeading} column="pods" isNumber=${true} ...${order}>Pods</${SortHeading}>
      ${columns.map((one) => html`<${SortHeading} key=${one} column=${one} span=${2} ...${order}><${ResourceName} resource=${one} /></${SortHeading}>`)}</tr></thead>
      <tbody>${data.rows.map((row) => html`<tr key=${row.name}>
        <th scope="row" class="name"><a href=${address("nodes", { ...params, node: row.name })}><${Name} text=${row.name} /></a>
          <${NodeBadges} node=${row} taints=${row.taints} /></th>
        ${data.pools.length > 0 && html`<td class="pool">${row.pool}</td>`}
        <td class="number">${count(row.pods)}</td>
        ${columns.map((one) => html`<${UsageCells} key=${one} usage=${row.usage.find((u) => u.resource === one)} />`)}
      </tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}
  </section>`;
}

// What keeps pods away from a node.
function NodeBadges({ node, taints }) {
  return html`${!node.isReady && html` <span class="tag bad">not ready</span>`}${node.isUnschedulable && html` <span class="tag">cordoned</span>`}${taints > 0 && html` <span class="tag">${plural(taints, "taint")}</span>`}`;
}

export function UsageCells({ usage, isAmount = false }) {
  if (!usage || !usage.allocatable) return html`<td colspan="2" class="none">–</td>`;
  const share = usage.used / usage.allocatable;
  return html`<td class="cell-bar"><${Bar} share=${share} /></td>
    <td class="number">${percent(share)}<small>${isAmount ? ` ${amount(usage.resource, usage.used)}` : ""} of ${amount(usage.resource, usage.allocatable)}</small></td>`;
}

function NodePanel({ source, at, name, isOpenedHere, onClose }) {
  const { data, error } = useAnswer("node", { at, name });
  const element = useOpenedFocus(isOpenedHere);
  const press = (event) => {
    if (event.key === "Escape") onClose();
  };
  return html`<aside class="panel" aria-label=${`Node ${name}`} tabindex="-1" ref=${element} onKeyDown=${press}>
    <div class="panel-head"><h2 class="name">${name}</h2><button class="quiet" onClick=${onClose} aria-label="Close the node">✕</button></div>
    <${Problem} text=${error} />
    ${data && !data.isThere && html`<${Empty}>This node does not exist at this moment.</${Empty}>`}
    ${data?.isThere && html`
      ${!data.isReady && html`<p><span class="tag bad">not ready</span> The kubelet of the node does not report that it is ready.</p>`}
      ${data.isUnschedulable && html`<p><span class="tag">cordoned</span> No pod is placed here: spec.unschedulable is true.</p>`}
      <p class="actions">${data.pool && html`<span class="note">Pool ${data.pool}. </span>`}<${ObjectLink} at=${at} kind="Node" name=${name} /></p>
      <table class="usage"><thead><tr><th>Resource</th><th class="wide"><span class="visually-hidden">Share</span></th><th class="number">Requested</th><th class="number">Allocatable</th></tr></thead>
        <tbody>${data.usage.filter((one) => one.allocatable > 0).map((one) => html`<tr key=${one.resource}>
          <th scope="row"><${ResourceName} resource=${one.resource} /></th><td class="wide"><${Bar} share=${one.used / one.allocatable} /></td>
          <td class="number">${amount(one.resource, one.used)}</td><td class="number">${amount(one.resource, one.allocatable)}</td></tr>`)}</tbody></table>
      ${source.hasModel && !isPast(at) && html`<p class="actions" role="group" aria-label="What if"><span class="note">What if: </span>
        <a href=${whatIfAddress(at, { drain: name })}>drain it</a> <a href=${whatIfAddress(at, { remove: name })}>it is gone</a>
        <a href=${whatIfAddress(at, { add: `${name}=1` })}>one more like it</a></p>`}
      <h3>Taints</h3>${data.taints.length ? html`<ul class="tags">${data.taints.map((one) => html`<li key=${one} class="tag">${one}</li>`)}</ul>` : html`<p class="note">none</p>`}
      <details><summary>Labels (${count(Object.keys(data.labels).length)})</summary>
        <dl class="labels">${Object.entries(data.labels).map(([key, value]) => html`<div key=${key}><dt>${key}</dt><dd>${value}</dd></div>`)}</dl></details>
      <h3>Pods</h3><${PodTable} at=${at} filter=${{ node: name }} show=${[...timesOf(source), "requests"]} empty="No pod is on this node." />
      ${source.hasModel && !isPast(at) && html`<${Rejections} source=${source} at=${at} node=${name} />`}`}
  </aside>`;
}

// What the node rejected up to this moment. Each attempt is made again for it, so it waits for a click.
function Rejections({ source, at, node }) {
  const [isOpen, setOpen] = useState(source.kind === "cluster");
  const state = useComputed(isOpen ? "rejections" : null, { at, node });
  const { data } = state;
  const isRun = source.kind === "run";
  const title = isRun ? "What it rejected" : "What it would reject";
  return html`<section aria-label=${title} tabindex="-1"><h3>${title}</h3>
    ${!isOpen && html`<button onClick=${() => setOpen(true)}>Show ${title.toLowerCase()}</button> <span class="note">${isRun ? "makes each attempt of the run again" : "tries the waiting pods in a copy of the scheduler"}</span>`}
    <${Computing} state=${state} text=${!isRun ? "The waiting pods are tried…" : "Each attempt is made again…"} />
    ${data && !state.error && html`<p class="note">${data.isNow
        ? `Of ${plural(data.attempts, "workload")} with waiting pods, it would reject ${count(data.rejecting)} now.`
        : `${count(data.rejecting)} of ${plural(data.attempts, "attempt")} so far. The newest cause is first.`}</p>
      ${data.rows.length > 0 && html`<ul class="cards">${data.rows.map((row) => html`<li key=${`${row.plugin} ${row.reason} ${row.code}`}>
        <p class="name"><b>${row.reason || row.code}</b> <span class="plugin">${row.plugin}</span></p>
        <p class="note">${data.isNow ? plural(row.pods, "pod") : `${plural(row.attempts, "attempt")} at ${plural(row.pods, "pod")}`}, ${data.isNow ? "for example" : "the last at"}
          ${" "}${!data.isNow && `${time(row.seconds)}: `}<a href=${address("pods", { at, name: row.pod, attempt: row.attempt || undefined, node: row.attempt ? node : undefined })}><${Name} text=${row.pod} /></a></p></li>`)}</ul>`}`}
  </section>`;
}
