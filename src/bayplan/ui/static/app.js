// The frame of the page: what is shown, the views, and the time.
import {
  Empty, Problem, address, ask, count, html, shown, plural, render, useEffect, useRoute, useState,
} from "./lib.js";
import { Comparison } from "./comparison.js";
import { Experiment } from "./experiment.js";
import { keepFocus, useBeginnings } from "./focus.js";
import { Groups } from "./groups.js";
import { Keys } from "./keys.js";
import { follow, setLive } from "./live.js";
import { Nodes } from "./nodes.js";
import { ObjectView } from "./object.js";
import { Overview } from "./overview.js";
import { Pods } from "./pods.js";
import { saveView } from "./save.js";
import { Shadow } from "./shadow.js";
import { TimeBar } from "./timebar.js";
import { UsageBy } from "./usage.js";
import { Waiting } from "./waiting.js";
import { WhatIf } from "./whatif.js";

const VIEWS = [
  ["overview", "Overview", Overview],
  ["nodes", "Nodes", Nodes],
  ["waiting", "Waiting", Waiting],
  ["pods", "Pods", Pods],
  ["usage", "Usage", UsageBy],
  ["groups", "Groups", Groups],
  ["whatif", "What if", WhatIf],
  ["object", "Object", ObjectView],
];
const POLL_MS = 500;

function useSources() {
  const [state, setState] = useState({ sources: null, error: "" });
  useEffect(() => {
    let timer = 0;
    let ended = false;
    let unfollow = null;
    const poll = async () => {
      try {
        const sources = await ask("sources");
        if (ended) return;
        if (sources[0]?.kind === "live") {
          setLive(sources[0]);
          unfollow ??= follow(poll);
        }
        setState({ sources, error: "" });
        if (sources.some((source) => source.phase === "loading")) timer = setTimeout(poll, POLL_MS);
      } catch (problem) {
        // The time bar says that a scheduler does not answer, and goes on asking.
        if (ended || unfollow) return;
        setState((old) => ({ ...old, error: `The server does not answer: ${problem.message}` }));
        timer = setTimeout(poll, 4 * POLL_MS);
      }
    };
    poll();
    return () => {
      ended = true;
      clearTimeout(timer);
      unfollow?.();
    };
  }, []);
  return state;
}

function App() {
  const { sources, error } = useSources();
  const route = useRoute();
  const isPair = sources?.length === 2;
  const run = isPair && route.params.run === "1" ? 1 : 0;
  const source = sources?.[run];
  const isComparing = isPair && (route.view === "comparison" || !location.hash);
  useEffect(() => {
    const name = VIEWS.find(([view]) => view === route.view)?.[1] ?? "";
    document.title = source ? `${name} · ${source.name} · Bayplan` : "Bayplan";
  }, [route.view, source?.name]);
  useBeginnings(`${run} ${isComparing} ${route.view} ${route.params.name ?? ""}`);
  if (!source) return error ? html`<${Problem} text=${error} />` : html`<p class="loading">Loading…</p>`;
  shown.source = source;
  const notReady = (isComparing ? sources : [source]).find((one) => one.phase !== "ready");
  const isReady = !notReady;
  const isTimed = source.kind === "live" || (source.kind === "run" && source.lastChange > 0);
  const hasTime = isReady && !isComparing && isTimed;
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${address("overview")}><img src="static/icon.svg" alt="" width="20" height="20" />Bayplan</a>
      ${isPair ? html`<${Runs} sources=${sources} run=${isComparing ? -1 : run} route=${route} />`
        : html`<span class="source" title=${source.name}>${source.name}</span>`}
      ${isReady && !["shadow", "comparison"].includes(source.kind) && html`<${Tabs} source=${source} route=${route} isComparing=${isComparing} />`}
      ${isReady && html`<div class="tools"><button class="quiet" onClick=${() => saveView(route.view)}
          title="This view as one HTML file without scripts">Save view</button>
        <${Keys} source=${source} at=${route.params.at} /></div>`}
    </header>
    ${hasTime && html`<${TimeBar} source=${source} route=${route} />`}
    <main id="main" tabindex="-1">
      <${Problem} text=${error} />
      ${isReady && html`<${Notes} notes=${source.notes} />`}
      ${!isReady ? html`<${Opening} source=${notReady} />`
        : source.kind === "comparison" ? html`<${Experiment} params=${route.params} />`
        : isComparing ? html`<${Comparison} sources=${sources} params=${route.params} />`
          : source.kind === "shadow" ? html`<${Shadow} params=${route.params} />`
            : html`<${View} key=${run} source=${source} route=${route} />`}
    </main>`;
}

// What the reader should know about what was read; more than two lines are folded.
function Notes({ notes }) {
  const lines = notes.map((note) => html`<p key=${note} class="note" role="note">${note}</p>`);
  return notes.length <= 2 ? lines : html`<details class="notes"><summary>${plural(notes.length, "note")} about what was read</summary>${lines}</details>`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

// Which of two runs the views show; the comparison shows both.
function Runs({ sources, run, route }) {
  const view = run < 0 ? "overview" : route.view;
  return html`<nav class="runs" aria-label="Runs">
    <a href=${address("comparison", { run: "" })} aria-current=${run < 0 ? "page" : undefined}>Differences</a>
    ${sources.map((one, index) => html`<a key=${index} href=${address(view, { run: index || "", name: route.params.name })}
      title=${one.name} aria-current=${run === index ? "true" : undefined}><b>${"AB"[index]}</b> ${one.name}</a>`)}
  </nav>`;
}

function Tabs({ source, route, isComparing }) {
  const isShown = { groups: source.hasGroups, whatif: source.hasModel, object: false };
  const visible = VIEWS.filter(([view]) => isShown[view] ?? true);
  return html`<nav class="tabs" aria-label="Views">
    ${visible.map(([view, name]) => html`<a key=${view} href=${address(view, { at: route.params.at })}
      aria-current=${!isComparing && route.view === view ? "page" : undefined}>${name}</a>`)}
  </nav>`;
}

function View({ source, route }) {
  const entry = VIEWS.find(([view]) => view === route.view);
  if (!entry) return html`<${Empty}>There is no view ${route.view}.</${Empty}>`;
  const [, , Shown] = entry;
  return html`<${Shown} source=${source} params=${route.params} />`;
}

// A run whose log is being read: its totals are there at once.
function Opening({ source }) {
  if (source.phase === "failed") {
    return html`<h1>${source.name} cannot be shown</h1><${Problem} text=${source.problem} />`;
  }
  const { totals, doneCount, totalCount, doing, unit } = source;
  return html`<h1>${source.name}</h1>
    ${totals && html`<ul class="figures">
      <${Figure} number=${totals.placed} label="pods on nodes at the end" />
      <${Figure} number=${totals.unschedulable} label="pods waiting at the end" />
      <${Figure} number=${totals.nodes} label="nodes at the end" />
    </ul>${totals.gone && html`<p>${totals.gone}.</p>`}`}
    <p>${doing || "The log of the run is read to show each moment of it."}</p>
    <progress aria-label=${unit === "run" ? "Runs done" : "Pods created"} max=${totalCount || 1} value=${totalCount ? doneCount : undefined}></progress>
    <p class="note">${totalCount ? `${count(doneCount)} of ${plural(totalCount, unit)}` : "reading"}</p>`;
}

function Figure({ number, label }) {
  return html`<li><b>${count(number)}</b><span>${label}</span></li>`;
}

const root = document.getElementById("app");
root.replaceChildren();
keepFocus(root);
render(html`<${App} />`, root);
