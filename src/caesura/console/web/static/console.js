// Keeps a page up to date by one stream of events, while somebody looks at it.
// Texts are set as texts; the panel alone is markup, which the server has escaped.

const main = document.getElementById("main");
const panel = document.getElementById("panel");
let source = null;
let look = new URLSearchParams(location.search).get("look") ?? "";

function apply(fresh) {
  for (const [id, text] of Object.entries(fresh)) {
    if (id === "panel") {
      setPanel(text);
      continue;
    }
    const element = document.getElementById(id);
    if (element === null) continue;
    if (id.endsWith("-level")) {
      const chosen = element.classList.contains("chosen");
      element.setAttribute("class", chosen ? `step ${text} chosen` : `step ${text}`);
    } else if (element.textContent !== text) {
      element.textContent = text;
    }
  }
}

function setPanel(markup) {
  const open = new Set([...panel.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
  const scrolled = [...panel.querySelectorAll(".scrolls")].map((e) => [e.scrollLeft, e.scrollTop]);
  const within = panel.contains(document.activeElement) && document.activeElement !== panel;
  if (within || panel.contains(getSelection()?.anchorNode ?? null) && !getSelection().isCollapsed) return;
  panel.innerHTML = markup;
  for (const summary of panel.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  panel.querySelectorAll(".scrolls").forEach((e, n) => scrolled[n] && e.scrollTo(...scrolled[n]));
}

function listen() {
  stop();
  if (document.hidden || main?.dataset.live === undefined) return;
  source = new EventSource(`/stream?look=${encodeURIComponent(look)}`);
  source.onmessage = (event) => apply(JSON.parse(event.data));
  source.onopen = () => document.body.classList.remove("stale");
  source.onerror = () => document.body.classList.add("stale");
}

function stop() {
  source?.close();
  source = null;
}

function choose(key) {
  look = key;
  history.replaceState(null, "", key ? `?look=${encodeURIComponent(key)}` : "/");
  for (const link of document.querySelectorAll("svg [data-look]")) {
    link.classList.toggle("chosen", link.dataset.look === key);
  }
  panel.focus({ preventScroll: true });
  listen();
}

document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", stop);

main?.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-look]");
  if (link !== null && link !== undefined && panel !== null && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    choose(link.dataset.look);
  }
});

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
