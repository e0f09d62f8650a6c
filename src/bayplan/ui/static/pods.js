// Pods: search by name, and one pod with the decision of each attempt.
import { useComputed } from "./computed.js";
import { Explanation } from "./explanation.js";
import {
  Button, Empty, Loading, Name, NodeInput, Problem, address, count, go, html, plural, time, useAnswer, useEffect, useFew, useState,
} from "./lib.js";
import { useHeld } from "./focus.js";
import { live } from "./live.js";
import { ObjectLink } from "./object.js";
import { ChangeTable, WHAT } from "./overview.js";
import { PodTable, requestsText, timesOf } from "./podtable.js";
import { CauseParts, KIND_TITLES, WakeEvents, stampText } from "./causes.js";

const ATTEMPTS_SHOWN = 6;
const CHANGES_SHOWN = 12;

export function Pods({ source, params }) {
  const { at, name } = params;
  if (name) return html`<${Pod} key=${name} source=${source} params=${params} />`;
  return html`<h1>Pods</h1>
    <${PodTable} at=${at} show=${["workload", "state", "node", ...timesOf(source, "attempts"), "requests"]} choices=${params}
      onChoose=${(changes) => go("pods", { ...params, ...changes }, { replace: true })}
      empty="No pod has been created yet." />`;
}

// "Deployment default/web" as the kind and the name of an object.
function kindAndName(workload) {
  const [kind, name] = workload.split(" ");
  return { kind, name };
}

