// Waiting: why the pods without a node wait, the largest group first, with fixes.
import { CauseParts, WakeEvents, causeTitle } from "./causes.js";
import { Computing, isPast, useComputed } from "./computed.js";
import { FindFixes, Fix, areFixesSearched } from "./explanation.js";
import {
  Bar, Empty, Fold, Loading, Name, Pager, Problem, address, count, duration, go, html, percent, plural, shown, tableAddress, time, useAnswer,
  useEffect, useState,
} from "./lib.js";
import { PodTable, timesOf } from "./podtable.js";

const PAGE = 50;

export function Waiting({ source, params }) {
  const isAsked = source.hasModel && !isPast(params.at);
  return html`<h1>Waiting</h1>
    ${isAsked && html`<${Pending} source=${source} params=${params} />`}
    ${isAsked ? html`<${Fold} text=${source.hasDecisions ? "By the reasons of the last attempts" : "By the reasons of one attempt at each pod"} isOpen=${Boolean(params.cause) || !areFixesSearched(source, params)}><${Recorded} params=${params} /></${Fold}>`
      : html`<${Recorded} params=${params} />`}`;
}

// The answer of `bayplan why --all-pending`: by workload and decisive cause, with fixes.
function Pending({ source, params }) {
  const { at, workload, offset } = params;
  const isOpen = areFixesSearched(source, params);
  // Without an offset in the address, the page that has the open workload.
  const [sought, setSought] = useState(workload);
  const place = offset === undefined ? { workload: sought } : { offset };
  const state = useComputed(isOpen ? "pending" : null, { at, ...place, limit: PAGE });
  const { data } = state;
  useEffect(() => {
    if (workload && data && !data.groups.some((group) => group.workload === workload)) setSought(workload);
  }, [workload, data]);
  const turn = (changes) => go("waiting", { ...params, ...changes }, { replace: true });
  const turnTo = (next) => {
    setSought(undefined);
    turn({ offset: next || undefined, workload: undefined });
  };
  return html`<section aria-label="Causes and fixes" tabindex="-1">
    ${!isOpen && html`<${FindFixes} source=${source} view="waiting" params=${params} />`}
    <${Computing} state=${state} text="The causes and fixes are tried in the engine…" />
    ${data && !state.error && html`<div class=${state.isComputing ? "stale" : ""}>
      ${!data.pods ? html`<${Empty}>No pod waits at this moment.</${Empty}>` : html`
      <div class="controls"><span class="note">${pendingText(data)}</span>
        <a class="csv" href=${tableAddress("pending", { at, snapshot: state.snapshot })} download>CSV</a></div>
      <ol class="causes">${data.groups.map((group) => html`<${PendingCard} key=${`${group.workload} ${group.cause}`} group=${group} at=${at} total=${data.pods}
        isOpen=${workload === group.workload} onToggle=${() => turn({ workload: workload === group.workload ? undefined : group.workload })} />`)}</ol>
      <${Pager} page=${data} size=${PAGE} onOffset=${turnTo} />`}</div>`}
  </section>`;
}

function pendingText({ pods, fitting, total, trials }) {
  const waiting = `${plural(pods - fitting, "pod")} ${pods - fitting === 1 ? "waits" : "wait"} in ${plural(total, "group")} of one workload and cause`;
  return `${waiting}${fitting ? `; ${plural(fitting, "pod")} more ${fitting === 1 ? "gets" : "get"} a node as things are` : ""}. ${plural(trials, "change")} tried.`;
}

function PendingCard({ group, at, total, isOpen, onToggle }) {
  return html`<${Card} pods=${group.pods} total=${total} title=${group.cause} isOpen=${isOpen} onToggle=${onToggle}
    table=${{ at, filter: { workload: group.workload, state: "waiting" } }}>
    <p class="name">${group.workload}</p>
    ${group.shortMessage && group.shortMessage !== group.cause && html`<p class="note name">${/^\d/.test(group.shortMessage) && "Nodes: "}${group.shortMessage}</p>`}
    ${group.fix ? html`<div class="fix"><${Fix} fix=${group.fix} at=${at} /></div>` : html`<p class="note">${group.isSearched ? "No fix was found." : "No fix was tried."}</p>`}
    <p class="note">For example <a href=${address("pods", { at, name: group.examples[0] })}><${Name} text=${group.examples[0]} /></a></p></${Card}>`;
}

// The causes that the journal has.
function Recorded({ params }) {
  const { at, cause } = params;
  // The page of the open cause, or the one that the buttons chose.
  const [place, setPlace] = useState({ cause });
  const { data, error } = useAnswer("waiting", { at, ...place, limit: PAGE });
  useEffect(() => {
    const isShown = data?.groups.some((group) => String(group.number) === cause);
    if (cause && !isShown) setPlace({ cause });
  }, [cause]);
  const turn = (offset) => {
    setPlace({ offset });
    go("waiting", { ...params, cause: undefined }, { replace: true });
  };
  if (error) return html`<${Problem} text=${error} />`;
  if (!data) return html`<${Loading} />`;
  if (!data.total) return html`<${Empty}>No pod waits at this moment.</${Empty}>`;
  return html`<div class="controls"><span class="note">${data.total === 1 ? "1 pod waits" : `${count(data.total)} pods wait`}, for ${plural(data.causeCount, "cause")}. The largest group is first.</span>
      <a class="csv" href=${tableAddress("waiting", { at })} download>CSV</a></div>
    <ol class="causes">${data.groups.map((group) => html`<${CauseCard} key=${group.number} group=${group} total=${data.total}
      now=${data.seconds} at=${at} isOpen=${cause === String(group.number)} params=${params} />`)}</ol>
    <${Pager} page=${{ total: data.causeCount, offset: data.offset }} size=${PAGE} onOffset=${turn} />`;
}

const rounded = (seconds) => (seconds >= 10 ? Math.round(seconds) : seconds);

function CauseCard({ group, total, now, at, isOpen, params }) {
  const toggle = () => go("waiting", { ...params, cause: isOpen ? undefined : group.number }, { replace: true });
  return html`<${Card} pods=${group.pods} total=${total} title=${causeTitle(group)} isOpen=${isOpen} onToggle=${toggle} table=${{ at, filter: { cause: group.number } }}>
    <${CauseParts} cause=${group.cause} />
    <p class="note">The oldest, <a href=${address("pods", { at, name: group.example })}><${Name} text=${group.example} /></a>, has waited since ${time(group.sinceSeconds)}${now > group.sinceSeconds ? `, for ${duration(rounded(now - group.sinceSeconds))}` : ""}.</p>
    <${WakeEvents} events=${group.events} /></${Card}>`;
}

// Pods with one cause: how many, why, and the table of them.
function Card({ pods, total, title, isOpen, onToggle, table, children }) {
  return html`<li class="cause">
    <div class="cause-head">
      <div class="cause-count"><b>${count(pods)}</b><span>${pods === 1 ? "pod" : "pods"}</span>
        <${Bar} share=${pods / total} label=${percent(pods / total)} /></div>
      <div class="cause-text"><h2>${title}</h2>${children}</div>
      <button aria-expanded=${isOpen} onClick=${onToggle}>${isOpen ? "Hide pods" : "Show pods"}</button>
    </div>
    ${isOpen && html`<div class="cause-pods"><${PodTable} ...${table} show=${[...timesOf(shown.source, "attempts"), "requests"]} empty="No pod." /></div>`}
  </li>`;
}
