// A running scheduler: its ticks, and what the page says about its replica.
//
// A tick says that something changed. The views then ask again for what they show. A page in the
// background follows nothing.
import { html, useEffect, useState } from "./vendor/htm-preact.js";

const REOPEN_MS = 3000;
const RENEW_MS = 15000;

// `source`: the answer `sources` of a running scheduler, or null. `version` counts ticks.
export const live = {
  source: null, startMs: 0, tick: null, version: 0, lostMs: 0, isRestarted: false,
};
const listeners = new Set();

function changed() {
  for (const listener of listeners) listener();
}

function useChanges() {
  const [, setCount] = useState(0);
  useEffect(() => {
    const listener = () => setCount((count) => count + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
}

// Counts the ticks, if a view shows the present.
export function useVersion(isPresent) {
  const [version, setVersion] = useState(live.version);
  useEffect(() => {
    if (!isPresent) return undefined;
    const listener = () => setVersion(live.version);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, [isPresent]);
  return isPresent ? version : 0;
}

export function setLive(source) {
  if (live.source && source.started !== live.source.started) live.isRestarted = true;
  live.source = source;
  live.startMs = Date.parse(source.started);
}

// Follows the scheduler until the returned function is called. `renew`: ask for the source again.
export function follow(renew) {
  let stream = null;
  let timer = 0;
  const lost = () => {
    live.lostMs ||= Date.now();
    changed();
    // A stream that the server ends or refuses is opened again.
    if (stream?.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
  };
  const heard = (event) => {
    const tick = JSON.parse(event.data);
    if (tick.started !== live.source.started) renew();
    live.tick = tick;
    live.lostMs = 0;
    live.version += 1;
    changed();
  };
  const open = () => {
    close();
    if (document.hidden) return;
    stream = new EventSource("api/events");
    stream.onmessage = heard;
    stream.onerror = lost;
  };
  const close = () => {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  };
  const renewal = setInterval(() => document.hidden || live.lostMs || renew(), RENEW_MS);
  document.addEventListener("visibilitychange", open);
  window.addEventListener("pagehide", close);
  open();
  return () => {
    clearInterval(renewal);
    document.removeEventListener("visibilitychange", open);
    window.removeEventListener("pagehide", close);
    close();
  };
}

// ---- what the page says -----------------------------------------------------------------------

const clockText = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
// A stream ends from time to time, and the browser opens the next one within seconds.
const PATIENCE_MS = 6000;

function words() {
  const { source, tick, lostMs } = live;
  const { replica, leader, reason = "" } = tick ?? source;
  if (lostMs && (reason || Date.now() - lostMs > PATIENCE_MS)) {
    const text = reason || `The scheduler has not answered since ${clockText.format(lostMs)}.`;
    return ["lost", "No connection", `${text} The page shows what was last, and tries again.`];
  }
  if (reason) return ["lost", "Ended", reason];
  if (replica === "standby") {
    const who = leader ? `${leader} leads` : "no replica is known to lead";
    return ["standby", "Standby", `This replica watches and schedules nothing: ${who}.`];
  }
  if (replica === "starting") return ["standby", "Starting", "The objects of the cluster are being listed."];
  if (replica === "stopping") return ["standby", "Stopping", "Bindings under way are being finished. No further attempt starts."];
  return ["leading", "Leading", ""];
}

export function ReplicaState() {
  useChanges();
  useEffect(() => {
    // A silent stream causes no event, so a timer looks at the time since the last tick.
    const timer = setInterval(changed, PATIENCE_MS / 2);
    return () => clearInterval(timer);
  }, []);
  const [kind, name, text] = words();
  return html`<div class="replica" role="status">
    <span class=${`replica-state ${kind}`}>${name}</span>
    ${text && html`<span class="replica-text">${text}</span>`}
    ${live.isRestarted && html`<span class="replica-text">The scheduler was started again at ${clockText.format(live.startMs)}. It remembers nothing from before.</span>`}
  </div>`;
}

// The moments that the page can show: [first, last], in seconds of the run or of the scheduler.
export function useSpan(source = live.source) {
  useChanges();
  const { startSeconds, endSeconds } = source;
  return live.tick ? [live.tick.startSeconds, live.tick.seconds] : [startSeconds, endSeconds];
}