function Pod({ source, params }) {
  const { at, name } = params;
  const { data, error } = useAnswer("pod", { at, name });
  if (error) return html`<h1 class="name">${name}</h1><${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  const { pod } = data;
  const last = data.attempts.at(-1);
  const attempt = Number(params.attempt) || last?.attempt;
  return html`<p class="crumbs"><a href=${address("pods", { at })}>Pods</a> <${ObjectLink} at=${at} kind="Pod" name=${pod.name} /></p>
    <h1 class="name">${pod.name}</h1>
    <dl class="facts">
      <div><dt>State</dt><dd><span class=${`state ${pod.state}`}>${pod.state}</span> ${source.hasDecisions && `${pod.state === "absent" ? "created later, at" : "since"} ${time(pod.sinceSeconds)}`}</dd></div>
      ${data.created && html`<div><dt>Created</dt><dd>${stampText(data.created)}</dd></div>`}
      ${pod.node && html`<div><dt>Node</dt><dd><a href=${address("nodes", { at, node: pod.node })}><${Name} text=${pod.node} /></a></dd></div>`}
      <div><dt>Requests</dt><dd>${requestsText(pod.requests)}</dd></div>
      <div><dt>Priority</dt><dd>${count(data.priority)}</dd></div>
      ${data.profile && html`<div><dt>Profile</dt><dd>${data.profile}</dd></div>`}
      ${pod.workload !== `Pod ${pod.name}` && html`<div><dt>Workload</dt><dd><a href=${address("pods", { at, workload: pod.workload })}><${Name} text=${pod.workload} /></a>
        ${" "}<small><${ObjectLink} at=${at} ...${kindAndName(pod.workload)} /></small></dd></div>`}
      ${data.group && html`<div><dt>Group</dt><dd><a href=${address("groups", { at, name: data.group })}><${Name} text=${data.group} /></a></dd></div>`}
    </dl>
    ${data.cause && data.cause.kind !== "fits" && html`<section class="why"><h2>Why it waits: ${KIND_TITLES[data.cause.kind] ?? data.cause.kind}</h2>
      <${CauseParts} cause=${data.cause} /><${WakeEvents} events=${data.events} /></section>`}
    ${source.hasModel && (pod.state === "waiting" || (pod.state === "placed" && source.kind === "cluster"))
      && html`<${Explanation} source=${source} params=${params} isWaiting=${pod.state === "waiting"} />`}
    ${source.hasDecisions && (data.attempts.length
      ? html`<${Attempts} params=${params} attempts=${data.attempts} attempt=${attempt} />`
      : html`<${Empty}>The scheduler has not tried this pod so far.</${Empty}>`)}
    ${source.hasDecisions && html`<h2>What happened to the pod</h2><${History} changes=${data.changes} at=${at} />`}`;
}

// The newest changes of the pod, the newest first.
function History({ changes, at }) {
  const [visible, button] = useFew(changes.slice().reverse(), CHANGES_SHOWN, "changes");
  if (!changes.length) return html`<${Empty}>Nothing so far.</${Empty}>`;
  return html`<${ChangeTable} changes=${visible} at=${at} />${button}`;
}

function Attempts({ params, attempts, attempt }) {
  return html`<section aria-label="Decision">
    ${attempts.length > 1 && html`<${AttemptTable} params=${params} attempts=${attempts} attempt=${attempt} />`}
    <div class="section-head"><h2>${attempts.length > 1 ? `Decision of attempt ${count(attempt)}` : "Decision"}</h2></div>
    <${DecisionSteps} params=${params} attempt=${attempt} /></section>`;
}

// The newest attempts, and the one that is shown below.
function AttemptTable({ params, attempts, attempt }) {
  const newest = attempts.slice().reverse();
  const [few, button] = useFew(newest, ATTEMPTS_SHOWN, "attempts");
  const [visible, element] = useHeld(newest.filter((one, index) => index < few.length || one.attempt === attempt));
  const link = (one) => address("pods", { ...params, attempt: one.attempt });
  return html`<h2>Attempts</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Attempts" ref=${element}><table><thead><tr><th class="number">Attempt</th><th class="number">Time</th><th>Result</th><th>Node</th></tr></thead>
      <tbody>${visible.map((one) => html`<tr key=${one.attempt} class=${one.attempt === attempt ? "chosen" : ""} aria-current=${one.attempt === attempt ? "true" : undefined}>
        <td class="number"><a href=${link(one)}>${count(one.attempt)}</a></td><td class="number">${time(one.seconds)}</td>
        <td>${WHAT[one.result] ?? one.result}</td><td class="name"><${Name} text=${one.node} /></td></tr>`)}</tbody></table></div>${button}`;
}

// ---- one decision -----------------------------------------------------------------------------

function DecisionSteps({ params, attempt }) {
  const { data, error } = useAnswer("decision", { pod: params.name, attempt });
  if (error) return html`<${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  const { record } = data;
  const rejections = record.rejections ?? [];
  const scores = record.scores ?? [];
  const steps = [
    html`<h3>${count(record.node_count ?? 0)} nodes, attempt ${record.attempt} at ${time(record.at_seconds)}</h3>
      <p class="note">Profile ${record.profile}.</p>`,
    rejections.length > 0 && html`<h3>Filter: ${count(record.feasible_count ?? 0)} of ${count(record.node_count ?? 0)} nodes feasible</h3>
      <${Rejections} rejections=${rejections} total=${record.node_count ?? 0} />`,
    !rejections.length && (record.node_count ?? 0) > 0 && html`<h3>Filter: ${count(record.feasible_count ?? 0)} of ${count(record.node_count ?? 0)} nodes feasible</h3>
      <p class="note">${unrejected(record)}</p>`,
    scores.length > 0 && html`<h3>Score: the best ${count(scores.length)} nodes</h3><${Scores} scores=${scores} chosen=${record.node} />
      ${(record.score_notes ?? []).map((note) => html`<p class="note">${note}</p>`)}`,
    record.node && ((record.tied_count ?? 0) > 1 || (record.tie_break ?? []).length > 0) && html`<h3>Tie-break</h3><${TieBreak} record=${record} />`,
    html`<h3>Outcome: ${outcome(record)}</h3><${Outcome} data=${data} params=${params} />`,
  ].filter(Boolean);
  return html`<ol class="steps">${steps.map((step, index) => html`<li key=${index}>${step}</li>`)}</ol>
    ${(live.source === null || live.source.hasModel) && html`<${OtherNode} params=${params} attempt=${attempt} />`}`;
}

// Why no rejected node is listed.
function unrejected(record) {
  if (!record.feasible_count) return "A step before Filter rejected the pod, so no node was evaluated.";
  return record.feasible_count < record.node_count ? "The other nodes were not evaluated." : "No node was rejected.";
}

function outcome(record) {
  if (record.result === "scheduled") return `placed on ${record.node}`;
  if (record.result === "waiting") return `waits at Permit for ${record.node}`;
  return record.result;
}

function Rejections({ rejections, total }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Rejected nodes"><table><thead><tr><th class="number">Nodes</th><th>Reason</th><th>Plugin</th><th>Code</th></tr></thead>
    <tbody>${rejections.map((one) => html`<tr key=${`${one.plugin} ${one.reason}`}><td class="number">${count(one.nodes)}<small> of ${count(total)}</small></td>
      <td>${one.reason}</td><td>${one.plugin}</td><td>${one.code}</td></tr>`)}</tbody></table></div>`;
}

function weightOf(score) {
  return score.normalized ? score.weighted / score.normalized : null;
}

function Scores({ scores, chosen, label = "Scores" }) {
  const plugins = scores[0].plugins.map((one, index) => ({ name: one.plugin, index }))
    .filter(({ index }) => scores.some((node) => node.plugins[index].raw || node.plugins[index].weighted));
  const zeros = scores[0].plugins.filter((one) => !plugins.some((other) => other.name === one.plugin));
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="scores"><thead><tr><th>Plugin</th>
      ${scores.map((node) => html`<th key=${node.node} class=${`number ${node.node === chosen ? "chosen" : ""}`}><${Name} text=${node.node} length=${32} />${node.node === chosen && html`<span class="tag">chosen</span>`}</th>`)}</tr></thead>
    <tbody>${plugins.map(({ name, index }) => html`<tr key=${name}><th scope="row">${name}</th>
      ${scores.map((node) => html`<td key=${node.node} class=${`number ${node.node === chosen ? "chosen" : ""}`}><${Score} score=${node.plugins[index]} /></td>`)}</tr>`)}
      <tr class="total"><th scope="row">Total</th>${scores.map((node) => html`<td key=${node.node} class=${`number ${node.node === chosen ? "chosen" : ""}`}>${count(node.total)}</td>`)}</tr></tbody></table></div>
    <p class="note">Raw → normalized × weight = score. ${zeros.length > 0 && `0 for each of these nodes: ${zeros.map((one) => one.plugin).join(", ")}.`}</p>`;
}

function Score({ score }) {
  const weight = weightOf(score);
  return html`<b>${count(score.weighted)}</b><small>${count(score.raw)} → ${count(score.normalized)}${weight !== null && weight !== 1 ? ` × ${weight}` : ""}</small>`;
}

function TieBreak({ record }) {
  const keys = record.tie_break ?? [];
  return html`${keys.length > 0 && html`<ul class="reasons">${keys.map((one) => html`<li key=${one.key}>${one.key}: ${count(one.left_count)} of ${count(one.equal_count)} nodes are left</li>`)}</ul>`}
    <p>${record.tied_count === 1 ? `${record.node} alone has the highest total.`
      : `${count(record.tied_count)} nodes are equal. Seed, pod and attempt draw number ${count((record.tied_index ?? 0) + 1)} of them, in the order of the hash of the name.`}</p>`;
}

function Outcome({ data, params }) {
  const { record, victims } = data;
  return html`${record.message && html`<p class="message">${record.message}</p>`}
    ${record.nominated_node && html`<p>Nominated to <a href=${address("nodes", { at: params.at, node: record.nominated_node })}><${Name} text=${record.nominated_node} /></a>.</p>`}
    ${victims.length > 0 && html`<p>${plural(victims.length, "victim")} of preemption: ${victims.map((name, index) => html`${index > 0 && ", "}<a key=${name} href=${address("pods", { at: params.at, name })}><${Name} text=${name} /></a>`)}</p>`}`;
}

// ---- any node ---------------------------------------------------------------------------------

function OtherNode({ params, attempt }) {
  const [text, setText] = useState(params.node ?? "");
  useEffect(() => setText(params.node ?? ""), [params.node]);
  const submit = (event) => {
    event.preventDefault();
    go("pods", { ...params, attempt, node: text || undefined }, { replace: true });
  };
  return html`<section class="other"><h3>Ask about any node</h3>
    <form class="controls" onSubmit=${submit}><${NodeInput} at=${params.at} value=${text} onText=${setText} />
      <${Button} type="submit" isOff=${!text}>Explain</${Button}></form>
    ${params.node && html`<${Verdict} pod=${params.name} attempt=${attempt} node=${params.node} />`}</section>`;
}

function Verdict({ pod, attempt, node }) {
  const state = useComputed("verdict", { pod, attempt, node });
  const { data, error } = state;
  if (error || !data) return html`<div class="computing"><${Problem} text=${error} />${!error && html`<p class="loading" role="status">The attempt is repeated…</p>`}</div>`;
  const rejecting = data.alone.filter((one) => one.message);
  return html`<p><b>${node}</b>: ${data.ruling}</p>
    ${!data.isExact && html`<p class="note">The repeated attempt differs from the attempt: a plugin that remembers earlier attempts, or an extender, decided, too.</p>`}
    ${rejecting.length > 0 && html`<ul class="reasons">${rejecting.map((one) => html`<li key=${one.plugin}>${one.message} <span class="plugin">${one.plugin}, ${one.code}</span></li>`)}</ul>`}
    ${data.alone.length > 0 && html`<p class="note">${count(data.alone.length - rejecting.length)} of ${count(data.alone.length)} Filter plugins have no objection to this node alone.</p>`}
    ${data.scores.length > 0 && html`<${Scores} label=${`Scores of ${node}`} scores=${data.scores} chosen=${data.scores.at(-1).node === node ? "" : data.scores.at(-1).node} />
      <p class="note">${plural(data.better, "other node")} scored higher, ${count(data.equal)} as high.</p>`}`;
}
