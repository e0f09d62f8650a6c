// What-if: changes of the nodes and workloads at this moment, and what the engine says would happen.
// The changes are in the address, so that a link has them.
import { Computing, isPast, useComputed } from "./computed.js";
import { live } from "./live.js";
import {
  Bar, Button, Empty, Name, Pager, Problem, ResourceName, address, amount, count, go, html, percent, plural, tableAddress,
  useAnswer, useEffect, useFew, useState,
} from "./lib.js";

const PAGE = 50;
const REASONS_SHOWN = 10;
const VERBS = [
  ["drain", "Drain a node"],
  ["remove", "Remove a node"],
  ["cordon", "Cordon a node"],
  ["uncordon", "Uncordon a node"],
  ["add", "Add nodes like one"],
  ["scale", "Scale a workload"],
];
const WORDS = { drain: "drain", remove: "remove", cordon: "cordon", uncordon: "uncordon" };
const KEYS = ["drain", "remove", "cordon", "uncordon", "add", "template", "scale", "force"];

const namesIn = (text) => (text ?? "").split(",").filter(Boolean);
const changesOf = (params) => Object.fromEntries(KEYS.map((key) => [key, params[key]]));

// The address of this view with one more change, for links of other views.
export function whatIfAddress(at, changes) {
  return address("whatif", { at, ...changes });
}

export function WhatIf({ source, params }) {
  const { at } = params;
  const set = (changes) => go("whatif", { ...params, ...changes }, { replace: true });
  const rows = changeRows(params);
  if (isPast(at)) return html`<h1>What if</h1><${PresentOnly} params=${params} />`;
  return html`<h1>What if</h1>
    <p class="note">The changes happen at once${source.kind === "run" ? ", at the moment of the time bar" : ""}: capacity comes first, drains come last. The changes are only tried.</p>
    <div role="group" aria-label="Choice of changes" tabindex="-1"><${NewChange} at=${at} params=${params} onChange=${set} />
    ${rows.length > 0 && html`<ul class="tags changes" aria-label="Changes">${rows.map((row) => html`<li key=${row.text} class="tag"><${Name} text=${row.text} />
      <button class="quiet" aria-label=${`Leave out: ${row.text}`} onClick=${() => set(row.without)}>✕</button></li>`)}</ul>
    ${namesIn(params.drain).length > 0 && html`<label class="check"><input type="checkbox" checked=${params.force === "1"}
      onChange=${(event) => set({ force: event.currentTarget.checked ? 1 : undefined })} /> also evict pods without a controller (they do not come back)</label>`}`}</div>
    ${rows.length ? html`<${Result} at=${at} changes=${changesOf(params)} />`
      : html`<${Empty}>No change is chosen. Drain a node${live.source ? " or add nodes" : ", add nodes, or scale a workload"} to see which pods move.</${Empty}>`}`;
}

function PresentOnly({ params }) {
  return html`<${Empty}>The engine answers about the present of a running scheduler.
    <a href=${address("whatif", { ...params, at: undefined })}>Go to the present</a></${Empty}>`;
}

function changeRows(params) {
  const rows = Object.keys(WORDS).flatMap((verb) => namesIn(params[verb]).map((name) => ({
    text: `${WORDS[verb]} ${name}`,
    without: { [verb]: namesIn(params[verb]).filter((one) => one !== name).join(",") || undefined },
  })));
  if (params.add && params.template) {
    rows.unshift({
      text: `add ${plural(Number(params.add), "node")} like ${params.template}`,
      without: { add: undefined, template: undefined },
    });
  }
  return rows.concat(namesIn(params.scale).map((scaling) => ({
    text: `scale ${scaling.replace("=", " to ")}`,
    without: { scale: namesIn(params.scale).filter((one) => one !== scaling).join(",") || undefined },
  })));
}

// ---- one more change --------------------------------------------------------------------------

function NewChange({ at, params, onChange }) {
  const [verb, setVerb] = useState("drain");
  const [node, setNode] = useState("");
  const [number, setNumber] = useState("1");
  const [workload, setWorkload] = useState("");
  const isScale = verb === "scale";
  // A scheduler does not read the objects that have a number of replicas.
  const verbs = live.source ? VERBS.filter(([name]) => name !== "scale") : VERBS;
  const isReady = isScale ? workload && number !== "" : node && (verb !== "add" || Number(number) > 0);
  const submit = (event) => {
    event.preventDefault();
    if (verb === "add") onChange({ add: number, template: node });
    else if (isScale) {
      const scalings = namesIn(params.scale).filter((one) => one.split("=")[0] !== workload);
      onChange({ scale: [...scalings, `${workload}=${number}`].join(",") });
    } else onChange({ [verb]: [...new Set([...namesIn(params[verb]), node])].join(",") });
    setNode("");
  };
  return html`<form class="controls panel-like" onSubmit=${submit}>
    <label>Change <select value=${verb} onChange=${(event) => setVerb(event.currentTarget.value)}>
      ${verbs.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select></label>
    ${isScale ? html`<${WorkloadField} at=${at} value=${workload} onValue=${setWorkload} />`
      : html`<${NodeField} at=${at} value=${node} onValue=${setNode} />`}
    ${(isScale || verb === "add") && html`<label>${isScale ? "Replicas" : "Nodes"} <input type="number" class="short" min=${isScale ? 0 : 1} max=${isScale ? 20000 : 2000}
      value=${number} onInput=${(event) => setNumber(event.currentTarget.value)} /></label>`}
    <${Button} type="submit" isOff=${!isReady}>Add the change</${Button}>
  </form>`;
}

