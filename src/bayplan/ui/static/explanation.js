// Why a pod has a node or none at this moment, and what would give it one: the answer of `bayplan why`.
import { Computing, isPast, useComputed } from "./computed.js";
import { Name, address, count, go, html, plural } from "./lib.js";

const SUBJECTS = { pod: "Change the workload", object: "Change another object", workload: "Change another workload", node: "Add a node" };
const NODES_MAX = 8;

// At the end of a run and for files, the answer takes no repetition. Earlier moments wait for a click,
// and the address has that click.
export function areFixesSearched(source, { at, fixes }) {
  const isAtEnd = !at || Number(at) >= source.lastChange;
  return !isPast(at) && (source.kind === "cluster" || fixes === "1" || (isAtEnd && source.kind === "run"));
}

export function FindFixes({ source, view, params }) {
  const isLive = source.kind === "live";
  return html`<p><button onClick=${() => go(view, { ...params, at: isLive ? undefined : params.at, fixes: 1 }, { replace: true })}>Find fixes ${isLive ? "now" : "at this moment"}</button>
    <span class="note"> ${isLive ? "tries each fix in a copy of the scheduler" : "tries each fix in the engine"}</span></p>`;
}

export function Explanation({ source, params, isWaiting }) {
  const { at, name } = params;
  const isOpen = areFixesSearched(source, params);
  const state = useComputed(isOpen ? "explanation" : null, { at, pod: name });
  const explanation = state.data;
  return html`<section aria-label="Fixes" tabindex="-1">
    <h2>${isWaiting ? "What would make it fit" : "Its node among all nodes"}</h2>
    ${!isOpen && html`<${FindFixes} source=${source} view="pods" params=${params} />`}
    <${Computing} state=${state} text="Each fix is tried in the engine…" />
    ${explanation && !state.error && html`<div class=${state.isComputing ? "stale" : ""}>
      ${isWaiting ? html`<${Waiting} explanation=${explanation} at=${at} isCluster=${source.kind === "cluster"} />` : html`<${Bound} comparison=${explanation.comparison} at=${at} />`}
      ${explanation.remarks.length > 0 && html`<details><summary>Remarks (${count(explanation.remarks.length)})</summary><ul class="reasons">${explanation.remarks.map((one) => html`<li key=${one}>${one}</li>`)}</ul></details>`}</div>`}
  </section>`;
}

function Waiting({ explanation, at, isCluster }) {
  const { node, message, causes = [], preemption, fixes = [], trials } = explanation;
  if (node) return html`<p>An attempt now would place it on <a href=${address("nodes", { at, node })}><${Name} text=${node} /></a>.</p>`;
  return html`${isCluster && message && html`<p class="message">${message}</p>`}
    ${causes.length > 0 && html`<${Causes} causes=${causes} at=${at} />`}
    <${Levels} levels=${explanation.group?.levels ?? []} at=${at} />
    ${preemption && html`<p class="note">Preemption: ${preemption.verdict}</p>
      ${preemption.victims?.length > 0 && html`<p>Victims: ${preemption.victims.map((name, index) => html`${index > 0 && ", "}<a key=${name} href=${address("pods", { at, name })}><${Name} text=${name} /></a>`)}</p>`}
      ${(preemption.budgets ?? []).map((one) => html`<p key=${one.name} class="note">Budget <span class="tag">${one.name}</span> allows ${plural(one.disruptionsAllowed, "disruption")}.</p>`)}`}
    ${fixes.length ? html`<h3>Fixes</h3><ol class="cards fixes">${fixes.map((fix, index) => html`<li key=${index}><${Fix} fix=${fix} at=${at} /></li>`)}</ol>`
      : html`<p>No fix is known.</p>`}
    ${trials > 0 && html`<p class="note">${plural(trials, "change")} tried in the engine at this moment.</p>`}`;
}

// Per level of a group's topology: the domain that comes nearest, what it lacks, and what is in the way.
export function GroupLevels({ source, params, pod }) {
  const { at } = params;
  const isOpen = areFixesSearched(source, params);
  const state = useComputed(isOpen ? "explanation" : null, { at, pod });
  const fixes = state.data?.fixes ?? [];
  return html`<section aria-label="What the group lacks" tabindex="-1"><h2>What the group lacks</h2>
    ${!isOpen && html`<${FindFixes} source=${source} view="groups" params=${params} />`}
    <${Computing} state=${state} text="Each fix is tried in the engine…" />
    ${state.data && !state.error && html`<div class=${state.isComputing ? "stale" : ""}>
      <${Levels} levels=${state.data.group?.levels ?? []} at=${at} />
      ${fixes.length ? html`<h3>Fixes</h3><ol class="cards fixes">${fixes.map((fix, index) => html`<li key=${index}><${Fix} fix=${fix} at=${at} /></li>`)}</ol>`
        : html`<p>No fix is known.</p>`}</div>`}</section>`;
}

