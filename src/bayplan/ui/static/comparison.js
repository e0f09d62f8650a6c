// Two runs side by side: only what differs.
import {
  Empty, Loading, Name, Pager, Problem, Search, address, count, html, percent, plural, tableAddress, time,
  useAnswer, useEffect, useState,
} from "./lib.js";
import { WHAT } from "./overview.js";

const PAGE = 50;
const PLUGINS_MAX = 3;

export function Comparison({ sources, params }) {
  const { data, error } = useAnswer("comparison", { run: "" });
  if (error) return html`<h1>Differences</h1><${Problem} text=${error} />`;
  if (!data) return html`<h1>Differences</h1><${Loading} />`;
  const isEqual = !data.rows.length && !data.movedCount && !data.first && data.attempts[0] === data.attempts[1];
  return html`<h1>Differences</h1>
    <dl class="facts"><div><dt>A</dt><dd>${data.one}</dd></div><div><dt>B</dt><dd>${data.other}</dd></div></dl>
    ${isEqual ? html`<${Empty}>Both runs have the same decisions.</${Empty}>` : html`
      <${Numbers} data=${data} />
      <${First} first=${data.first} />
      <h2>Pods that went elsewhere</h2>
      <p>${count(data.movedCount)} of ${plural(data.pods, "pod")}.</p>
      ${data.movedCount > 0 && html`<${Moved} names=${sources.map((one) => one.name)} params=${params} />`}`}`;
}

function valueText(unit, value) {
  if (unit === "seconds") return time(value);
  return unit === "share" ? percent(value) : count(value);
}

function differenceText({ unit, one, other }) {
  const difference = other - one;
  const sign = difference > 0 ? "+" : "−";
  if (unit === "share") return `${sign}${Math.abs(difference * 100).toFixed(1)} points`;
  return sign + valueText(unit, Math.abs(difference));
}

function Numbers({ data }) {
  return html`<h2>Numbers</h2>
    ${data.rows.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Numbers"><table><thead><tr><th>Number</th>
      <th class="number">A</th><th class="number">B</th><th class="number">B − A</th></tr></thead>
      <tbody>${data.rows.map((row) => html`<tr key=${row.name}><th scope="row">${row.name}</th>
        <td class="number">${valueText(row.unit, row.one)}</td><td class="number">${valueText(row.unit, row.other)}</td>
        <td class="number">${differenceText(row)}</td></tr>`)}</tbody></table></div>`}
    <p class="note">${plural(data.equalCount, "number")} of both runs ${data.equalCount === 1 ? "is" : "are"} equal.</p>`;
}

function First({ first }) {
  if (!first) return null;
  const rows = [["A", "", first.one], ["B", 1, first.other]];
  return html`<h2>The first decision that differs</h2>
    <p class="note">Decision ${count(first.number)} of each run.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="First difference"><table><thead><tr><th>Run</th><th class="number">Time</th><th>Pod</th><th class="number">Attempt</th><th>Result</th><th>Node</th></tr></thead>
      <tbody>${rows.map(([name, run, step]) => html`<tr key=${name}><th scope="row">${name}</th><td class="number">${time(step.seconds)}</td>
        <td class="name"><a href=${address("pods", { run, name: step.pod, attempt: step.attempt, at: step.change })}><${Name} text=${step.pod} /></a></td>
        <td class="number">${count(step.attempt)}</td><td>${WHAT[step.result] ?? step.result}</td>
        <td class="name">${step.node && html`<a href=${address("nodes", { run, node: step.node, at: step.change })}><${Name} text=${step.node} /></a>`}</td></tr>`)}</tbody></table></div>`;
}

function Moved({ params }) {
  const [search, setSearch] = useState("");
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [search]);
  const { data, error } = useAnswer("moved", { run: "", search, offset, limit: PAGE });
  return html`<div class="controls"><${Search} label="Pod name" value=${search} onSearch=${setSearch} />
      ${data && html`<span class="note">${plural(data.total, "pod")}</span>`}
      <a class="csv" href=${tableAddress("moved", { run: "", search })} download>CSV</a></div>
    <${Problem} text=${error} />
    ${!data ? html`<${Loading} />` : !data.total ? html`<${Empty}>No pod here has “${search}” in its name.</${Empty}>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Pods that went elsewhere"><table class="moved"><thead><tr><th>Pod</th><th>Node in A</th><th>Why A preferred it</th><th>Node in B</th><th>Why B preferred it</th></tr></thead>
      <tbody>${data.rows.map((row) => html`<tr key=${row.pod}><th scope="row" class="name"><${Name} text=${row.pod} /></th>
        <td class="name"><${Place} run="" pod=${row.pod} node=${row.one} /></td><td><${Why} run="" pod=${row.pod} preference=${row.inOne} other=${row.other} /></td>
        <td class="name"><${Place} run=${1} pod=${row.pod} node=${row.other} /></td><td><${Why} run=${1} pod=${row.pod} preference=${row.inOther} other=${row.one} /></td></tr>`)}</tbody></table></div>
    <${Pager} page=${data} size=${PAGE} onOffset=${setOffset} />`}`;
}

function Place({ run, pod, node }) {
  return html`<a href=${address("pods", { run, name: pod })}><${Name} text=${node || "no node"} /></a>`;
}

const signed = (number) => (number > 0 ? `+${count(number)}` : `−${count(-number)}`);

function Why({ run, pod, preference, other }) {
  const visible = preference.plugins.slice(0, PLUGINS_MAX);
  const more = preference.plugins.length - visible.length;
  return html`${preference.difference !== 0 && html`<b>${signed(preference.difference)}</b> <small>over <${Name} text=${other} /></small>`}
    ${visible.length > 0 && html`<ul class="plain">${visible.map((one) => html`<li key=${one.plugin}>${signed(one.difference)} <span class="plugin">${one.plugin}</span></li>`)}
      ${more > 0 && html`<li class="note">and ${plural(more, "plugin")} more</li>`}</ul>`}
    ${preference.note && html`<span class="note">${preference.note}</span>`}
    ${preference.computedAttempt > 0 && html` <a href=${address("pods", { run, name: pod, attempt: preference.computedAttempt, node: other })}>Repeat the attempt and compare</a>`}`;
}
