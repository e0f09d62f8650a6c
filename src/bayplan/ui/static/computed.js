// Answers that the server computes in the background: asked again until they are there.
//
// The engine answers about the present of a running scheduler. Questions of one component are about
// one snapshot, which has a number; `renew` takes another one.
import { Button, Problem, ask, clock, html, query, readRoute, useEffect, useState } from "./lib.js";
import { live } from "./live.js";

const POLL_MS = 400;

// The answer to a question of the engine. Raises when there is none, and when `signal` aborts.
export async function askComputed(view, params, signal) {
  for (;;) {
    const answer = await ask(view, params, signal);
    if (answer.phase === "failed") throw new Error(answer.problem);
    if (answer.phase !== "computing") return { ...answer.value, total: answer.total, offset: answer.offset };
    await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
    signal.throwIfAborted();
  }
}

// The last answer stays on the page while the next one is computed.
export function useComputed(view, questionParams) {
  const [state, setState] = useState({ data: null, error: "", isComputing: false, key: "" });
  const [snapshot, setSnapshot] = useState(Date.now);
  const params = live.source ? { ...questionParams, snapshot } : questionParams;
  const key = view === null ? "" : `${view}?${query({ run: readRoute().params.run, ...params })}`;
  useEffect(() => {
    if (view === null) {
      setState({ data: null, error: "", isComputing: false, key });
      return undefined;
    }
    const control = new AbortController();
    setState((old) => ({ ...old, error: "", isComputing: true }));
    const end = (data, error) => {
      if (!control.signal.aborted) setState({ data, error, isComputing: false, key });
    };
    askComputed(view, params, control.signal).then((data) => end(data, ""), (problem) => end(null, problem.message));
    return () => control.abort();
  }, [key]);
  return { ...state, snapshot: live.source ? snapshot : undefined, renew: () => setSnapshot(Date.now()) };
}

// When a running scheduler was asked, and the way to ask it again.
function Snapshot({ state }) {
  if (!live.source || !(state.data || state.error)) return null;
  return html`<p class="note">The state at ${clock(state.snapshot)}. <${Button} class="quiet" isOff=${state.isComputing} onClick=${state.renew}>Ask again</${Button}></p>`;
}

// Whether a view is about the past of a running scheduler, about which the engine is not asked.
export const isPast = (at) => live.source !== null && at !== undefined;

export function Computing({ state, text }) {
  // One element, whatever is in it: parts that come and go would change places with what follows.
  return html`<div class="computing"><${Snapshot} state=${state} /><${Problem} text=${state.error} />
    ${state.isComputing && !state.error && html`<p class=${state.data ? "note" : "loading"} role="status">${text}</p>`}</div>`;
}
