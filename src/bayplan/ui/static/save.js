// Saves the view as one HTML file without scripts: the text of the page, its styles, and the canvases
// as images. The file allows nothing but its own style, by the hash of that style.

async function styleSheet() {
  const links = [...document.querySelectorAll('link[rel="stylesheet"]')];
  const texts = await Promise.all(links.map(async (link) => (await fetch(link.href)).text()));
  return texts.join("\n");
}

async function digest(text) {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(hash)));
}

// Styles that scripts have set become rules, because the file allows no style attribute.
function styleRules(copy) {
  const rules = [];
  for (const element of copy.querySelectorAll("[style]")) {
    const name = `s${rules.length}`;
    element.setAttribute("data-style", name);
    rules.push(`[data-style="${name}"] { ${element.getAttribute("style")} }`);
    element.removeAttribute("style");
  }
  return rules.join("\n");
}

export async function saveView(view) {
  const copy = document.getElementById("app").cloneNode(true);
  const canvases = [...document.querySelectorAll("#app canvas")];
  [...copy.querySelectorAll("canvas")].forEach((element, index) => {
    const image = document.createElement("img");
    image.src = canvases[index].toDataURL("image/png");
    image.alt = element.getAttribute("aria-label") ?? "";
    image.setAttribute("style", canvases[index].getAttribute("style") ?? "");
    element.replaceWith(image);
  });
  for (const element of copy.querySelectorAll("button, input, select, .skip, .tabs, .timebar .buttons, .csv, .axis, .search, .tip, .controls")) {
    element.remove();
  }
  for (const link of copy.querySelectorAll("a[href]")) link.removeAttribute("href");
  for (const image of copy.querySelectorAll('img[src^="static/"]')) image.remove();
  const style = `${await styleSheet()}\n${styleRules(copy)}`;
  const page = document.implementation.createHTMLDocument(document.title);
  const policy = page.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `default-src 'none'; style-src 'sha256-${await digest(style)}'; img-src data:`;
  const sheet = page.createElement("style");
  sheet.textContent = style;
  const charset = page.createElement("meta");
  charset.setAttribute("charset", "utf-8");
  page.head.prepend(charset, policy);
  page.head.append(sheet);
  page.documentElement.lang = "en";
  page.body.append(page.adoptNode(copy));
  const link = document.createElement("a");
  const blob = new Blob([`<!doctype html>\n${page.documentElement.outerHTML}`], { type: "text/html" });
  link.href = URL.createObjectURL(blob);
  link.download = `bayplan-${view}.html`;
  link.click();
  URL.revokeObjectURL(link.href);
}