function Levels({ levels, at }) {
  if (!levels.length) return null;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Levels"><table><thead><tr><th>Level</th><th>Fits</th><th>Nearest domain</th><th class="number">Room for</th><th>Lacks</th><th>In the way</th></tr></thead>
    <tbody>${levels.map((one) => html`<tr key=${`${one.constraint} ${one.nodeLabel}`}><th scope="row">${one.level} <span class="tag">${one.constraint}</span></th>
      <td>${one.slices ? `${count(one.fittingSlices ?? 0)} of ${plural(one.slices, "slice")} of ${count(one.size)}` : `${count(one.size)} members in ${count(one.sufficient ?? 0)} of ${plural(one.domains ?? 0, "domain")}`}</td>
      <td class="name">${one.nearest || "–"}</td><td class="number">${one.nearest ? count(one.fitting ?? 0) : "–"}</td>
      <td>${Object.entries(one.lacking ?? {}).map(([name, amount]) => `${amount} ${name}`).join(", ") || "–"}</td>
      <td>${(one.inTheWay ?? []).map((name, index) => html`${index > 0 && ", "}<a key=${name} href=${address("pods", { at, name })}><${Name} text=${name} /></a>`)}${(one.inTheWayCount ?? 0) > (one.inTheWay ?? []).length && ", …"}</td></tr>`)}</tbody></table></div>`;
}

function Causes({ causes, at }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Causes"><table><thead><tr><th class="number">Nodes</th><th>Reason</th><th>Plugin</th><th>Nearest node</th></tr></thead>
    <tbody>${causes.map((one) => html`<tr key=${`${one.plugin} ${one.reason}`}><td class="number">${one.nodes ? count(one.nodes) : "all"}</td>
      <td>${one.reason}${(one.details ?? []).map((detail) => html`<span key=${detail} class="note line">${detail}</span>`)}</td><td>${one.plugin}</td>
      <td>${one.nearest && html`<a href=${address("nodes", { at, node: one.nearest.node })}><${Name} text=${one.nearest.node} /></a> <span class="note">${one.nearest.distance}</span>`}</td></tr>`)}</tbody></table></div>`;
}

// `isShort`: without the node that a pod would get.
export function Fix({ fix, at, isShort = false }) {
  const { steps, commands = [], manifest, waiting = 1, helped = 1, notes = [] } = fix;
  return html`<p class="note">${fix.target ? `Change ${fix.target}` : SUBJECTS[fix.changesWhat] ?? fix.changesWhat}${steps.length > 1 && `, ${count(steps.length)} steps that only work together`}</p>
    ${steps.map((step) => html`<p key=${step}><b>${step}</b></p>`)}
    ${fix.managedBy && html`<p class="note">${fix.managedBy} writes ${fix.target}: change it there, too, or its next update undoes this.</p>`}
    ${notes.map((note) => html`<p key=${note} class="note">Note: ${note}.</p>`)}
    ${waiting > 1 && html`<p class="note">Then ${fix.isBounded ? "at least " : ""}${count(helped)} of ${plural(waiting, "pod")} that wait get a node.</p>`}
    ${fix.node && !isShort && html`<p class="note">${waiting > 1 ? "For example, a pod goes to" : "Then it goes to"} ${fix.changesWhat === "node" ? fix.node : html`<a href=${address("nodes", { at, node: fix.node })}>${fix.node}</a>`}.</p>`}
    ${(commands.length > 0 || manifest) && html`<details><summary>Commands</summary>
      ${commands.map((one) => html`<pre key=${one} tabindex="0">${one}</pre>`)}${manifest && html`<pre tabindex="0">${manifest}</pre>`}</details>`}`;
}

function Bound({ comparison, at }) {
  if (!comparison) return html`<p class="note">Another scheduler placed it.</p>`;
  const rows = comparison.nodes.slice(0, NODES_MAX);
  const plugins = [...new Set(rows.flatMap((row) => Object.keys(row.scores ?? {})))]
    .filter((name) => rows.some((row) => row.scores?.[name]));
  return html`<p>If the pod were pending now, ${plural(comparison.feasible, "node")} would be feasible.
      ${comparison.rejection ? ` ${comparison.node} would not: ${comparison.rejection}` : ` ${plural(comparison.better, "node")} would score higher than ${comparison.node}, ${count(comparison.equal)} as high.`}</p>
    ${plugins.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Scores"><table class="scores"><thead><tr><th>Plugin</th>
      ${rows.map((row) => html`<th key=${row.node} class="number"><${Name} text=${row.node} length=${32} />${row.node === comparison.node && html`<span class="tag">its node</span>`}</th>`)}</tr></thead>
      <tbody>${plugins.map((name) => html`<tr key=${name}><th scope="row">${name}</th>${rows.map((row) => html`<td key=${row.node} class="number">${count(row.scores?.[name] ?? 0)}</td>`)}</tr>`)}
        <tr class="total"><th scope="row">Total</th>${rows.map((row) => html`<td key=${row.node} class="number">${row.total === undefined || row.total === null ? "–" : count(row.total)}</td>`)}</tr></tbody></table></div>`}`;
}
