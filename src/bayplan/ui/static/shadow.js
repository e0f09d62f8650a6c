// The report of a shadow: agreement over time, and the decisions that disagree, one by one.
import { Chart } from "./chart.js";
import {
  Empty, Loading, Pager, Problem, Search, count, go, html, plural, tableAddress, time, useAnswer, useEffect,
  useMemo, useState,
} from "./lib.js";

const PAGE = 50;
const POINTS = 60;
// How often the answers of a running shadow are asked for.
const RENEW_MS = 5000;

// Rounded down, so that 100% means all.
export function exactShare(share) {
  return share === null || share === undefined ? "–" : `${Math.floor(share * 1e4 + 1e-9) / 100}%`;
}

const signed = (number) => (number > 0 ? `+${count(number)}` : `−${count(-number)}`);

export function Shadow({ params }) {
  const [turn, setTurn] = useState(0);
  const { data, error } = useAnswer("shadow", { points: POINTS, turn });
  const isRunning = data?.isRunning ?? false;
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => document.hidden || setTurn((last) => last + 1), RENEW_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  if (error) return html`<h1>Shadow</h1><${Problem} text=${error} />`;
  if (!data) return html`<h1>Shadow</h1><${Loading} />`;
  const { report, series } = data;
  const { decisions } = report;
  return html`<h1>Shadow of ${report.schedulers.join(", ")}</h1>
    <p class="note">${report.source}, ${plural(report.nodes, "node")}, from ${report.startedAt} for ${time(report.seconds)}${isRunning && " so far"}.</p>
    <ul class="figures">
      <li><b>${exactShare(decisions.shareBest)}</b><span>of the decisions chose one of the shadow's best nodes
        <small>${exactShare(decisions.shareBestWhenReordered)} if bindings are reordered</small></span></li>
      <li><b>${count(decisions.compared)}</b><span>decisions compared<small>${count(decisions.untried + decisions.unordered + decisions.firstSeenBound)} were not</small></span></li>
      <li class=${decisions.lower ? "alert" : ""}><b>${count(decisions.lower)}</b><span>chose a feasible node with a lower score</span></li>
      <li class=${decisions.rejected ? "alert" : ""}><b>${count(decisions.rejected)}</b><span>chose a node that the shadow rejects</span></li>
    </ul>
    ${decisions.medianBestNodes > 1 && html`<p class="note">In the median, ${count(decisions.medianBestNodes)} nodes had the best score. With many equal nodes, agreement means little.</p>`}
    ${series ? html`<${Curves} series=${series} />` : html`<p class="note">The report has no decisions that agree, so there is no curve. <code>bayplan shadow --out</code> writes all decisions.</p>`}
    ${report.plugins.length > 0 && html`<${Plugins} plugins=${report.plugins} />`}
    <h2>Disagreements</h2>
    <p class="note">The points are by how much the total of the shadow's node is higher, with the plugins that differ.</p>
    <${Disagreements} params=${params} plugins=${data.plugins} turn=${turn} />
    <${Waiting} waiting=${report.waiting} isRunning=${isRunning} />
    ${report.policy && html`<${Policy} policy=${report.policy} />`}
    <${Stream} report=${report} />`;
}

function Curves({ series }) {
  const charts = useMemo(() => {
    let [compared, best] = [0, 0];
    const soFar = series.seconds.map((_, index) => {
      compared += series.compared[index];
      best += series.best[index];
      return compared ? best / compared : null;
    });
    const spans = series.compared.map((number, index) => (number ? series.best[index] / number : null));
    const disagreements = series.compared.map((number, index) => number - series.best[index] - series.reordered[index]);
    return [
      { title: "Decisions that chose one of the best nodes", format: (share) => exactShare(share), series: [{ label: "in this span", values: spans }, { label: "so far", values: soFar }] },
      { title: "Decisions in each span", format: count, isWhole: true, series: [
        { label: "compared", values: series.compared }, { label: "best if reordered", values: series.reordered }, { label: "disagree", values: disagreements },
      ] },
    ];
  }, [series]);
  return html`<h2>Over time</h2><div class="charts">${charts.map((chart) => html`<${Chart} key=${chart.title} title=${chart.title}
    x=${series.seconds} series=${chart.series} formatX=${time} formatY=${chart.format} isWhole=${chart.isWhole} at=${null} onPick=${() => {}} syncKey="shadow" />`)}</div>`;
}

function Plugins({ plugins }) {
  return html`<h2>By plugin</h2><p class="note">Disagreements that no reordering of bindings explains.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="By plugin"><table><thead><tr><th>Plugin</th><th class="number">Rejects the node</th><th class="number">Prefers another node</th><th class="number">Points</th></tr></thead>
      <tbody>${plugins.map((one) => html`<tr key=${one.plugin}><th scope="row">${one.plugin || "none"}</th><td class="number">${count(one.rejected)}</td>
        <td class="number">${count(one.favoursShadow)}</td><td class="number">${count(one.points)}</td></tr>`)}</tbody></table></div>`;
}

