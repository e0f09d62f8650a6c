// Overview: numbers at this moment, curves over the run, and what changed last.
import { Chart } from "./chart.js";
import { useHeld } from "./focus.js";
import { ZoomControls, useZoom } from "./zoom.js";
import {
  Bar, Empty, Loading, Name, Problem, ResourceName, address, amount, count, go, html, percent, plural, time, useAnswer, useMemo,
  useRef,
} from "./lib.js";
import { HeatMap } from "./heatmap.js";
import { causeTitle, sinceText } from "./causes.js";
import { useComputed } from "./computed.js";
import { FindFixes, Fix, areFixesSearched } from "./explanation.js";
import { isWorthLine } from "./nodes.js";

const POINTS = 400;
const RESOURCES_MAX = 6;
const CAUSES_MAX = 5;
const RATE_SECONDS = 1;
const RATES_MIN = 20;
const KINDS = {
  unschedulable: "unschedulable",
  gated: "gated",
  error: "failed with an error",
  permit: "at Permit",
  group: "in a group that waits",
  new: "not tried yet",
  fits: "that fit now",
};
export const WHAT = {
  pod_created: "created",
  pod_bound: "bound",
  pod_ended: "ended",
  pod_deleted: "deleted",
  pod_preempted: "preempted",
  pod_resized: "resized",
  node_added: "added",
  node_changed: "changed",
  node_removed: "removed",
  scheduled: "scheduled",
  unschedulable: "unschedulable",
  waiting_at_permit: "waits at Permit",
  error: "failed with an error",
  gated: "gated",
  group: "group attempt",
};

const isLive = (source) => source.kind === "live";

