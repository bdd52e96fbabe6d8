// What the pages can't do by themselves: the reader's own time, keys, what becomes of a form, whether the gateway answers.
"use strict";

(() => {
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // --- times: the reader's own, with UTC to be seen on hover

  const local = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  });

  // What is near the top at once, the rest when there is nothing else to do: a page may have a thousand.
  const AT_ONCE = 60;
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 20));
  let waiting = false;

  function localise() {
    const times = all("time[data-ms]:not([data-local])");
    for (const time of times.slice(0, AT_ONCE)) {
      time.textContent = local.format(new Date(Number(time.dataset.ms)));
      time.dataset.local = "";
    }
    if (times.length <= AT_ONCE || waiting) return;
    waiting = true;
    later(() => { waiting = false; localise(); });
  }

  function tellUtc(event) {
    const time = event.target.closest?.("time[data-ms]");
    if (time) time.title = `${new Date(Number(time.dataset.ms)).toISOString().replace("T", " ").replace("Z", "")} UTC`;
  }
  document.addEventListener("pointerover", tellUtc, { passive: true });
  document.addEventListener("focusin", tellUtc);

  // --- after an action: what was done closes its form, what failed stays open

  function settled() {
    const outcome = one("#main")?.dataset.outcome;
    if (outcome === "done") {
      for (const open of all("[popover]:popover-open")) open.hidePopover();
      for (const form of all("#main form")) HTMLFormElement.prototype.reset.call(form);
    }
    localise();
  }
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.target instanceof HTMLFormElement || event.detail?.ctx?.sourceElement instanceof HTMLFormElement) settled();
    else localise();
  });
  document.addEventListener("htmx:sse:after:message", localise);

  // --- whether the gateway answers

  const lost = (is) => { const said = one("#lost"); if (said) said.hidden = !is; };
  document.addEventListener("htmx:sse:error", () => lost(true));
  document.addEventListener("htmx:sse:after:connection", (event) => {
    lost(false);
    document.documentElement.dataset.live = String(Number(document.documentElement.dataset.live ?? 0) + 1);
  });
  document.addEventListener("htmx:error", () => lost(true));
  document.addEventListener("console:reload", () => location.reload());

  // --- a search that goes on by itself, until it is stopped

  let stopped = false;
  function lookOn() {
    const progress = one("#progress[data-looks-on]");
    if (progress && !stopped) one("[data-continue]", progress)?.click();
    if (stopped) one("#progress .stop")?.remove();
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-stop]")) { stopped = true; lookOn(); }
    else if (event.target.closest?.("[data-continue]") && event.isTrusted) stopped = false;
  });
  document.addEventListener("htmx:after:swap", () => {
    if (one("#rows > tr:not(.nothing)")) one("#rows > .nothing")?.remove();
    setTimeout(lookOn, 0);
  });

  // --- a message that is looked at, and news that wait while somebody reads

  // One listener for all rows: htmx would look at each link, on a page of a thousand for longer than it takes to draw.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-detail]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const swap = { source: link, target: "#detail", select: "#detail", swap: "outerHTML ignoreTitle:true" };
    htmx.ajax("GET", link.getAttribute("href"), swap);
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const link = event.detail?.ctx?.sourceElement;
    if (!link?.matches?.("[data-detail]")) return;
    for (const row of all("tr.chosen")) row.classList.remove("chosen");
    link.closest("tr")?.classList.add("chosen");
    if (matchMedia("(max-width: 60rem)").matches) one("#detail")?.scrollIntoView();
  });
  let paused = false;
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.('[data-press="pause"]');
    if (!button) return;
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Go on" : "Pause";
  });
  document.addEventListener("htmx:sse:before:message", (event) => { if (paused) event.preventDefault(); });

  // --- keys

  let went = 0; // when `g` was pressed
  const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]") !== null;

  function step(by) {
    const links = all("#main tbody tr").map((row) => one("a", row)).filter(Boolean);
    if (!links.length) return;
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    links[Math.min(Math.max(at + by, 0), links.length - 1)].focus();
  }

  function press(name) {
    const button = one(`[data-press="${name}"]`);
    button?.click();
    return button !== null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (one("[popover]:popover-open") && event.key !== "?") return;
    if (Date.now() - went < 1500) {
      went = 0;
      const link = one(`header nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    const acts = {
      "/": () => one("[data-search]")?.focus(),
      "g": () => { went = Date.now(); },
      "j": () => step(1),
      "k": () => step(-1),
      "p": () => press("pause"),
      "l": () => press("live"),
      "?": () => one("#keys")?.togglePopover(),
    };
    if (Object.hasOwn(acts, event.key)) { event.preventDefault(); acts[event.key](); }
  });

  // --- what was chosen takes effect at once; what is shown can be copied

  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-submits]")) event.target.form.requestSubmit();
  });
  document.addEventListener("click", async (event) => {
    const copier = event.target.closest?.("[data-copy]");
    if (!copier) return;
    const text = copier.dataset.copy === "url" ? location.href : one(copier.dataset.copy)?.textContent ?? "";
    await navigator.clipboard.writeText(text);
    const before = copier.textContent;
    copier.textContent = "Copied";
    setTimeout(() => { copier.textContent = before; }, 1500);
  });

  // --- what is ticked in a table goes along with a form elsewhere on the page

  function told() {
    const said = one("[data-ticked]");
    if (!said) return;
    said.dataset.none ??= said.textContent;
    const count = all("[data-ticks]:checked").length;
    said.textContent = count ? `${count} ${count === 1 ? "letter is" : "letters are"} ticked: only these, as far as they fit what follows.` : said.dataset.none;
  }
  document.addEventListener("change", (event) => { if (event.target.matches?.("[data-ticks]")) told(); });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-tick-all]")) return;
    const boxes = all("[data-ticks]"), every = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !every;
    told();
  });
  document.addEventListener("htmx:after:swap", told);

  document.addEventListener("DOMContentLoaded", localise);
  // After htmx, which begins by a timer of its own: before, the link would load another page in place of this one.
  addEventListener("load", () => setTimeout(lookOn, 0));
})();