function NodeField({ at, value, onValue }) {
  const { data } = useAnswer("nodes", { at, search: value, limit: 12 });
  return html`<label>Node <input list="whatif-nodes" value=${value} placeholder="name" onInput=${(event) => onValue(event.currentTarget.value)} /></label>
    <datalist id="whatif-nodes">${(data?.rows ?? []).map((row) => html`<option key=${row.name} value=${row.name} />`)}</datalist>`;
}

function WorkloadField({ at, value, onValue }) {
  const state = useComputed("workloads", { at, limit: 500 });
  const rows = state.data?.rows ?? [];
  const keys = rows.map((row) => {
    const [namespace, name] = row.name.split("/");
    return `${namespace}/${row.kind}/${name}`;
  });
  useEffect(() => {
    if (keys.length && !keys.includes(value)) onValue(keys[0]);
  }, [keys.join()]);
  if (!state.data) return html`<span class="note" role="status">${state.error || "Reading the workloads…"}</span>`;
  if (!rows.length) return html`<span class="note">There is no Deployment, ReplicaSet or StatefulSet.</span>`;
  return html`<label>Workload <select value=${value} onChange=${(event) => onValue(event.currentTarget.value)}>
    ${rows.map((row, index) => html`<option key=${keys[index]} value=${keys[index]}>${row.kind} ${row.name} (${plural(row.pods, "pod")})</option>`)}</select></label>`;
}

// ---- the answer -------------------------------------------------------------------------------

function Result({ at, changes }) {
  const [offset, setOffset] = useState(0);
  const key = JSON.stringify(changes);
  useEffect(() => setOffset(0), [key, at]);
  const state = useComputed("whatif", { at, ...changes, offset, limit: PAGE });
  const { data, snapshot } = state;
  return html`<${Computing} state=${state} text="The engine places the pods…" />
    ${data && !state.error && html`<section aria-label="Answer" class=${state.isComputing ? "stale" : ""}>
      <${Summary} data=${data} />
      <div class="columns">
        <section><h2>Before and after</h2><${BeforeAfter} data=${data} /></section>
        <section><${LeftOver} rows=${withOutcome(data, "left over")} at=${at} /><${Blocked} rows=${withOutcome(data, "not evicted")} at=${at} /><${Gone} rows=${withOutcome(data, "gone")} at=${at} /></section>
      </div>
      <div class="section-head"><h2>Pods that get a node</h2><a class="csv" href=${tableAddress("whatif", { at, ...changes, snapshot })} download>CSV of all pods</a></div>
      <${Moves} data=${data} at=${at} />
      <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />
      ${data.notes.length > 0 && html`<h2>Notes</h2><ul class="reasons">${data.notes.map((note) => html`<li key=${note}>${note}</li>`)}</ul>`}
    </section>`}`;
}

const withOutcome = (data, outcome) => data.reasons.filter((row) => row.outcome === outcome);
const total = (rows) => rows.reduce((sum, row) => sum + row.pods, 0);

function Summary({ data }) {
  const [leftOver, blocked, gone] = ["left over", "not evicted", "gone"].map((outcome) => withOutcome(data, outcome));
  const without = total(leftOver) - leftOver.reduce((sum, row) => sum + row.waitedBefore, 0);
  const losses = gone.filter((row) => row.reason !== "scaled down");
  const problems = [
    blocked.length && `${plural(total(blocked), "pod")} cannot be evicted`,
    without && `${plural(without, "pod")} would be left without a node`,
    losses.length && `${plural(total(losses), "pod")} would not be created again`,
  ].filter(Boolean);
  const verdict = problems.length ? problems.join(", ") : data.total ? "no pod is left without a node by it" : "no pod moves";
  return html`<p class=${`verdict ${problems.length ? "bad" : "good"}`}><b>${data.text}</b>: ${verdict}.</p>
    <ul class="figures">
      <li><b>${count(data.total)}</b><span>${data.total === 1 ? "pod gets" : "pods get"} a node</span></li>
      <li class=${without ? "alert" : ""}><b>${count(without)}</b><span>newly without a node</span></li>
      <li class=${blocked.length ? "alert" : ""}><b>${count(total(blocked))}</b><span>not evicted</span></li>
      <li><b>${count(total(gone))}</b><span>${total(gone) === 1 ? "pod goes" : "pods go"} for good</span></li>
    </ul>`;
}

// The numbers of a cluster as the table has them: cpu and memory come first.
function stateOf(state) {
  const first = { cpu: 0, memory: 1 };
  const usage = Object.entries(state.utilization).map(([resource, one]) => ({ resource, used: one.requested, allocatable: one.allocatable }));
  usage.sort((one, other) => (first[one.resource] ?? 2) - (first[other.resource] ?? 2) || (one.resource < other.resource ? -1 : 1));
  return { ...state, cordoned: state.nodes - state.schedulableNodes, usage };
}

