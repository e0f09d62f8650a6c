// Where the focus goes when what has it goes away, and the place on the page after a link.
import { useEffect, useRef, useState } from "./vendor/htm-preact.js";

// An element that disappears gives the focus to the closest element around it that can have it. So a
// refresh and a button that does its work once take nothing away from those who use the keyboard.
export function keepFocus(root) {
  let path = [];
  const pathOf = (element) => {
    const elements = [];
    for (let one = element; one && one !== root; one = one.parentElement) elements.push(one);
    return elements;
  };
  root.addEventListener("focusin", (event) => { path = pathOf(event.target); });
  root.addEventListener("focusout", () => queueMicrotask(() => {
    // Nobody took the element away: the user left it.
    if (document.activeElement === document.body && path[0]?.isConnected) path = [];
  }));
  new MutationObserver(() => {
    if (!path.length || path[0].isConnected || document.activeElement !== document.body) return;
    const around = path.find((one) => one.isConnected && one.hasAttribute("tabindex"));
    (around ?? document.getElementById("main"))?.focus({ preventScroll: true });
  }).observe(root, { childList: true, subtree: true });
}

// A link to another view or object leads to its beginning; the way back leads to where the page was.
export function useBeginnings(place) {
  const isFollowed = useRef(false);
  useEffect(() => {
    const follow = (event) => { isFollowed.current = Boolean(event.target.closest?.('a[href^="#/"]')); };
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, []);
  useEffect(() => {
    if (isFollowed.current) scrollTo(0, 0);
    isFollowed.current = false;
  }, [place]);
}

// Rows stay while something in them has the focus: [the rows, the element around them].
export function useHeld(rows) {
  const element = useRef(null);
  const lastRows = useRef(rows);
  const [, setCount] = useState(0);
  const inside = document.activeElement;
  if (!element.current?.contains(inside) || element.current === inside) lastRows.current = rows;
  useEffect(() => {
    const around = element.current;
    const leave = () => setTimeout(() => setCount((count) => count + 1));
    around?.addEventListener("focusout", leave);
    return () => around?.removeEventListener("focusout", leave);
  }, [element.current]);
  return [lastRows.current, element];
}

// Something that opens on the request of the user has the focus until it is closed.
export function useOpenedFocus(isOpenedHere) {
  const element = useRef(null);
  const opener = useRef(isOpenedHere ? document.activeElement : null);
  useEffect(() => {
    if (isOpenedHere) element.current?.focus();
    return () => {
      if (element.current?.contains(document.activeElement)) opener.current?.focus();
    };
  }, []);
  return element;
}
