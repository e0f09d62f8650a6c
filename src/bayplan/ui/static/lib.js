// What all views use: Preact, questions to the server, the address of the page, and formats.
export {
  html, render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from "./vendor/htm-preact.js";
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { live, useVersion } from "./live.js";

// ---- questions ------------------------------------------------------------------------------

export function query(params) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, value);
  }
  return search.toString();
}

// With two runs, the address names the second one as run=1; questions are about that run.
const withRun = (params) => ({ run: readRoute().params.run, ...params });

export async function ask(view, params = {}, signal = undefined) {
  // Pages of other sites cannot send this header, so they cannot start a computation.
  const headers = { "X-Bayplan-Page": "1" };
  const response = await fetch(`api/${view}?${query(withRun(params))}`, { signal, headers });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error || response.statusText);
  return body;
}

export function tableAddress(name, params) {
  return `api/${name}.csv?${query(withRun(params))}`;
}

// The answer to a question. While a newer question is open, the older answer stays on the page.
// Questions about the present of a running scheduler (`at` without a value) are asked again at each
// tick, one after the other.
export function useAnswer(view, params) {
  const [answer, setAnswer] = useState({ data: null, error: "" });
  const key = view === null ? "" : `${view}?${query(withRun(params))}`;
  const again = useRef(() => {});
  useEffect(() => {
    again.current = () => {};
    if (view === null) {
      setAnswer({ data: null, error: "" });
      return undefined;
    }
    const control = new AbortController();
    let isOpen = false;
    let isLate = false;
    const load = async () => {
      if (isOpen) {
        isLate = true;
        return;
      }
      isOpen = true;
      try {
        const data = await ask(view, params, control.signal);
        if (!control.signal.aborted) setAnswer({ data, error: "", key });
      } catch (problem) {
        // Without an answer of the server, the frame of the page says so.
        const isLost = problem instanceof TypeError && live.source !== null;
        if (problem.name !== "AbortError" && !isLost) setAnswer({ data: null, error: problem.message, key });
      }
      isOpen = false;
      if (isLate && !control.signal.aborted) {
        isLate = false;
        load();
      }
    };
    again.current = load;
    load();
    return () => control.abort();
  }, [key]);
  const version = useVersion("at" in params && params.at === undefined);
  const lastVersion = useRef(version);
  useEffect(() => {
    if (version === lastVersion.current) return;
    lastVersion.current = version;
    again.current();
  }, [version]);
  return { ...answer, isCurrent: answer.key === key };
}

// ---- the address of the page ------------------------------------------------------------------

// "#/nodes?at=12" → {view: "nodes", params: {at: "12"}}. The address is the whole state of the
// page, so that it survives a reload and can be sent to a colleague.
export function readRoute() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "overview", params: Object.fromEntries(new URLSearchParams(search)) };
}

export function address(view, params = {}) {
  const search = query(withRun(params));
  return `#/${view}${search ? `?${search}` : ""}`;
}

