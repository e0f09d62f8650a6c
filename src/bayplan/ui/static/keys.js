// The keys of the whole page: "/" opens one search for everything, "?" lists the keys.
import {
  Empty, Name, address, ask, count, html, useEffect, useRef, useState,
} from "./lib.js";
import { askComputed, isPast } from "./computed.js";
import { live } from "./live.js";

const SHOWN = 8;
const SNAPSHOT_MS = 60000;
const EMPTY = { total: 0, rows: [] };
const PAUSE_MS = 150;
// View, how its entries are called, and the field of the address that names one.
const KINDS = [["pods", "Pods", "name"], ["nodes", "Nodes", "node"], ["groups", "Groups", "name"], ["objects", "All objects, as YAML", "name"]];
const KEYS = [
  ["/", "search pods, nodes, groups and all objects"],
  ["?", "list the keys"],
  ["Esc", "close a window or the panel of a node"],
  ["Tab", "go to the next link, field or button"],
  ["← → ↑ ↓", "on the map of nodes: move; on the time bar: one step"],
  ["Enter", "on the map of nodes: open the node"],
];

// A key that is typed into a field is not a key of the page.
const isTyping = (element) => element.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName);

export function Keys({ source, at }) {
  const [open, setOpen] = useState("");
  const searchable = source.kind !== "shadow" && source.kind !== "comparison";
  useEffect(() => {
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const wanted = event.key === "/" && searchable ? "search" : event.key === "?" ? "keys" : "";
      if (!wanted) return;
      event.preventDefault();
      setOpen(wanted);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [searchable]);
  const close = () => setOpen("");
  return html`${searchable && html`<button class="quiet" onClick=${() => setOpen("search")} title="Key /">Search</button>`}
    <button class="quiet" onClick=${() => setOpen("keys")} aria-label="Keys" title="Key ?">?</button>
    ${open === "search" && html`<${Window} label="Search" onClose=${close}><${SearchAll} source=${source} at=${at} onClose=${close} /></${Window}>`}
    ${open === "keys" && html`<${Window} label="Keys" onClose=${close}><${KeyList} /></${Window}>`}`;
}

// A window over the page. The browser keeps the focus in it and gives it back.
function Window({ label, onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    element.current.showModal();
    return () => element.current?.close();
  }, []);
  const press = (event) => {
    if (event.target === element.current) onClose();
  };
  return html`<dialog ref=${element} aria-label=${label} onClose=${onClose} onClick=${press}>
    <div class="panel-head"><h2>${label}</h2><button class="quiet" onClick=${onClose} aria-label="Close">✕</button></div>
    ${children}</dialog>`;
}

function KeyList() {
  return html`<dl class="keys">${KEYS.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>`;
}

function SearchAll({ source, at, onClose }) {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState(null);
  const first = useRef(null);
  const isShown = { groups: source.hasGroups, objects: source.hasModel && !isPast(at) };
  const kinds = KINDS.filter(([view]) => isShown[view] ?? true);
  useEffect(() => {
    if (!text) {
      setAnswer(null);
      return undefined;
    }
    const control = new AbortController();
    const timer = setTimeout(async () => {
      const search = { at, search: text, limit: SHOWN };
      const show = (pages) => pages && !control.signal.aborted && setAnswer({ text, pages });
      const others = kinds.filter(([view]) => view !== "objects");
      const pages = await Promise.all(others.map(([view]) => ask(view, search, control.signal))).catch(() => null);
      show(pages);
      // The engine has the objects, and may be busy.
      if (others.length < kinds.length) show(pages && [...pages, await askComputed("objects", live.source ? { ...search, snapshot: Math.floor(Date.now() / SNAPSHOT_MS) } : search, control.signal).catch(() => EMPTY)]);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, at]);
  const submit = (event) => {
    event.preventDefault();
    first.current?.querySelector("a")?.click();
  };
  return html`<form onSubmit=${submit}><input type="search" aria-label="A part of a name" autofocus value=${text}
      placeholder="A part of the name of a pod, node or group" onInput=${(event) => setText(event.currentTarget.value)} /></form>
    <div ref=${first} aria-live="polite" onClick=${(event) => event.target.closest("a") && onClose()}>
      ${answer && kinds.map(([view, title, field], index) => html`<${Results} key=${view} view=${view} title=${title} field=${field} at=${at} page=${answer.pages[index]} />`)}
      ${answer?.pages.length === kinds.length && answer.pages.every((page) => !page.total) && html`<${Empty}>Nothing has “${answer.text}” in its name.</${Empty}>`}</div>`;
}

function Results({ view, title, field, at, page }) {
  if (!page?.total) return null;
  return html`<h3>${title} <small>${count(page.total)}</small></h3>
    <ul class="results">${page.rows.map((row) => html`<li key=${`${row.kind} ${row.name}`}>${row.kind && view === "objects" ? html`<a class="name" href=${address("object", { at, kind: row.kind, name: row.name })}>${row.kind} <${Name} text=${row.name} /></a>`
      : html`<a class="name" href=${address(view, { at, [field]: row.name })}><${Name} text=${row.name} /></a>`}</li>`)}</ul>`;
}
