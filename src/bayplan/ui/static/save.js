// Saves the view as one HTML file without scripts: the text of the page, its styles, and the canvases
// as images. The file allows nothing but its own style, by the hash of that style.

// What needs a script, or another file.
const LEFT_OUT = [
  "button", "input", "select", "datalist", ".skip", ".tabs", ".timebar .buttons", ".csv", ".axis",
  ".search", ".tip", ".controls", 'img[src^="static/"]',
].join(", ");

async function styleSheet() {
  const links = [...document.querySelectorAll('link[rel="stylesheet"]')];
  const texts = await Promise.all(links.map(async (link) => (await fetch(link.href)).text()));
  return texts.join("\n");
}

async function digest(text) {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(hash)));
}

// A copy without style attributes, which the file does not allow: they become rules. This page does
// not allow them either, so they are read from the elements and never written.
function copyOf(root) {
  const rules = [];
  const copy = root.cloneNode(true);
  const originals = root.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, index) => {
    const text = originals[index].style?.cssText;
    if (text) {
      element.setAttribute("data-style", `s${index}`);
      rules.push(`[data-style="s${index}"] { ${text} }`);
    }
    element.removeAttribute("style");
  });
  return { copy, rules: rules.join("\n") };
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

export async function saveView(view) {
  const root = document.getElementById("app");
  const { copy, rules } = copyOf(root);
  const canvases = [...root.querySelectorAll("canvas")];
  [...copy.querySelectorAll("canvas")].forEach((element, index) => {
    const image = document.createElement("img");
    image.src = canvases[index].toDataURL("image/png");
    image.alt = element.getAttribute("aria-label") ?? "";
    if (element.dataset.style) image.dataset.style = element.dataset.style;
    element.replaceWith(image);
  });
  for (const element of copy.querySelectorAll(LEFT_OUT)) element.remove();
  for (const link of copy.querySelectorAll("a[href]")) link.removeAttribute("href");
  const style = `${await styleSheet()}\n${rules}`;
  const policy = `default-src 'none'; style-src 'sha256-${await digest(style)}'; img-src data:`;
  const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(document.title)}</title><style>${style}</style></head>
<body>${copy.outerHTML}</body></html>
`;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  link.download = `bayplan-${view}.html`;
  link.click();
  URL.revokeObjectURL(link.href);
}