export function go(view, params, { replace = false } = {}) {
  const target = address(view, params);
  if (target === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  window.dispatchEvent(new Event("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(readRoute());
  useEffect(() => {
    const update = () => setRoute(readRoute());
    window.addEventListener("hashchange", update);
    window.addEventListener("popstate", update);
    return () => {
      window.removeEventListener("hashchange", update);
      window.removeEventListener("popstate", update);
    };
  }, []);
  return route;
}

// ---- formats --------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const EXACT_LENGTH_MAX = 6;
const CPU_LENGTH_MAX = 5;

export const count = (number) => whole.format(number);
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// Amounts as kubectl and the commands have them (answers/amounts.py): a long one is rounded up.
export function amount(resource, number) {
  const isBytes = resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
  if (resource !== "cpu" && !isBytes) return count(number);
  const sizes = resource === "cpu" ? [["", 1000], ["m", 1]] : UNITS.map((unit, power) => [unit, 1024 ** power]).reverse();
  const [unit, size] = sizes.find(([, one]) => number && number % one === 0) ?? ["", 1];
  const exact = `${number / size}${unit}`;
  if (exact.length <= (resource === "cpu" ? CPU_LENGTH_MAX : EXACT_LENGTH_MAX)) return exact;
  const [shortUnit, larger] = resource === "cpu" ? ["", 1000] : sizes.find(([, one]) => number >= 10 * one) ?? ["", 1];
  const fine = resource === "cpu" ? 100 : 10;
  const scale = number < 100 * larger ? fine : fine / 10;
  return `${Math.ceil((number * scale) / larger) / scale}${shortUnit}`;
}

export function percent(share) {
  if (share === null || !Number.isFinite(share)) return "–";
  const hundred = share * 100;
  return `${hundred > 0 && hundred < 10 ? hundred.toFixed(1) : Math.round(hundred)}%`;
}

// A moment: seconds of a run, or the clock of a running scheduler.
export function time(seconds) {
  return live.source === null ? duration(seconds) : clock(live.startMs + 1000 * seconds);
}

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

// A moment of the browser's clock, in milliseconds.
export function clock(milliseconds) {
  const moment = new Date(milliseconds);
  const isToday = moment.toDateString() === new Date().toDateString();
  return isToday ? hours.format(moment) : `${days.format(moment)} ${hours.format(moment)}`;
}

export function duration(seconds) {
  if (seconds < 120) return `${short.format(seconds)} s`;
  const [d, h] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24];
  const [m, s] = [Math.floor(seconds / 60) % 60, Math.floor(seconds % 60)];
  const parts = d ? [[d, "d"], [h, "h"]] : h ? [[h, "h"], [m, "m"]] : [[m, "m"], [s, "s"]];
  return parts.filter(([number]) => number).map(([number, unit]) => `${number} ${unit}`).join(" ");
}

// ---- small parts ------------------------------------------------------------------------------

const NAME_MAX = 64;

// What the views are about. Its `nodeSuffix` is the suffix that the names of all nodes share, such as
// ".eu-west-1.compute.internal". It tells nothing about a single node.
export const shown = { source: null };

// A name of an object in a table, without the suffix that the names of all nodes share. A long name loses its
// middle, because names often differ at their end. The title has the whole name, and so has the page of the object.
export function Name({ text, length = NAME_MAX }) {
  const suffix = shown.source?.nodeSuffix;
  const own = suffix && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  if (own.length <= length) return own === text ? text : html`<span title=${text}>${own}</span>`;
  const half = Math.floor((length - 1) / 2);
  return html`<span title=${text}>${own.slice(0, half)}…${own.slice(own.length - half)}</span>`;
}

// A resource. It breaks after the domain.
export function ResourceName({ resource }) {
  const [domain, name] = resource.split("/");
  return name === undefined ? domain : html`${domain}/<wbr />${name}`;
}

// A button that can do nothing now. It stays in the order of the keyboard and has its focus.
export function Button({ isOff = false, onClick, children, ...rest }) {
  const press = (event) => {
    if (isOff) event.preventDefault();
    else onClick?.(event);
  };
  return html`<button ...${rest} aria-disabled=${isOff ? "true" : undefined} onClick=${press}>${children}</button>`;
}

// The first `few` of a list, and a button that shows all: [what is shown, the button].
export function useFew(all, few, words) {
  const [isWhole, setWhole] = useState(false);
  if (all.length <= few) return [all, null];
  const button = html`<p><button aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>${isWhole ? `Show ${count(few)} ${words}` : `Show all ${count(all.length)} ${words}`}</button></p>`;
  return [isWhole ? all : all.slice(0, few), button];
}

export function Bar({ share, label }) {
  const width = Math.max(0, Math.min(1, share || 0)) * 100;
  return html`<span class="bar" title=${label}>
    <span class="bar-fill" style=${{ width: `${width}%` }}></span>
  </span>`;
}

export function Problem({ text }) {
  return text ? html`<p class="problem" role="alert">${text}</p>` : null;
}

export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

export function Fold({ text, isOpen = false, children }) {
  return html`<details class="fold" open=${isOpen}><summary>${text}</summary>${children}</details>`;
}

export function Loading() {
  return html`<p class="loading">Loading…</p>`;
}

// A search field that speaks when typing pauses.
export function Search({ label, value, onSearch }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onSearch(text), 150);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class="search">
    <span class="visually-hidden">${label}</span>
    <input type="search" value=${text} placeholder=${label}
      onInput=${(event) => setText(event.currentTarget.value)} />
  </label>`;
}

// The name of a node: offers the names that have what is typed. `onText`: at each letter; `onNode`: when it is chosen.
export function NodeInput({ at, value, onText = () => {}, onNode = () => {} }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const { data } = useAnswer(text ? "nodes" : null, { at, search: text, limit: 12 });
  const type = (next) => {
    setText(next);
    onText(next);
  };
  return html`<label>Node <input list="node-names" value=${text} placeholder="name" onInput=${(event) => type(event.currentTarget.value)} onChange=${(event) => onNode(event.currentTarget.value)} />
    <datalist id="node-names">${(data?.rows ?? []).map((row) => html`<option key=${row.name} value=${row.name} />`)}</datalist></label>`;
}

// The heading of a column that sorts its table: from the smallest value, from the largest, and as it was.
export function SortHeading({ column, sort, onSort, isNumber = false, span = 1, children }) {
  const isUp = sort === column;
  const isDown = sort === `-${column}`;
  const [first, second] = isNumber ? [`-${column}`, column] : [column, `-${column}`];
  const next = sort === first ? second : sort === second ? undefined : first;
  return html`<th class=${isNumber ? "number" : undefined} colspan=${span} aria-sort=${isUp ? "ascending" : isDown ? "descending" : undefined}>
    <button class="sort" onClick=${() => onSort(next)}>${children}<span class="sort-mark" aria-hidden="true">${isUp ? "▲" : isDown ? "▼" : ""}</span></button></th>`;
}

// A choice among what a table has; the first entry lets all rows pass.
export function Choice({ label, value, options, first = "all", onChoose }) {
  const shown = value && !options.includes(value) ? [value, ...options] : options;
  if (!shown.length) return null;
  return html`<label>${label} <select value=${value} onChange=${(event) => onChoose(event.currentTarget.value || undefined)}>
    <option value="">${first}</option>${shown.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`;
}

export function Pager({ page, size, onOffset }) {
  if (!page || page.total <= size) return null;
  const last = Math.min(page.offset + size, page.total);
  return html`<nav class="pager" aria-label="Pages">
    <${Button} isOff=${page.offset === 0}
      onClick=${() => onOffset(Math.max(0, page.offset - size))}>Previous</${Button}>
    <span>${count(page.offset + 1)}–${count(last)} of ${count(page.total)}</span>
    <${Button} isOff=${last >= page.total}
      onClick=${() => onOffset(page.offset + size)}>Next</${Button}>
  </nav>`;
}
