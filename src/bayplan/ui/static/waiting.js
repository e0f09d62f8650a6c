// Waiting: the pods without a node, grouped by cause, the largest group first.
import {
  Bar, Empty, Loading, Name, Pager, Problem, address, count, duration, go, html, percent, plural, tableAddress, time, useAnswer,
  useEffect, useState,
} from "./lib.js";
import { CauseParts, WakeEvents, causeTitle } from "./causes.js";
import { PodTable } from "./podtable.js";

const PAGE = 50;

export function Waiting({ params }) {
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
  return html`<h1>Waiting</h1>
    ${!data.total ? html`<${Empty}>No pod waits at this moment.</${Empty}>` : html`
    <div class="controls"><span class="note">${data.total === 1 ? "1 pod waits" : `${count(data.total)} pods wait`}, for ${plural(data.causeCount, "cause")}. The largest group is first.</span>
      <a class="csv" href=${tableAddress("waiting", { at })} download>CSV</a></div>
    <ol class="causes">${data.groups.map((group) => html`<${CauseCard} key=${group.number} group=${group} total=${data.total}
      now=${data.seconds} at=${at} isOpen=${cause === String(group.number)} params=${params} />`)}</ol>
    <${Pager} page=${{ total: data.causeCount, offset: data.offset }} size=${PAGE} onOffset=${turn} />`}`;
}

const rounded = (seconds) => (seconds >= 10 ? Math.round(seconds) : seconds);

function CauseCard({ group, total, now, at, isOpen, params }) {
  const toggle = () => go("waiting", { ...params, cause: isOpen ? undefined : group.number }, { replace: true });
  return html`<li class="cause">
    <div class="cause-head">
      <div class="cause-count"><b>${count(group.pods)}</b><span>${group.pods === 1 ? "pod" : "pods"}</span>
        <${Bar} share=${group.pods / total} label=${percent(group.pods / total)} /></div>
      <div class="cause-text"><h2>${causeTitle(group)}</h2>
        <${CauseParts} cause=${group.cause} />
        <p class="note">The oldest, <a href=${address("pods", { at, name: group.example })}><${Name} text=${group.example} /></a>, has waited since ${time(group.sinceSeconds)}${now > group.sinceSeconds ? `, for ${duration(rounded(now - group.sinceSeconds))}` : ""}.</p>
        <${WakeEvents} events=${group.events} />
      </div>
      <button aria-expanded=${isOpen} onClick=${toggle}>${isOpen ? "Hide pods" : "Show pods"}</button>
    </div>
    ${isOpen && html`<div class="cause-pods"><${PodTable} at=${at} filter=${{ cause: group.number }}
      show=${["since", "attempts", "requests"]} empty="No pod." /></div>`}
  </li>`;
}
