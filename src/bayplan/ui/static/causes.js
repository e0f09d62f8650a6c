// The cause for which pods wait: its title, its parts and what ends it.
import { html, time } from "./lib.js";

export const KIND_TITLES = {
  unschedulable: "Rejected by filters",
  gated: "Gated before the queue",
  error: "The attempt failed with an error",
  permit: "Waits at Permit",
  group: "The pod group waits",
  new: "Not tried yet",
  fits: "Fits now",
};

// A group of waiting pods by its reasons in short words: "Nodes lack cpu, cordoned".
export const causeTitle = (group) => (group.words ? `${group.words.startsWith("no node") ? "" : "Nodes: "}${group.words}` : KIND_TITLES[group.cause.kind] ?? group.cause.kind);

// Since when pods wait for a cause: of files, since the creation of the oldest of them; "": unknown.
export function sinceText(source, group) {
  if (source.kind !== "cluster") return time(group.causeSinceSeconds);
  return stampText(group.created);
}

// A time stamp of an object.
export const stampText = (stamp) => stamp.replace("T", " ").replace(/:\d\d(\.\d+)?Z$/, " UTC");

export function CauseParts({ cause }) {
  if (cause.kind === "fits") return html`<p>An attempt now would place each of these pods alone.</p>`;
  if (!cause.parts.length) {
    return cause.kind === "new" ? html`<p>Neither an attempt nor a gate has reported about these pods yet.</p>` : null;
  }
  return html`<ul class="reasons">${cause.parts.map((part) => html`<li key=${`${part.plugin} ${part.reason}`}>
    ${part.reason || "no reason"} ${part.plugin && html`<span class="plugin">${part.plugin}</span>`}</li>`)}</ul>`;
}

export function WakeEvents({ events }) {
  const entries = Object.entries(events).filter(([, names]) => names.length);
  if (!entries.length) return null;
  return html`<details><summary>Events that cause another attempt</summary>
    <dl class="events">${entries.map(([plugin, names]) => html`<div key=${plugin}><dt>${plugin}</dt>
      <dd>${names.map((name) => html`<span key=${name}>${name}</span>`)}</dd></div>`)}</dl></details>`;
}