export function Overview({ source, params }) {
  const { at, axis } = params;
  const { data, error } = useAnswer("overview", { at });
  if (error) return html`<${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  return html`<h1>Overview</h1>
    <${Figures} source=${source} data=${data} at=${at} />
    ${source.totals?.gone && data.change === source.lastChange && html`<p>${source.totals.gone}.</p>`}
    ${data.waiting > 0 && html`<${TopCauses} source=${source} params=${params} total=${data.waiting} />`}
    <div class="columns">
      <section><h2>Requested resources</h2><${Utilization} usage=${data.usage} hasNodes=${data.nodes > 0} />
        ${source.hasDecisions && Object.values(data.queues).some(Boolean) && html`<h2>Queues</h2><${Queues} queues=${data.queues} />`}</section>
      <section>${source.resources.length > 0 && html`<h2><a href=${address("nodes", { at })}>Nodes</a></h2><${HeatMap} at=${at} color=${source.resources[0]} groupBy=""
          label=${`Requested share of ${source.resources[0]}`} onSelect=${(node) => go("nodes", { at, node })} />`}
        ${source.hasDecisions && html`<h2>Last changes</h2><${Recent} changes=${data.recent} at=${at} />`}</section>
    </div>
    ${source.hasDecisions && (isLive(source) || source.lastChange > 0) && html`<${Curves} source=${source} params=${params} data=${data}
      byTime=${source.endSeconds > 0 && axis !== "changes"} />`}`;
}

// Why most pods wait, since when, and what ends it. The causes are there at once, the fixes once they were tried.
function TopCauses({ source, params, total }) {
  const { at } = params;
  const { data } = useAnswer("waiting", { at, limit: CAUSES_MAX });
  const isSearched = areFixesSearched(source, params);
  const state = useComputed(isSearched ? "fixes" : null, { at });
  if (!data) return null;
  return html`<section aria-label="Why pods wait"><h2><a href=${address("waiting", { at })}>Why pods wait</a></h2>
    <ol class="top-causes">${data.groups.map((group) => html`<li key=${group.number}>
      <div class="cause-count"><b>${count(group.pods)}</b><span>${group.pods === 1 ? "pod" : "pods"}</span><${Bar} share=${group.pods / total} /></div>
      <div><${TopCause} source=${source} group=${group} known=${state.data?.groups[group.number]} at=${at} /></div>
      <div><${TopFix} group=${group} known=${state.data?.groups[group.number]} state=${isSearched ? state : null} at=${at} /></div></li>`)}</ol>
    ${data.causeCount > data.groups.length && html`<p class="note"><a href=${address("waiting", { at })}>${plural(data.causeCount - data.groups.length, "cause")} more</a></p>`}
    ${isSearched ? html`<${Problem} text=${state.error} />` : source.hasModel && html`<${FindFixes} source=${source} view="overview" params=${params} />`}</section>`;
}

function TopCause({ source, group, known, at }) {
  const since = sinceText(source, group);
  const isOfWorkload = known && known.workload !== `Pod ${group.example}`;
  return html`<a href=${address("waiting", { at, cause: group.number })}>${causeTitle(group)}</a>
    ${known && known.cause !== group.words && html`<p class="note name">${isOfWorkload && html`${known.pods < group.pods && "Most in one workload: "}<${Name} text=${known.workload} />: `}${known.cause}</p>`}
    <p class="note name">${since && html`Since <b>${since}</b>, `}for example <a href=${address("pods", { at, name: group.example })}><${Name} text=${group.example} /></a></p>`;
}

function TopFix({ group, known, state, at }) {
  if (group.cause.kind === "fits") return html`<p class="note">No fix is needed.</p>`;
  if (known?.fix) return html`<${Fix} fix=${known.fix} at=${at} isShort=${true} />`;
  if (!state || state.error) return null;
  if (!state.data) return html`<p class="loading" role="status">Fixes are tried in the engine…</p>`;
  return html`<p class="note">${!known ? "No fix is needed: the pods get a node as things are." : known.isSearched ? "No fix was found." : "No fix was tried."}</p>`;
}

function Figures({ source, data, at }) {
  const kinds = Object.entries(data.waitingKinds).map(([kind, pods]) => `${count(pods)} ${KINDS[kind] ?? kind}`);
  return html`<ul class="figures">
    <li><b>${count(data.placed)}</b><span>${data.placed === 1 ? "pod" : "pods"} on nodes</span></li>
    <li class=${data.waiting ? "alert" : ""}><a href=${address("waiting", { at })}><b>${count(data.waiting)}</b></a>
      <span>${data.waiting === 1 ? "pod" : "pods"} waiting${kinds.length > 0 && html`<small>${kinds.join(", ")}</small>`}</span></li>
    <li><a href=${address("nodes", { at })}><b>${count(data.nodes)}</b></a><span>${data.nodes === 1 ? "node" : "nodes"}<${Troubles} states=${data.nodeStates} at=${at} /></span></li>
    ${source.hasDecisions && html`<li><b>${count(data.attempts)}</b><span>${data.attempts === 1 ? "attempt" : "attempts"} so far</span></li>`}
  </ul>`;
}

// The nodes that get no pods, as links to them.
function Troubles({ states, at }) {
  const rows = ["not ready", "cordoned"].filter((state) => states[state]);
  if (!rows.length) return null;
  return html`<small>${rows.map((state, index) => html`${index > 0 && ", "}<a key=${state} class=${state === "not ready" ? "bad" : ""} href=${address("nodes", { at, state })}>${count(states[state])} ${state}</a>`)}</small>`;
}

function Utilization({ usage, hasNodes }) {
  const rows = usage.filter((one) => one.allocatable > 0 && isWorthLine(one.resource, one.used));
  if (!rows.length) return html`<${Empty}>${hasNodes ? "No node offers a resource." : "There is no node at this moment."}</${Empty}>`;
  return html`<table class="usage"><thead><tr><th>Resource</th><th class="wide"><span class="visually-hidden">Share</span></th>
    <th class="number">Requested</th><th class="number">Allocatable</th></tr></thead>
    <tbody>${rows.map((one) => html`<tr key=${one.resource}><th scope="row"><${ResourceName} resource=${one.resource} /></th>
      <td class="wide"><${Bar} share=${one.used / one.allocatable} /><span class="share">${percent(one.used / one.allocatable)}</span></td>
      <td class="number">${amount(one.resource, one.used)}</td>
      <td class="number">${amount(one.resource, one.allocatable)}</td></tr>`)}</tbody></table>`;
}

function Queues({ queues }) {
  return html`<ul class="figures small">${Object.entries(queues).map(([name, pods]) => html`<li key=${name}><b>${count(pods)}</b><span>${name}</span></li>`)}</ul>`;
}

function Recent({ changes, at }) {
  if (!changes.length) return html`<${Empty}>No pod and no node so far.</${Empty}>`;
  const [rows, element] = useHeld(changes);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Changes" ref=${element}><table class="changes"><thead><tr><th class="number">Time</th><th>What</th><th>Of</th><th>Node</th></tr></thead>
    <tbody>${rows.map(({ change: one, count: number, workload }) => html`<tr key=${one.change}>
      <td class="number">${time(one.seconds)}</td><td>${WHAT[one.what] ?? one.what}</td>
      <td class="name">${number > 1 ? html`${plural(number, one.pod ? "pod" : "node")}${workload ? html` of <a href=${address("pods", { at, workload })}><${Name} text=${workload} /></a>` : html`, the last one <${NodeLink} at=${at} node=${one.node} />`}`
        : one.pod ? html`<a href=${address("pods", { at, name: one.pod })}><${Name} text=${one.pod} /></a>` : html`<${NodeLink} at=${at} node=${one.node} />`}</td>
      <td class="name">${one.pod && number === 1 && html`<${NodeLink} at=${at} node=${one.node} />`}</td>
    </tr>`)}</tbody></table></div>`;
}