function BeforeAfter({ data }) {
  const [before, after] = [data.before, data.after].map(stateOf);
  const numbers = [["nodes", "nodes"], ["cordoned", "cordoned nodes"], ["pods", "pods"], ["waiting", "pods waiting"]]
    .filter(([key]) => before[key] || after[key] || key === "nodes");
  const visible = after.usage.filter((one) => one.used || before.usage.some((old) => old.resource === one.resource && old.used));
  const most = (number) => `${count(number)}${number >= data.headroomLimit ? "+" : ""}`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Before and after"><table class="compare"><thead><tr><th><span class="visually-hidden">Number</span></th><th class="number">Before</th><th class="number">After</th></tr></thead>
    <tbody>${numbers.map(([key, label]) => html`<tr key=${key}><th scope="row">${label}</th><td class="number">${count(before[key])}</td>
        <td class=${`number ${before[key] === after[key] ? "" : "differs"}`}>${count(after[key])}</td></tr>`)}
      ${visible.map((one) => html`<tr key=${one.resource}><th scope="row"><${ResourceName} resource=${one.resource} /> requested</th>
        <td class="number"><${Share} usage=${before.usage.find((old) => old.resource === one.resource)} /></td>
        <td class="number"><${Share} usage=${one} /></td></tr>`)}
      ${Object.entries(before.headroom).map(([name, number]) => html`<tr key=${name}><th scope="row" class="name">room for more of ${name}</th>
        <td class="number">${most(number)}</td><td class=${`number ${number === after.headroom[name] ? "" : "differs"}`}>${most(after.headroom[name] ?? 0)}</td></tr>`)}
    </tbody></table></div>`;
}

function Share({ usage }) {
  if (!usage || !usage.allocatable) return html`–`;
  const share = usage.used / usage.allocatable;
  return html`<b>${percent(share)}</b> <${Bar} share=${share} /><small>${amount(usage.resource, usage.used)} of ${amount(usage.resource, usage.allocatable)}</small>`;
}

function PodLinks({ names, pods, at }) {
  return html`<p class="note">${names.map((name, index) => html`${index > 0 && ", "}<a key=${name} href=${address("pods", { at, name })}><${Name} text=${name} /></a>`)}${pods > names.length && ` and ${count(pods - names.length)} more`}</p>`;
}

function LeftOver({ rows, at }) {
  // Those that waited anyway come last.
  const isOld = (row) => Number(row.waitedBefore === row.pods);
  const [visible, button] = useFew(rows.slice().sort((one, other) => isOld(one) - isOld(other)), REASONS_SHOWN, "reasons");
  if (!rows.length) return html`<h2>Left over</h2><${Empty}>No pod waits after the changes.</${Empty}>`;
  return html`<h2>Left over</h2><ul class="cards">${visible.map((row) => html`<li key=${row.reason}>
    <p><b>${plural(row.pods, "pod")}</b>${row.waitedBefore > 0 && html` <span class="note">${row.waitedBefore === row.pods ? "waited before, too" : `${count(row.waitedBefore)} waited before, too`}</span>`}</p>
    <p class="name">${row.reason || "The pod group waits."}</p><${PodLinks} names=${row.examples} pods=${row.pods} at=${at} /></li>`)}</ul>${button}`;
}

function Blocked({ rows, at }) {
  if (!rows.length) return null;
  return html`<h2>Not evicted</h2><ul class="cards">${rows.map((row) => html`<li key=${row.reason + row.budgets.join()}>
    <p><b>${plural(row.pods, "pod")}</b> ${row.budgets.map((name) => html`<span key=${name} class="tag">budget <${Name} text=${name} /></span> `)}</p>
    <p class="name">${row.reason}</p><${PodLinks} names=${row.examples} pods=${row.pods} at=${at} /></li>`)}</ul>`;
}

function Gone({ rows, at }) {
  if (!rows.length) return null;
  return html`<h2>Not created again</h2><ul class="cards">${rows.map((row) => html`<li key=${row.reason}>
    <p><b>${plural(row.pods, "pod")}</b> ${row.reason}</p><${PodLinks} names=${row.examples} pods=${row.pods} at=${at} /></li>`)}</ul>`;
}

function Moves({ data, at }) {
  if (!data.total) return html`<${Empty}>No pod moves.</${Empty}>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Pods that get a node"><table class="pods"><thead><tr><th>Pod</th><th>From</th><th>To</th></tr></thead>
    <tbody>${data.moves.map((row, index) => html`<tr key=${`${row.pod} ${index}`}><th scope="row" class="name"><${Name} text=${row.pod} /></th>
      <td class="name">${row.source ? html`<a href=${address("nodes", { at, node: row.source })}><${Name} text=${row.source} /></a>` : html`<span class="note">${row.waited ? "waited" : "new"}</span>`}</td>
      <td class="name"><${Name} text=${row.target} /></td></tr>`)}</tbody></table></div>`;
}
