// @ts-check
/**
 * Keeps a page up to date that the server has rendered. Everything works without this; it only saves looking again by hand.
 *
 * The component tells that something changed, or else time has passed; then the page's own HTML is fetched, and what is marked
 * data-live is exchanged node by node. Nothing is parsed from strings here, so that Trusted Types have nothing to object to. What
 * somebody has in hand stays: the focus, what is opened, and a form that is in use or holds something.
 */

const SETTLE = 0.2; // seconds within which hints about several jobs lead to one look
const PATIENCE = 20;

const locale = navigator.language;
const parts = /** @type {const} */ ({ year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
const minutes = new Intl.DateTimeFormat(locale, parts);
const seconds = new Intl.DateTimeFormat(locale, { ...parts, second: "2-digit" });

/** Says times in the reader's own zone and words; what the server said stays as the title. @param {ParentNode} root */
function localise(root) {
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (time.title || Number.isNaN(at.getTime())) continue;
    time.title = time.textContent ?? "";
    time.lang = locale;
    time.textContent = (time.hasAttribute("data-seconds") ? seconds : minutes).format(at);
  }
}

/** The page at this address as it is now; null where it is none of these pages any more. @param {string} url @returns {Promise<Document | null>} */
function fetchPage(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.timeout = PATIENCE * 1000;
    request.onload = () => {
      if (request.status >= 500 || request.status === 429) reject(new Error(`answered ${request.status}`));
      else resolve(request.responseXML?.querySelector("[data-outlast-page]") ? request.responseXML : null);
    };
    request.onerror = request.ontimeout = () => reject(new Error("no answer"));
    request.open("GET", url);
    request.send();
  });
}

/** Whether a form in it is being used, or holds what was not sent. @param {Element} region */
function inUse(region) {
  return [...region.querySelectorAll("form")].some(
    (form) =>
      form.contains(document.activeElement) ||
      [...form.elements].some((field) => (field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement) && field.value !== field.defaultValue),
  );
}

/** @param {string} href */
function linkTo(href) {
  const link = document.createElement("a");
  link.href = href;
  link.textContent = document.body.dataset.lookAgain ?? "";
  return link;
}

/** Says beside a region that it is no longer what it was. @param {Element} region @param {string} href */
function sayChanged(region, href) {
  const id = `${region.id}-changed`;
  if (document.getElementById(id)) return;
  const note = document.createElement("p");
  note.id = id;
  note.className = "note";
  note.append(`${document.body.dataset.changed} `, linkTo(href));
  region.before(note);
  announce(document.body.dataset.changed ?? "");
}

/** @param {string} text */
function announce(text) {
  const place = document.getElementById("announcements");
  if (place) place.textContent = text;
}

/** Exchanges a region for what it is now. @param {Element} region @param {Element} next @param {string} href */
function exchange(region, next, href) {
  const fresh = /** @type {Element} */ (document.importNode(next, true));
  localise(fresh);
  for (const open of region.querySelectorAll("details[open]")) fresh.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
  if (fresh.isEqualNode(region)) return;
  if (inUse(region)) {
    sayChanged(region, href);
    return;
  }
  document.getElementById(`${region.id}-changed`)?.remove();
  const focused = region.contains(document.activeElement) ? document.activeElement?.id : undefined;
  region.replaceWith(fresh);
  if (focused === undefined) return;
  const again = focused ? document.getElementById(focused) : null;
  (again ?? document.getElementById("content"))?.focus({ preventScroll: true });
}

/** What the rows of a list, or the page of a job, say to who does not see them change. @param {Document} page @returns {Map<string, string>} */
function sayings(page) {
  const found = new Map();
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll("[data-announce]"))) {
    found.set(one.dataset.job ?? "", one.dataset.announce);
  }
  return found;
}

/** Follows the page's main part. @param {HTMLElement} main */
function follow(main) {
  const href = /** @type {string} */ (main.dataset.outlastPage);
  let timer = 0;
  let looking = false;
  let once = false; // asked for while looking
  let ended = false;

  /** @param {string} text */
  const away = (text) => {
    const place = document.getElementById("connection");
    if (place && place.textContent !== text) place.textContent = text;
  };

  /** Looks again after so many seconds. @param {number} after */
  const later = (after) => {
    clearTimeout(timer);
    if (!ended) timer = setTimeout(look, after * 1000);
  };

  /** Looks again at the page's own pace, if it changes by itself. */
  const paced = () => {
    clearTimeout(timer);
    if (main.dataset.pace) later(Number(main.dataset.pace));
  };

  async function look() {
    if (ended) return;
    if (looking) {
      once = true;
      return;
    }
    if (document.hidden) return; // looked at again as soon as somebody does
    looking = true;
    once = false;
    try {
      const next = await fetchPage(href);
      if (next) {
        take(next);
        away("");
      } else {
        end();
      }
      paced();
    } catch {
      away(document.body.dataset.offline ?? "");
      later(Math.max(Number(main.dataset.pace) || 0, 10));
    } finally {
      looking = false;
    }
    if (once) later(SETTLE);
  }

  /** Nobody may see this any more, or there is nothing: it does not stay on the screen; but what somebody is writing does. */
  function end() {
    ended = true;
    away(document.body.dataset.gone ?? "");
    if (!inUse(main)) main.replaceChildren(linkTo(href));
  }

  /** @param {Document} next */
  function take(next) {
    const before = sayings(document);
    for (const region of document.querySelectorAll("[data-live]")) {
      const its = next.getElementById(region.id);
      if (its) exchange(region, its, href);
    }
    const now = /** @type {HTMLElement} */ (next.querySelector("[data-outlast-page]"));
    for (const name of ["data-tag", "data-announce", "data-pace"]) {
      const value = now.getAttribute(name);
      if (value === null) main.removeAttribute(name);
      else main.setAttribute(name, value);
    }
    if (!document.querySelector("#notice")) document.title = next.title;
    const news = [...sayings(next)].filter(([job, saying]) => before.get(job) !== saying).map(([, saying]) => saying);
    if (news.length) announce(news.join(" "));
  }

  /** Whether the page shows it like this already. @param {any} job */
  const known = (job) => {
    const shown = /** @type {HTMLElement | null} */ (document.querySelector(`[data-job="${CSS.escape(String(job?.id))}"]`)) ?? main;
    return shown.dataset.tag === `${job?.version}.${job?.state}${job?.stopping ? ".stopping" : ""}`;
  };

  for (const element of main.querySelectorAll("outlast-job, outlast-jobs")) {
    element.addEventListener("outlast-change", (event) => {
      if (!known(/** @type {CustomEvent} */ (event).detail)) later(SETTLE);
    });
    element.addEventListener("outlast-signed-out", () => later(SETTLE));
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  addEventListener("online", () => look());
  addEventListener("offline", () => away(document.body.dataset.offline ?? ""));
  addEventListener("pageshow", (event) => {
    if (event.persisted) look();
  });
  paced();
}

localise(document);
const main = /** @type {HTMLElement | null} */ (document.querySelector("[data-outlast-page]"));
if (main) {
  follow(main);
  import("./component.js").catch(() => {}); // without it the page looks again at its own pace
}
