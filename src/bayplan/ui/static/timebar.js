// The time of the page: a slider over the run, with play, pause and steps.
//
// The position is the number of a change; the address has it as `at`, and without it the page shows
// the end. Where time passes in the run, the slider moves in time; otherwise it moves in changes.
import { Button, ask, count, go, html, time, useEffect, useRef, useState } from "./lib.js";
import { ReplicaState, useSpan } from "./live.js";

const FRAME_MS = 350;
const FRAMES = 80;
const SLIDER_STEPS = 1000;

export function TimeBar({ source, route }) {
  return source.kind === "live" ? html`<${LiveBar} route=${route} />` : html`<${RunBar} source=${source} route=${route} />`;
}

// The time of a running scheduler: its present, which the page follows, or a moment of its memory.
function LiveBar({ route }) {
  const [first, now] = useSpan();
  const at = Number.parseFloat(route.params.at);
  const isPresent = Number.isNaN(at);
  const seconds = isPresent ? now : Math.max(first, Math.min(now, at));
  const move = (moment) => go(route.view, {
    ...route.params, at: moment === undefined || moment >= now ? undefined : Math.max(first, moment),
  }, { replace: true });
  const step = async (by) => {
    const answer = await ask("moment", { at: isPresent ? undefined : at, step: by });
    move(by > 0 && answer.seconds <= seconds ? undefined : answer.seconds);
  };
  const slide = (event) => {
    const value = Number(event.currentTarget.value);
    move(value >= SLIDER_STEPS ? undefined : first + (value / SLIDER_STEPS) * (now - first));
  };
  return html`<section class="timebar" aria-label="Time">
    <div class="buttons">
      <button onClick=${() => (isPresent ? move(now - 0.001) : move(undefined))} aria-label=${isPresent ? "Pause" : "Follow the present"}>${isPresent ? "❚❚" : "▶"}</button>
      <${Button} onClick=${() => step(-1)} isOff=${seconds <= first} aria-label="One change back">‹</${Button}>
      <${Button} onClick=${() => step(1)} isOff=${isPresent} aria-label="One change forward">›</${Button}>
    </div>
    <input type="range" aria-label="Time of the scheduler" aria-valuetext=${time(seconds)} min="0" max=${SLIDER_STEPS}
      value=${isPresent || now <= first ? SLIDER_STEPS : Math.round(((seconds - first) / (now - first)) * SLIDER_STEPS)} onInput=${slide} />
    <output class="moment"><b>${time(seconds)}</b> <span>${isPresent ? "now, following" : `remembered since ${time(first)}`}</span></output>
    <${ReplicaState} />
  </section>`;
}

function RunBar({ source, route }) {
  const { lastChange, endSeconds } = source;
  const hasDuration = endSeconds > 0;
  const byTime = hasDuration && route.params.axis !== "changes";
  const at = position(route, lastChange);
  const [seconds, setSeconds] = useState(endSeconds);
  const [isPlaying, setPlaying] = useState(false);
  // The newest question about a time, and the last one that has its answer.
  const latest = useRef(0);
  const lastNumber = useRef(0);

  const move = (change) => {
    const bounded = Math.max(0, Math.min(lastChange, change));
    const params = { ...route.params, at: bounded === lastChange ? undefined : bounded };
    go(route.view, params, { replace: true });
  };
  const moveToTime = async (moment) => {
    const number = ++latest.current;
    setSeconds(moment);
    const answer = await ask("moment", { seconds: moment }).catch(() => null);
    if (number !== latest.current) return;
    lastNumber.current = number;
    if (answer) move(answer.change);
  };

  useEffect(() => {
    // The slider stays at the newest time that it asked about. An older answer would move it back
    // before the next key press.
    const number = latest.current;
    if (lastNumber.current !== number) return undefined;
    let isOver = false;
    ask("moment", { at }).then((answer) => {
      if (!isOver && number === latest.current) setSeconds(answer.seconds);
    }).catch(() => {});
    return () => { isOver = true; };
  }, [at]);

  useEffect(() => {
    if (!isPlaying) return undefined;
    if (at >= lastChange) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => {
      if (byTime) moveToTime(Math.min(endSeconds, seconds + endSeconds / FRAMES));
      else move(at + Math.max(1, Math.round(lastChange / FRAMES)));
    }, FRAME_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, at, seconds, byTime]);

  const play = async () => {
    if (!isPlaying && at >= lastChange) {
      if (byTime) await moveToTime(0);
      else move(0);
    }
    setPlaying(!isPlaying);
  };
  const slide = (event) => {
    const value = Number(event.currentTarget.value);
    setPlaying(false);
    if (byTime) moveToTime((value / SLIDER_STEPS) * endSeconds);
    else move(value);
  };
  const text = `${time(seconds)}, change ${count(at)} of ${count(lastChange)}`;
  return html`<section class="timebar" aria-label="Time">
    <div class="buttons">
      <button onClick=${play} aria-label=${isPlaying ? "Pause" : "Play"}>${isPlaying ? "❚❚" : "▶"}</button>
      <${Button} onClick=${() => move(at - 1)} isOff=${at <= 0} aria-label="One change back">‹</${Button}>
      <${Button} onClick=${() => move(at + 1)} isOff=${at >= lastChange} aria-label="One change forward">›</${Button}>
    </div>
    <input type="range" aria-label="Time of the run" aria-valuetext=${text} min="0"
      max=${byTime ? SLIDER_STEPS : lastChange}
      value=${byTime ? Math.round((seconds / endSeconds) * SLIDER_STEPS) : at}
      onInput=${slide} />
    <output class="moment"><b>${time(seconds)}</b> <span>change ${count(at)} of ${count(lastChange)}</span></output>
    ${hasDuration && html`<label class="axis">Axis
      <select value=${byTime ? "time" : "changes"} onChange=${(event) => go(route.view, {
        ...route.params, axis: event.currentTarget.value === "changes" ? "changes" : undefined,
      }, { replace: true })}>
        <option value="time">time</option><option value="changes">changes</option>
      </select></label>`}
  </section>`;
}

export function position(route, lastChange) {
  const at = Number.parseInt(route.params.at, 10);
  return Number.isInteger(at) ? Math.max(0, Math.min(lastChange, at)) : lastChange;
}
