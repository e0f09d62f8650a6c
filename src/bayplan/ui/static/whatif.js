// What-if: changes of the nodes and workloads at this moment, and what the engine says would happen.
// The changes are in the address, so that a link has them.
import { Computing, isPast, useComputed } from "./computed.js";
import { live } from "./live.js";
import {
  Bar, Button, Empty, Fold, Name, NodeInput, Pager, Problem, ResourceName, address, amount, count, go, html, percent, plural, tableAddress,
  useAnswer, useEffect, useFew, useState,
} from "./lib.js";
import { ObjectLink } from "./object.js";
import { PACKED_MAX, pack, unpack } from "./texts.js";

const PAGE = 50;
const REASONS_SHOWN = 10;
const OF_NODES = { drain: "Drain a node", remove: "Remove a node", cordon: "Cordon a node", uncordon: "Uncordon a node" };
const OF_TEXTS = { apply: "Apply objects", config: "Use another configuration" };
const VERBS = { ...OF_NODES, add: "Add nodes", scale: "Scale a workload", ...OF_TEXTS };
const HINTS = {
  apply: "Objects as for kubectl apply: YAML or JSON",
  config: "A KubeSchedulerConfiguration, which the pods that wait get in place of the present one",
};
const KEYS = [...Object.keys(VERBS), "force"];

