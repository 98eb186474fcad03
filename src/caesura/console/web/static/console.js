// Keeps a page up to date by one stream of events, while somebody looks at it.
// Texts are set as texts; the panel alone is markup, which the server has escaped.

const main = document.getElementById("main");
const panel = document.getElementById("panel");
let source = null;

function apply(fresh) {
  for (const [id, text] of Object.entries(fresh)) {
    const element = document.getElementById(id);
    if (element === null) continue;
    if (element.dataset.markup !== undefined) {
      setMarkup(element, text);
    } else if (id.endsWith("-level")) {
      const chosen = element.classList.contains("chosen");
      element.setAttribute("class", chosen ? `step ${text} chosen` : `step ${text}`);
    } else if (element.textContent !== text) {
      element.textContent = text;
    }
  }
}

// What somebody has unfolded, scrolled, focused or selected stays as it is.
function setMarkup(part, markup) {
  const open = new Set([...part.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
  const scrolled = [...part.querySelectorAll(".scrolls")].map((e) => [e.scrollLeft, e.scrollTop]);
  const active = document.activeElement;
  const focused = part.contains(active) && active !== part ? nameOf(active) : null;
  if (active?.matches("input, select, textarea") && focused !== null || dragged !== null) return;
  if (part.contains(getSelection()?.anchorNode ?? null) && !getSelection().isCollapsed) return;
  part.innerHTML = markup;
  for (const summary of part.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  part.querySelectorAll(".scrolls").forEach((e, n) => scrolled[n] && e.scrollTo(...scrolled[n]));
  if (focused === null) return;
  const again = [...part.querySelectorAll("a, button, summary, [tabindex]")].find((e) => nameOf(e) === focused);
  again?.focus({ preventScroll: true });
}

function nameOf(element) {
  return element.getAttribute("aria-label") ?? element.textContent;
}

function listen() {
  stop();
  if (document.hidden || main?.dataset.stream === undefined) return;
  source = new EventSource(main.dataset.stream + location.search);
  source.onmessage = (event) => apply(JSON.parse(event.data));
  source.onopen = () => document.body.classList.remove("stale");
  source.onerror = () => document.body.classList.add("stale");
}

function stop() {
  source?.close();
  source = null;
}

// Looks at something else of the same page.
function go(address) {
  history.replaceState(null, "", address);
  listen();
}

function choose(key) {
  for (const link of document.querySelectorAll("svg [data-look]")) {
    link.classList.toggle("chosen", link.dataset.look === key);
  }
  panel.focus({ preventScroll: true });
  go(key ? `?look=${encodeURIComponent(key)}` : "/");
}

document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", stop);

main?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest?.("[data-look], [data-go]");
  if (link === null || link === undefined) return;
  if (link.dataset.go !== undefined) {
    event.preventDefault();
    go(link.getAttribute("href"));
  } else if (panel !== null) {
    event.preventDefault();
    choose(link.dataset.look);
  }
});

// A stretch of time: drawn with the mouse, or by Ctrl and the wheel about the place that it points at.

let dragged = null;

function timeAt(picture, x) {
  const box = picture.getBoundingClientRect();
  const [from, to] = [BigInt(picture.dataset.from), BigInt(picture.dataset.to)];
  const share = Math.min(1, Math.max(0, (x - box.left) / box.width));
  return from + (to - from) * BigInt(Math.round(share * 1e6)) / 1000000n;
}

function look(from, to) {
  if (to - from < 2n) return;
  const address = new URLSearchParams(location.search);
  address.set("from", from);
  address.set("to", to);
  go(`?${address}`);
}

main?.addEventListener("pointerdown", (event) => {
  const picture = event.target.closest?.("svg.times");
  if (picture && event.button === 0) dragged = { picture, x: event.clientX, at: timeAt(picture, event.clientX) };
});

addEventListener("pointerup", (event) => {
  const begun = dragged;
  dragged = null;
  if (begun === null || Math.abs(event.clientX - begun.x) < 6) return;
  const end = timeAt(begun.picture, event.clientX);
  if (end > begun.at) look(begun.at, end);
  else look(end, begun.at);
});
addEventListener("pointercancel", () => (dragged = null));

main?.addEventListener("wheel", (event) => {
  const picture = event.target.closest?.("svg.times");
  if (!picture || !event.ctrlKey) return;
  event.preventDefault();
  const [from, to] = [BigInt(picture.dataset.from), BigInt(picture.dataset.to)];
  const at = timeAt(picture, event.clientX);
  const [up, down] = event.deltaY < 0 ? [4n, 5n] : [5n, 4n];
  look(at - (at - from) * up / down, at + (to - at) * up / down);
}, { passive: false });

// The size of the picture.

const plan = document.getElementById("plan");

function zoom(factor) {
  const width = plan.viewBox.baseVal.width * factor;
  plan.setAttribute("width", width);
  plan.setAttribute("height", plan.viewBox.baseVal.height * factor);
  plan.dataset.factor = factor;
}

function fit() {
  const room = plan.parentElement;
  const { width, height } = plan.viewBox.baseVal;
  zoom(Math.max(0.05, Math.min(1, (room.clientWidth - 4) / width, (room.clientHeight - 4) / height)));
}

for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => {
    const factor = Number(plan.dataset.factor ?? 1);
    if (button.dataset.zoom === "fit") fit();
    else zoom(Math.min(3, Math.max(0.15, factor * (button.dataset.zoom === "in" ? 1.25 : 0.8))));
  });
}

listen();