// The changes of one pod.
export function ChangeTable({ changes, at }) {
  const [rows, element] = useHeld(changes);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Changes" ref=${element}><table class="changes"><thead><tr><th class="number">Time</th><th>What</th><th>Node</th></tr></thead>
    <tbody>${rows.map((one) => html`<tr key=${one.change}>
      <td class="number">${time(one.seconds)}</td><td>${WHAT[one.what] ?? one.what}</td>
      <td class="name"><${NodeLink} at=${at} node=${one.node} /></td>
    </tr>`)}</tbody></table></div>`;
}

function NodeLink({ at, node }) {
  return node ? html`<a href=${address("nodes", { at, node })}><${Name} text=${node} /></a>` : null;
}

function Curves({ source, params, data, byTime }) {
  const isPresent = isLive(source);
  const present = isPresent ? { at: params.at } : {};
  const zoom = useZoom(source, params, byTime);
  const { data: curves, error } = useAnswer("series", {
    points: POINTS, axis: byTime ? "time" : "changes", from: zoom.from, to: zoom.to, ...present,
  });
  const before = useRef(undefined);
  const charts = useMemo(() => (curves ? chartsOf(curves, byTime) : []), [curves, byTime]);
  if (error) return html`<${Problem} text=${error} />`;
  if (!curves) return html`<${Loading} />`;
  const x = byTime ? curves.seconds : curves.changes;
  // A double click begins with a single click, so it undoes the move of that click.
  const pick = (index, clicks) => {
    if (clicks > 1) return;
    before.current = params.at;
    const isLast = isPresent ? index === x.length - 1 : curves.changes[index] === source.lastChange;
    const at = isPresent ? curves.seconds[index] : curves.changes[index];
    go("overview", { ...params, at: isLast ? undefined : at }, { replace: true });
  };
  return html`<h2>${!byTime ? "Over the changes of the run" : isPresent ? "As far back as the scheduler remembers" : "Over time"}</h2>
    <div class="chart-head"><p class="note">A click on a chart moves the page to that moment, a drag zooms, a double click shows all.</p>
      <${ZoomControls} zoom=${zoom} middle=${byTime ? data.seconds : data.change} format=${byTime ? time : count} /></div>
    <div class="charts">${charts.map((chart) => html`<${Chart} key=${chart.title} title=${chart.title} x=${x}
      series=${chart.series} xLabel=${byTime ? "Time" : "Change"} formatX=${byTime ? time : count} formatY=${chart.format} isWhole=${chart.format === count}
      at=${byTime ? data.seconds : data.change} onPick=${pick}
      onZoom=${zoom.show} onReset=${() => zoom.showAll({ at: before.current })} syncKey="overview" />`)}</div>`;
}

function chartsOf(curves, byTime) {
  const [resources, more] = chartedResources(curves.usage);
  return [
    {
      title: "Pods",
      format: count,
      series: [
        { label: "on nodes", values: curves.placed },
        { label: "waiting", values: curves.waiting },
        { label: "unschedulable", values: curves.unschedulable },
      ],
    },
    {
      title: `Requested share of the allocatable${more ? `, ${resources.length} of ${resources.length + more} resources` : ""}`,
      format: percent,
      series: resources.map(([label, values]) => ({ label, values })),
    },
    {
      title: "Pods in the queues",
      format: count,
      series: Object.entries(curves.queues).map(([label, values]) => ({ label, values })),
    },
    byTime
      ? { title: "Attempts per second", format: rateText, series: [{ label: "attempts per second", values: rates(curves) }] }
      : { title: "Attempts so far", format: count, series: [{ label: "attempts", values: curves.attempts }] },
  ].filter((chart) => chart.series.some((one) => one.values.some(Boolean)));
}

// The resources that have curves, and how many have none: those that pods request come first.
function chartedResources(usage) {
  const entries = Object.entries(usage);
  const isRequested = ([, values]) => values.some((share) => share > 0);
  const visible = entries.slice().sort((one, other) => isRequested(other) - isRequested(one)).slice(0, RESOURCES_MAX);
  return [entries.filter((one) => visible.includes(one)), entries.length - visible.length];
}

// Each rate is that of the second after its point, or of a part of it where the charts show few seconds.
function rates({ seconds, attempts }) {
  const last = seconds.length - 1;
  const window = Math.min(RATE_SECONDS, (seconds[last] - seconds[0]) / RATES_MIN);
  let next = 0;
  return seconds.map((moment, index) => {
    next = Math.max(next, Math.min(index + 1, last));
    while (next < last && seconds[next] - moment < window) next += 1;
    const duration = seconds[next] - moment;
    return duration > 0 ? (attempts[next] - attempts[index]) / Math.max(duration, window) : 0;
  });
}

const rateText = (rate) => (rate === 0 ? "0" : rate < 10 ? rate.toPrecision(2) : count(rate));