const namesIn = (text) => (text ?? "").split(",").filter(Boolean);
const changesOf = (params) => Object.fromEntries(KEYS.map((key) => [key, params[key]]));
// The pairs NAME=NUMBER of a list, with another one in place of that with its name.
const withPair = (text, name, number) => [...namesIn(text).filter((one) => one.slice(0, one.lastIndexOf("=")) !== name), `${name}=${number}`].join(",");

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
      : html`<${Empty}>No change is chosen. Drain a node, add nodes${live.source ? "" : ", scale a workload"} or apply a file to see which pods move.</${Empty}>`}`;
}

function PresentOnly({ params }) {
  return html`<${Empty}>The engine answers about the present of a running scheduler.
    <a href=${address("whatif", { ...params, at: undefined })}>Go to the present</a></${Empty}>`;
}

function changeRows(params) {
  const listed = (verb, text) => namesIn(params[verb]).map((one) => ({
    text: text(one), without: { [verb]: namesIn(params[verb]).filter((other) => other !== one).join(",") || undefined },
  }));
  const added = (pair) => {
    const at = pair.lastIndexOf("=");
    return `add ${plural(Number(pair.slice(at + 1)), "node")} like ${pair.slice(0, at)}`;
  };
  const texts = Object.keys(OF_TEXTS).filter((verb) => params[verb]);
  return [
    ...listed("add", added),
    ...Object.keys(OF_NODES).flatMap((verb) => listed(verb, (name) => `${verb} ${name}`)),
    ...listed("scale", (scaling) => `scale ${scaling.replace("=", " to ")}`),
    ...texts.map((verb) => ({ text: OF_TEXTS[verb].toLowerCase(), without: { [verb]: undefined } })),
  ];
}

// ---- one more change --------------------------------------------------------------------------

function NewChange({ at, params, onChange }) {
  const [verb, setVerb] = useState(Object.keys(OF_TEXTS).find((one) => params[one]) ?? "drain");
  // A scheduler does not read the objects that have a number of replicas.
  const verbs = Object.entries(VERBS).filter(([name]) => name !== "scale" || !live.source);
  const Fields = verb in OF_TEXTS ? TextFields : verb in OF_NODES ? NodeFields : PairFields;
  return html`<div class="panel-like"><div class="controls"><label>Change <select value=${verb} onChange=${(event) => setVerb(event.currentTarget.value)}>
      ${verbs.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select></label></div>
    <${Fields} key=${verb} verb=${verb} at=${at} text=${params[verb]} onText=${(text) => onChange({ [verb]: text || undefined })} /></div>`;
}

function ChangeForm({ isReady, onSubmit, children }) {
  const submit = (event) => {
    event.preventDefault();
    if (isReady) onSubmit();
  };
  return html`<form class="controls" onSubmit=${submit}>${children}<${Button} type="submit" isOff=${!isReady}>Add the change</${Button}></form>`;
}

function NodeFields({ at, text, onText }) {
  const [node, setNode] = useState("");
  const submit = () => {
    onText([...new Set([...namesIn(text), node])].join(","));
    setNode("");
  };
  return html`<${ChangeForm} isReady=${node !== ""} onSubmit=${submit}>
    <${NodeInput} at=${at} value=${node} onText=${setNode} /></${ChangeForm}>`;
}

// A number for a kind of nodes that are added, or for a workload that is scaled.
function PairFields({ verb, at, text, onText }) {
  const isScale = verb === "scale";
  const [name, setName] = useState("");
  const [number, setNumber] = useState("1");
  const isReady = name !== "" && number !== "" && (isScale || Number(number) > 0);
  const Field = isScale ? WorkloadField : KindField;
  return html`<${ChangeForm} isReady=${isReady} onSubmit=${() => onText(withPair(text, name, number))}>
    <${Field} at=${at} value=${name} onValue=${setName} />
    <label>${isScale ? "Replicas" : "Nodes"} <input type="number" class="short" min=${isScale ? 0 : 1} max=${isScale ? 20000 : 2000}
      value=${number} onInput=${(event) => setNumber(event.currentTarget.value)} /></label></${ChangeForm}>`;
}

function KindField({ at, value, onValue }) {
  const { data, error } = useAnswer("kinds", { at });
  const entries = (data?.kinds ?? []).map((kind) => [kind.template, `${plural(kind.nodes, "node")} like ${kind.template}${kind.text && ` (${kind.text})`}: ${offerText(kind.usage)}`]);
  return html`<${ChoiceOfPairs} label="Kind of node" entries=${entries} value=${value} onValue=${onValue}
    empty=${data ? "There is no node." : error || "Reading the nodes…"} />`;
}

const offerText = (usage) => usage.filter((one) => one.allocatable && (["cpu", "memory"].includes(one.resource) || one.resource.includes("/")))
  .map((one) => `${amount(one.resource, one.allocatable)} ${one.resource}`).join(", ");

function WorkloadField({ at, value, onValue }) {
  const { data, error } = useComputed("workloads", { at, limit: 500 });
  const entries = (data?.rows ?? []).map((row) => {
    const [namespace, name] = row.name.split("/");
    return [`${namespace}/${row.kind}/${name}`, `${row.kind} ${row.name} (${plural(row.pods, "pod")})`];
  });
  return html`<${ChoiceOfPairs} label="Workload" entries=${entries} value=${value} onValue=${onValue}
    empty=${data ? "There is no Deployment, ReplicaSet or StatefulSet." : error || "Reading the workloads…"} />`;
}

function ChoiceOfPairs({ label, entries, value, onValue, empty }) {
  const keys = entries.map(([key]) => key);
  useEffect(() => {
    if (keys.length && !keys.includes(value)) onValue(keys[0]);
  }, [keys.join()]);
  if (!entries.length) return html`<span class="note" role="status">${empty}</span>`;
  return html`<label>${label} <select value=${value} onChange=${(event) => onValue(event.currentTarget.value)}>
    ${entries.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select></label>`;
}

// Objects or a configuration, pasted or from a file. The address has the text, so it is bounded.
function TextFields({ verb, text: packed, onText }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (packed) unpack(packed).then(setText, () => setText(""));
  }, [packed]);
  const submit = async () => {
    const next = await pack(text);
    const isTooLong = next.length > PACKED_MAX;
    setProblem(isTooLong ? `The text is too long for an address: ${count(next.length)} characters compressed, at most ${count(PACKED_MAX)}. Use bayplan whatif.` : "");
    if (!isTooLong) onText(next);
  };
  return html`<${ChangeForm} isReady=${text.trim() !== ""} onSubmit=${submit}>
    <label class="whole">${HINTS[verb]}<textarea rows="8" spellcheck=${false} value=${text} onInput=${(event) => setText(event.currentTarget.value)} /></label>
    <label>File <input type="file" accept=".yaml,.yml,.json" onChange=${async (event) => setText(await event.currentTarget.files[0].text())} /></label></${ChangeForm}>
    <${Problem} text=${problem} />`;
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
      <div class="controls"><a class="csv" href=${tableAddress("whatif", { at, ...changes, snapshot })} download>CSV of all pods</a></div>
      <${Affected} data=${data} at=${at} />
      <h2>Before and after</h2><${BeforeAfter} data=${data} />
      <${Fold} text=${`${plural(data.total, "pod")} ${data.total === 1 ? "gets" : "get"} a node`} isOpen=${!lossesOf(data).length}>
        <${Moves} data=${data} at=${at} />
        <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} /></${Fold}>
      <${WaitedBefore} data=${data} at=${at} />
      ${data.notes.length > 0 && html`<h2>Notes</h2><ul class="reasons">${data.notes.map((note) => html`<li key=${note}>${note}</li>`)}</ul>`}
    </section>`}`;
}

const total = (rows) => rows.reduce((sum, row) => sum + row.pods, 0);

// By reason: the pods that are newly without a node, that stay where they are, and that go.
function outcomesOf(data) {
  const of = (outcome) => data.reasons.filter((row) => row.outcome === outcome);
  const without = of("left over").map((row) => ({ ...row, pods: row.pods - row.waitedBefore })).filter((row) => row.pods);
  const gone = of("gone");
  return { without, blocked: of("not evicted"), gone, lost: gone.filter((row) => row.reason !== "scaled down") };
}

// What pods lose by the changes, in words.
function lossesOf(data) {
  const { without, blocked, lost } = outcomesOf(data);
  return [
    without.length && `${plural(total(without), "pod")} would be left without a node`,
    blocked.length && `${plural(total(blocked), "pod")} cannot be evicted`,
    lost.length && `${plural(total(lost), "pod")} would not be created again`,
  ].filter(Boolean);
}

function Summary({ data }) {
  const { without, blocked, gone } = outcomesOf(data);
  const losses = lossesOf(data);
  const verdict = losses.length ? losses.join(", ") : data.total ? "no pod is left without a node by it" : "no pod moves";
  return html`<p class=${`verdict ${losses.length ? "bad" : "good"}`}><b>${data.text}</b>: ${verdict}.</p>
    <ul class="figures">
      <li class=${without.length ? "alert" : ""}><b>${count(total(without))}</b><span>newly without a node</span></li>
      <li class=${blocked.length ? "alert" : ""}><b>${count(total(blocked))}</b><span>not evicted</span></li>
      <li><b>${count(total(gone))}</b><span>${total(gone) === 1 ? "pod goes" : "pods go"} for good</span></li>
      <li><b>${count(data.total)}</b><span>${data.total === 1 ? "pod gets" : "pods get"} a node</span></li>
    </ul>`;
}

// The pods that lose something by the changes come first.
function Affected({ data, at }) {
  const { without, blocked, gone } = outcomesOf(data);
  return html`<${Outcome} title="Newly without a node" rows=${without} at=${at} />
    <${Outcome} title="Not evicted" rows=${blocked} at=${at} />
    <${Outcome} title="Not created again" rows=${gone} at=${at} />`;
}

function WaitedBefore({ data, at }) {
  const rows = data.reasons.filter((row) => row.waitedBefore).map((row) => ({ ...row, pods: row.waitedBefore, examples: row.examples.slice(row.pods - row.waitedBefore) }));
  if (!rows.length) return null;
  return html`<${Fold} text=${`${plural(total(rows), "pod")} waited before, too`}><${Outcome} rows=${rows} at=${at} /></${Fold}>`;
}

function Outcome({ title, rows, at }) {
  const [visible, button] = useFew(rows, REASONS_SHOWN, "reasons");
  if (!rows.length) return null;
  return html`${title && html`<h2>${title}</h2>`}<ul class="cards">${visible.map((row) => html`<li key=${row.reason + row.budgets.join()}>
    <p><b>${plural(row.pods, "pod")}</b> ${row.budgets.map((name) => html`<span key=${name} class="tag">budget <${ObjectLink} at=${at} kind="PodDisruptionBudget" name=${name}><${Name} text=${name} /></${ObjectLink}></span> `)}</p>
    <p class="name">${row.reason || "The pod group waits."}</p><${PodLinks} names=${row.examples.slice(0, row.pods)} pods=${row.pods} at=${at} /></li>`)}</ul>${button}`;
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
  // Preemption makes a part of the room, so it is not free.
  const victims = (name) => [before, after].map((state) => state.headroomVictims[name] ?? 0);
  const most = (number) => `${count(number)}${number >= data.headroomLimit ? "+" : ""}`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Before and after"><table class="compare"><thead><tr><th><span class="visually-hidden">Number</span></th><th class="number">Before</th><th class="number">After</th></tr></thead>
    <tbody>${numbers.map(([key, label]) => html`<tr key=${key}><th scope="row">${label}</th><td class="number">${count(before[key])}</td>
        <td class=${`number ${before[key] === after[key] ? "" : "differs"}`}>${count(after[key])}</td></tr>`)}
      ${visible.map((one) => html`<tr key=${one.resource}><th scope="row"><${ResourceName} resource=${one.resource} /> requested</th>
        <td class="number"><${Share} usage=${before.usage.find((old) => old.resource === one.resource)} /></td>
        <td class="number"><${Share} usage=${one} /></td></tr>`)}
      ${Object.entries(before.headroom).map(([name, number]) => html`<tr key=${name}><th scope="row" class="name">room for more of ${name}</th>
        <td class="number">${most(number)}</td><td class=${`number ${number === after.headroom[name] ? "" : "differs"}`}>${most(after.headroom[name] ?? 0)}</td></tr>
        ${victims(name).some(Boolean) && html`<tr key=${`${name} victims`}><th scope="row" class="name">pods evicted for them</th>${victims(name).map((number) => html`<td class="number">${count(number)}</td>`)}</tr>`}`)}
    </tbody></table></div>`;
}