function Disagreements({ params, plugins, turn }) {
  const { search = "", plugin = "" } = params;
  const [offset, setOffset] = useState(0);
  const set = (changes) => go("shadow", { ...params, ...changes }, { replace: true });
  useEffect(() => setOffset(0), [search, plugin]);
  const { data, error } = useAnswer("disagreements", { search, plugin, offset, limit: PAGE, turn });
  return html`<div class="controls"><${Search} label="Pod name" value=${search} onSearch=${(text) => set({ search: text || undefined })} />
      ${plugins.length > 0 && html`<label>Plugin <select value=${plugin} onChange=${(event) => set({ plugin: event.currentTarget.value || undefined })}>
        <option value="">all</option>${plugins.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`}
      ${data && html`<span class="note">${plural(data.total, "decision")}</span>`}
      <a class="csv" href=${tableAddress("disagreements", { search, plugin })} download>CSV</a></div>
    <${Problem} text=${error} />
    ${!data ? !error && html`<${Loading} />` : !data.total ? html`<${Empty}>${search || plugin ? "No such decision disagrees." : "Every decision chose one of the best nodes."}</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Disagreements"><table class="pods"><thead><tr><th class="number">Time</th><th>Pod</th><th>Its node</th><th>The shadow's node</th><th>Why</th></tr></thead>
      <tbody>${data.rows.map((row) => html`<tr key=${`${row.pod} ${row.atSeconds}`}><td class="number">${time(row.atSeconds)}</td><th scope="row" class="name">${row.pod}</th>
        <td class="name">${row.node}</td><td class="name">${row.shadowNode || "none"}</td><td><${Why} row=${row} /></td></tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

function Why({ row }) {
  const points = Object.entries(row.pluginPoints ?? {}).sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
  const among = `${plural(row.bestNodes ?? 0, "best node")} of ${count(row.feasibleNodes ?? 0)} feasible`;
  return html`${row.result === "rejected" ? html`rejected: ${row.message} <span class="plugin">${row.plugin}</span>`
      : points.length === 1 ? html`<b>${signed(points[0][1])}</b> ${points[0][0]}`
        : html`<b>${signed(row.points ?? 0)}</b><ul class="plain">${points.map(([plugin, number]) => html`<li key=${plugin}>${signed(number)} ${plugin}</li>`)}</ul>`}
    <span class="note">, ${among}</span>${row.bestWhenReordered && html` <span class="tag">best if bindings are reordered</span>`}`;
}

function Waiting({ waiting, isRunning }) {
  return html`<h2>Waiting</h2>
    <p>${plural(waiting.pending, "pod")} ${waiting.pending === 1 ? "waits" : "wait"} ${isRunning ? "now" : "at the end"}.${waiting.medianSeconds !== null && ` In the median, a pod waited ${time(waiting.medianSeconds)} for its node.`}</p>
    ${waiting.longer > 0 && html`<p>${plural(waiting.longer, "pod")} waited at least ${time(waiting.longerFromSeconds)} longer than in the shadow.</p>
      <div class="scroll" tabindex="0" role="region" aria-label="Longer waits"><table class="pods"><thead><tr><th>Pod</th><th class="number">Waited</th><th class="number">The shadow would have placed it</th><th>There</th><th>It is on</th></tr></thead>
        <tbody>${waiting.pods.map((one) => html`<tr key=${one.pod}><th scope="row" class="name">${one.pod}</th><td class="number">${time(one.waitedSeconds)}</td>
          <td class="number">${time(one.fittedSeconds)} earlier</td><td class="name">${one.shadowNode}</td><td class="name">${one.node || "no node"}</td></tr>`)}</tbody></table></div>
      ${waiting.omitted > 0 && html`<p class="note">${count(waiting.omitted)} more.</p>`}`}`;
}

function Policy({ policy }) {
  return html`<h2>Another policy</h2>
    <p><b>${policy.source}</b>: the pod's node is one of its best nodes in ${exactShare(policy.shareEqual)} of ${plural(policy.compared, "decision")}; it would have chosen no node in ${count(policy.unplaced)}.</p>
    ${policy.decisions.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Another policy"><table class="pods"><thead><tr><th class="number">Time</th><th>Pod</th><th>Its node</th><th>The policy's node</th><th>Why not the pod's node</th></tr></thead>
      <tbody>${policy.decisions.map((one) => html`<tr key=${`${one.pod} ${one.atSeconds}`}><td class="number">${time(one.atSeconds)}</td><th scope="row" class="name">${one.pod}</th>
        <td class="name">${one.node}</td><td class="name">${one.policyNode || "none"}</td><td>${one.message || "lower score"}</td></tr>`)}</tbody></table></div>
      ${policy.omitted > 0 && html`<p class="note">${count(policy.omitted)} more.</p>`}`}`;
}

function Stream({ report }) {
  const { stream, remarks = [] } = report;
  const events = Object.entries(stream.events).map(([kind, number]) => `${count(number)} of ${kind}`);
  const lines = [
    events.length ? `Events: ${events.join(", ")}.` : "No event was read.",
    stream.missedEvents > 0 && `At least ${plural(stream.missedEvents, "event")} were missed.`,
    ...Object.entries(stream.failures).map(([line, number]) => `${line}: ${plural(number, "time")}`),
    ...Object.entries(stream.unreadable).map(([kind, reason]) => `${kind} is not read: ${reason}`),
    ...remarks,
  ].filter(Boolean);
  return html`<h2>What was read</h2><ul class="reasons">${lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul>`;
}
