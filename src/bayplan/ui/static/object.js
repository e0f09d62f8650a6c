// One object as YAML.
import { Computing, isPast, useComputed } from "./computed.js";
import { Empty, Fold, Name, address, html, shown } from "./lib.js";

// A link to an object as YAML; nothing where the engine has no objects.
export function ObjectLink({ at, kind, name, children = "YAML" }) {
  if (!shown.source.hasModel || isPast(at)) return null;
  return html`<a href=${address("object", { at, kind, name })} aria-label=${`YAML of ${kind} ${name}`}>${children}</a>`;
}

export function ObjectView({ source, params }) {
  const { at, kind = "", name = "" } = params;
  const isAsked = source.hasModel && !isPast(at);
  const state = useComputed(isAsked ? "object" : null, { at, kind, name });
  const { data } = state;
  return html`<h1 class="name">${kind} <${Name} text=${name} /></h1>
    ${!isAsked && html`<${Empty}>The objects of this moment are not read.</${Empty}>`}
    <${Computing} state=${state} text="The objects are read…" />
    ${data && !state.error && html`
      ${data.owners.length > 0 && html`<p>Owned by ${data.owners.map((one) => html`<${ObjectLink} key=${`${one.kind} ${one.name}`} at=${at} kind=${one.kind} name=${one.name}>${one.kind} <${Name} text=${one.name} /></${ObjectLink}> `)}</p>`}
      ${data.isPartial && html`<p class="note" role="note">Only the fields that a scheduler reads.</p>`}
      <pre class="yaml" tabindex="0" role="region" aria-label="YAML">${data.yaml}</pre>
      ${data.managedFields && html`<${Fold} text="managedFields: who wrote which field"><pre class="yaml" tabindex="0" role="region" aria-label="Managed fields">${data.managedFields}</pre></${Fold}>`}`}`;
}