function Share({ usage }) {
  if (!usage || !usage.allocatable) return html`–`;
  const share = usage.used / usage.allocatable;
  return html`<b>${percent(share)}</b> <${Bar} share=${share} /><small>${amount(usage.resource, usage.used)} of ${amount(usage.resource, usage.allocatable)}</small>`;
}

function PodLinks({ names, pods, at }) {
  if (!names.length) return null;
  return html`<p class="note">${names.map((name, index) => html`${index > 0 && ", "}<a key=${name} href=${address("pods", { at, name })}><${Name} text=${name} /></a>`)}${pods > names.length && ` and ${count(pods - names.length)} more`}</p>`;
}

function Moves({ data, at }) {
  if (!data.total) return html`<${Empty}>No pod moves.</${Empty}>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Pods that get a node"><table class="pods"><thead><tr><th>Pod</th><th>From</th><th>To</th></tr></thead>
    <tbody>${data.moves.map((row, index) => html`<tr key=${`${row.pod} ${index}`}><th scope="row" class="name"><${Name} text=${row.pod} /></th>
      <td class="name">${row.source ? html`<a href=${address("nodes", { at, node: row.source })}><${Name} text=${row.source} /></a>` : html`<span class="note">${row.waited ? "waited" : "new"}</span>`}</td>
      <td class="name"><${Name} text=${row.target} /></td></tr>`)}</tbody></table></div>`;
}
