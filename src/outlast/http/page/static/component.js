// @ts-check
/**
 * Outlast in a page of yours: the elements <outlast-job> and <outlast-jobs>, and watch(), submit() and resume().
 * One module without dependencies. It builds nodes only, so it works under a strict Content-Security-Policy with Trusted Types.
 *
 * How it stays true
 *   What is shown was always fetched by this page, with the credentials of that moment. The event stream, and what tabs tell each
 *   other, are hints that it is time to ask again: they carry a job's id and tag, and never what a job is. So a lost, late or doubled
 *   hint costs time only; and when somebody else signs in in this browser, no tab can be fed what belongs to the person before: the
 *   server is asked as whoever is signed in now, answers 404 for foreign jobs, and what was shown is removed.
 *   Of two answers the one with the newer version is shown; at the same version the later one, for the shown state may differ.
 *
 * How it stays quiet
 *   One tab, the leader, holds the one event stream of the browser (a Web Lock elects it) and passes hints on through a
 *   BroadcastChannel. A job that the stream does not speak of (the stream is refused, or silent behind a buffering proxy; or the job
 *   is one of somebody else, which an operator looks at) is asked for by long polls, of which a browser has two at a time, or else by
 *   polls at the pace that the server names. Hidden tabs ask late and seldom, and all at once when they are looked at.
 *
 * Nothing is ever cancelled because a page goes away.
 *
 * @typedef {import("./component.d.ts").Job} Job
 * @typedef {import("./component.d.ts").Seen} Seen
 * @typedef {import("./component.d.ts").Headers} Credentials
 * @typedef {import("./component.d.ts").Attention} Attention
 * @typedef {{ status: number, headers: globalThis.Headers, body: any }} Answer
 */

// -- words and times -----------------------------------------------------------------------------------------------

/** Every word that people read; a host may overwrite any of it. @type {Record<string, string>} */
export const words = {
  queued: "Waiting to start",
  running: "In progress",
  retrying: "Trying again",
  needs_attention: "Needs you",
  succeeded: "Completed",
  succeeded_with_problems: "Completed, parts missing",
  user: "Cancelled",
  abandoned: "Given up",
  superseded: "Replaced",
  stopping: "A worker is still winding down. Whatever it does from here on is not stored.",
  usable: "The first result can be opened now. The rest goes on by itself.",
  progress: "{done} of {total}",
  progress_now: "{done} of {total}: {label}",
  accepted: "Accepted {time}",
  finished: "Ended {time}",
  open: "Open",
  cancel: "Cancel",
  cancel_question: "Cancel this job? What has not ended is stopped; results that are stored stay.",
  cancel_yes: "Yes, cancel it",
  dismiss_question: "Give up this job? It ends, and nothing more is done. Results that are stored stay.",
  dismiss_yes: "Yes, give it up",
  keep: "No, keep it",
  retry: "Try again",
  answer: "Answer",
  skip: "Go on without it",
  dismiss: "Give up this job",
  more_questions: "There are more questions after this one.",
  answer_elsewhere: "This question is answered on the job's own page.",
  stale_version: "Not cancelled: the job had changed meanwhile. It is now: {state}, {progress}. Cancel again if you still want to.",
  already_completed: "Not cancelled: the job had completed before.",
  attention_superseded: "Not done: this had been decided elsewhere meanwhile.",
  forbidden: "Not done: you may not do this.",
  unsent: "Not done: the server did not answer. Try again.",
  refused: "Not done: {reason}.",
  loading: "Loading",
  gone: "This job is gone, or it is not yours to see.",
  signed_out: "Signed out. Sign in to see this.",
  away: "Not connected. Last known at {time}.",
  unreached: "Not connected. This appears as soon as the server answers.",
  needs: "Needs you",
  going: "Goes on",
  done: "Ended",
  empty: "There is no work of yours here yet.",
  older: "There are older ones that are not shown here.",
};

/** @param {string} name @param {Record<string, unknown>} [values] */
const say = (name, values = {}) => (words[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));

/** The hour and minute of a moment; with its day when that is another one. @param {Date | string | number} moment */
function clock(moment) {
  const at = new Date(moment);
  const day = at.toDateString() === new Date().toDateString() ? {} : /** @type {const} */ ({ day: "numeric", month: "short" });
  return at.toLocaleString(undefined, { hour: "2-digit", minute: "2-digit", ...day });
}

/** @param {Job} job */
const isFinal = (job) => job.outcome !== null || job.state === "completed" || job.state === "cancelled";
/** @param {Job} job */
const stateOf = (job) => say(job.outcome ?? job.state);
/** @param {Job} job */
const progressOf = ({ progress }) => say(progress.label ? "progress_now" : "progress", progress);

/** Where the result is opened: the reference of the usable task if following it is safe, else the API's result. @param {Job} job @param {string} url */
function openable(job, url) {
  const ref = job.usable_ref ?? "";
  // Browsers drop blanks and controls and turn backslashes: the address would be another one than it seems.
  const plain = !/[\s\\\p{C}]/u.test(ref) && (/^\/(?!\/)/.test(ref) || /^https?:\/\/[^/?#@]+(?:[/?#]|$)/i.test(ref));
  return plain && URL.canParse(ref, document.baseURI) ? new URL(ref, document.baseURI).href : `${url}/result`;
}

// -- requests and pauses; all times are seconds --------------------------------------------------------------------

const GAP = 0.25; // between two questions about the same thing, however many hints come
const GRACE = 5; // within which the stream should have named a job
const FIRST_BYTE = 5; // a stream that brings nothing so long is held back by something in between
const QUIET = 40; // a stream without a heartbeat so long is dead; one comes every 15 s
const UNHEARD = 60; // a leader that says nothing so long is frozen
const WAIT = 25; // of a long poll
const STEADY = 60; // between looks that should find nothing new, and the longest pause between polls
const RARELY = 300; // the same in hidden tabs
const SPREAD = 5; // hidden tabs answer a hint within this time, each at its own

const now = () => Date.now() / 1000;
/** A time between half and one and a half of what is meant, so that many tabs do not ask at once. @param {number} seconds */
const around = (seconds) => seconds * (0.5 + Math.random());
/** @param {number} failures @param {number} [least] @param {number} [most] */
const backoff = (failures, least = 1, most = STEADY) => Math.min(most, least * 2 ** Math.min(failures, 16));

/** A pause that can be cut short. */
class Pause {
  end = () => {};

  /** @param {number} seconds @returns {Promise<void>} */
  wait(seconds) {
    return new Promise((resolve) => {
      const timer = seconds < 2e6 ? setTimeout(resolve, seconds * 1000) : undefined;
      this.end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Seconds that an answer asks to wait; 0 if it does not say. @param {globalThis.Headers} headers */
function retryAfter(headers) {
  const said = headers.get("Retry-After") ?? "";
  const seconds = /^\d+$/.test(said) ? Number(said) : (Date.parse(said) - Date.now()) / 1000;
  return seconds > 0 ? Math.min(seconds, 3600) : 0;
}

/**
 * A response to a request with the credentials of this moment. A redirect counts as 401: it is how hosts lead to their sign-in.
 * @param {string} url @param {Credentials | undefined} credentials @param {RequestInit} init
 */
async function send(url, credentials, init) {
  const own = typeof credentials === "function" ? await credentials() : credentials;
  const headers = { .../** @type {Record<string, string>} */ (init.headers ?? {}), ...own };
  const response = await fetch(url, { cache: "no-store", credentials: "same-origin", redirect: "manual", ...init, headers });
  return { status: response.type === "opaqueredirect" ? 401 : response.status, response };
}

/**
 * The whole answer to a request, its body read as JSON; an error where there is none in time.
 * @param {string} url @param {Credentials | undefined} credentials @param {RequestInit} [init] @param {number} [seconds] @returns {Promise<Answer>}
 */
async function call(url, credentials, { signal, ...init } = {}, seconds = 30) {
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, seconds * 1000);
  signal?.addEventListener("abort", end);
  if (signal?.aborted) end();
  try {
    const { status, response } = await send(url, credentials, { ...init, signal: ending.signal });
    const json = /[/+]json\b/.test(response.headers.get("Content-Type") ?? "");
    return { status, headers: response.headers, body: json ? await response.json() : null };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/**
 * The events of a stream as they come. `heard` is called for every part, comments included.
 * @param {ReadableStream<Uint8Array>} body @param {() => void} heard
 */
async function* eventsOf(body, heard) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = /** @type {string} */ (lines.pop());
    for (const line of lines) yield line;
  }
}

/** Runs with the right to one of the browser's two long polls, or with 0 seconds if both are taken. @param {string} name @param {(seconds: number) => Promise<void>} run */
async function inTurn(name, run) {
  for (const slot of navigator.locks ? [1, 2] : []) {
    const free = await navigator.locks.request(`${name} wait ${slot}`, { ifAvailable: true }, async (lock) => {
      if (lock) await run(WAIT);
      return lock !== null;
    });
    if (free) return;
  }
  await run(navigator.locks ? 0 : WAIT);
}

// -- what is followed ----------------------------------------------------------------------------------------------

/** Something that is kept true while anybody watches it: asked for when a hint says so, and from time to time. */
class Subject {
  /** @type {Set<() => void>} */ watchers = new Set();
  stale = true; // what is known may not be so any more
  asked = 0; // when the last question was answered
  known = 0; // when the server last said how it stands
  failures = 0; // questions since then that were not answered
  unchanged = 0; // answers in a row that brought nothing new
  retry = 0; // what the last answer asked to wait
  luck = 1;
  graceUntil = now() + GRACE;
  pause = new Pause();
  /** @type {AbortController | null} */ life = null;
  /** @type {AbortController | null} */ waiting = null; // the long poll under way
  hinted = false;

  /** @param {Mount} mount @param {string} url */
  constructor(mount, url) {
    this.mount = mount;
    this.url = url;
  }

  start() {
    if (this.life) return;
    this.life = new AbortController();
    void this.follow(this.life.signal);
  }

  stop() {
    this.life?.abort();
    this.life = null;
    this.waiting?.abort();
    this.pause.end();
  }

  /** Asks at once; a hidden tab a little later, at a time of its own. @param {boolean} [spread] */
  wake(spread = false) {
    if (spread && document.hidden) {
      if (!this.hinted) setTimeout(() => this.wake(), around(SPREAD) * 1000);
      this.hinted = true;
      return;
    }
    this.hinted = false;
    this.stale = true;
    this.waiting?.abort();
    this.pause.end();
  }

  tell() {
    for (const watcher of [...this.watchers]) watcher();
  }

  /** @param {AbortSignal} signal */
  async follow(signal) {
    while (!signal.aborted) {
      const pause = this.stale ? 0 : this.next();
      const left = this.asked + Math.max(pause, this.asked && GAP) - now();
      if (left > 0) {
        await this.pause.wait(left);
        continue;
      }
      const calm = !this.stale;
      this.stale = false;
      await this.ask(signal, calm);
      this.asked = now();
      this.luck = 0.8 + 0.4 * Math.random();
    }
  }

  /** Takes note of an answer, null for none; whether it says how things stand. @param {Answer | null} answer */
  heard(answer) {
    if (answer?.status === 401) {
      this.mount.signedOut();
      return false;
    }
    if (answer && (answer.status === 304 || (answer.status === 200 && answer.body))) {
      this.mount.out = false;
      this.known = now();
      this.failures = 0;
      this.retry = retryAfter(answer.headers);
      return true;
    }
    this.failures += 1;
    this.retry = answer ? retryAfter(answer.headers) : 0;
    return false;
  }

  /** Seconds from the last answer to the next question, if nothing happens. */
  next() {
    return Infinity;
  }

  /** @param {AbortSignal} signal @param {boolean} calm */
  async ask(signal, calm) {
    void signal;
    void calm;
  }
}

/** One job. */
class JobRecord extends Subject {
  /** @type {Job | null} */ job = null;
  tag = "";
  gone = false;
  covered = false; // the stream speaks of it
  listed = false; // a list on this page asks for it
  waits = true; // a long poll may be tried
  waitsAgain = 0; // when, after one has failed

  get settled() {
    return this.job !== null && isFinal(this.job) && !this.job.stopping;
  }

  /** @override */
  next() {
    if (this.gone || this.settled) return this.failures ? Math.max(this.retry, backoff(this.failures)) : Infinity;
    if (this.failures) return Math.max(this.retry, backoff(this.failures - 1) * this.luck);
    if (this.covered) return (document.hidden ? RARELY : STEADY) * this.luck;
    if (this.listed) return Infinity;
    if (now() < this.graceUntil) return this.graceUntil - this.asked;
    if (document.hidden) return RARELY * this.luck;
    if (this.waits && now() >= this.waitsAgain) return 0;
    const pace = this.retry || GRACE;
    return Math.min(pace * 1.25 ** this.unchanged, Math.max(pace, STEADY)) * this.luck;
  }

  /** @override @param {AbortSignal} signal @param {boolean} calm */
  async ask(signal, calm) {
    const may = calm && this.tag && !this.covered && !this.settled && !document.hidden && now() >= this.waitsAgain;
    if (may) await inTurn(this.mount.name, (seconds) => this.fetch(signal, seconds));
    else await this.fetch(signal, 0);
  }

  /** @param {AbortSignal} signal @param {number} seconds */
  async fetch(signal, seconds) {
    const ending = new AbortController();
    this.waiting = seconds ? ending : null;
    const headers = this.tag ? { "If-None-Match": `"${this.tag}"` } : {};
    const url = seconds ? `${this.url}?wait=${seconds}` : this.url;
    const answer = await call(url, this.mount.credentials, { headers, signal: ending.signal }, seconds + 20).catch(() => null);
    this.waiting = null;
    if (signal.aborted || ending.signal.aborted) return;
    this.waits = seconds > 0;
    if (seconds && answer?.status !== 200 && answer?.status !== 304 && answer?.status !== 401) {
      // Waits may be what does not work here. A plain question, which follows at once, tells.
      this.waits = false;
      this.waitsAgain = now() + Math.max(STEADY, answer ? retryAfter(answer.headers) : 0);
      this.stale = true;
      return;
    }
    if (answer && [403, 404, 410].includes(answer.status)) this.vanish();
    else if (this.heard(answer)) this.gone = false;
    if (answer?.status === 200 && answer.body) this.apply(answer.body);
    else this.unchanged += 1;
    if (!signal.aborted) this.tell();
  }

  /** Takes what the server said, if it is not older than what is known; whether it was. @param {Job} job */
  apply(job) {
    const tag = `${job.version}.${job.state}`;
    if (job.id !== this.mount.idOf(this.url) || (this.job && (job.version < this.job.version || tag === this.tag))) {
      this.unchanged += 1;
      return false;
    }
    this.job = job;
    this.tag = tag;
    this.unchanged = 0;
    return true;
  }

  /** A hint: it stands at this tag. @param {string} tag */
  hint(tag) {
    this.covered = true;
    this.waiting?.abort();
    if (tag !== this.tag && Number.parseInt(tag, 10) >= (this.job?.version ?? 0)) this.wake(true);
  }

  uncover() {
    this.covered = false;
    this.waits = true;
    this.graceUntil = now() + GRACE;
    this.pause.end();
  }

  vanish() {
    const shown = this.job !== null;
    this.gone = true;
    this.failures = 0;
    this.forget();
    if (shown) this.mount.doubt();
  }

  forget() {
    this.job = null;
    this.tag = "";
  }

  /** @returns {Seen} */
  seen() {
    const { mount } = this;
    const known = Math.max(this.known, this.covered && mount.live ? mount.beat : 0);
    const status = mount.out ? "signed-out" : this.gone ? "gone" : this.job ? "shown" : "loading";
    const away = this.failures > 0 || (!navigator.onLine && !(this.covered && mount.live));
    return { status, job: this.job, jobs: null, knownAt: known ? new Date(known * 1000) : null, away: away && !mount.out };
  }
}

const ORDER = ["needs", "going", "done"];
/** @param {Job} job */
const sectionOf = (job) => (job.state === "needs_attention" ? "needs" : isFinal(job) ? "done" : "going");

/** The jobs of whoever is signed in. */
class JobList extends Subject {
  /** @type {JobRecord[]} */ records = [];
  /** @type {Set<string>} */ met = new Set(); // ids that need no further look at the list
  loaded = false;
  more = false;
  limit = 20;

  /** @override */
  next() {
    if (this.failures) return Math.max(this.retry, backoff(this.failures - 1) * this.luck);
    if (this.mount.live || document.hidden) return (document.hidden ? RARELY : STEADY) * this.luck;
    if (now() < this.mount.graceUntil) return this.mount.graceUntil - this.asked;
    return backoff(this.unchanged / 2, GRACE) * this.luck;
  }

  /** @override @param {AbortSignal} signal */
  async ask(signal) {
    // The open ones first, so that old ones are not hidden behind newer ones that have ended.
    const urls = ["active", ""].map((state) => {
      const url = new URL(this.url);
      if (state && !url.searchParams.has("state")) url.searchParams.set("state", state);
      url.searchParams.set("limit", String(this.limit));
      return url.href;
    });
    const ask = /** @param {string} url */ (url) => call(url, this.mount.credentials).catch(() => null);
    const answers = await Promise.all([...new Set(urls)].map(ask));
    if (signal.aborted) return;
    const bad = answers.find((answer) => answer?.status !== 200 || !Array.isArray(answer.body?.items));
    if (this.heard(bad === undefined ? answers[0] : bad)) this.take(/** @type {Answer[]} */ (answers));
    if (!signal.aborted) this.tell();
  }

  /** @param {Answer[]} answers */
  take(answers) {
    /** @type {Map<string, Job>} */ const found = new Map();
    for (const { body } of answers) for (const job of body.items) found.set(job.id, job);
    const newest = [...found.values()].sort((a, b) => (a.accepted_at < b.accepted_at ? 1 : -1));
    const chosen = ORDER.flatMap((section) => newest.filter((job) => sectionOf(job) === section)).slice(0, this.limit);
    const before = this.records;
    this.records = chosen.map((job) => this.mount.record(job.id));
    this.more = found.size > chosen.length || answers.some(({ body }) => body.next !== null);
    for (const id of found.keys()) this.met.add(id);
    for (const record of before) record.listed = false;
    let changed = before.length !== this.records.length;
    this.records.forEach((record, place) => {
      record.listed = true;
      record.gone = false;
      record.stale = false;
      record.failures = 0;
      record.known = record.asked = now();
      if (record.apply(chosen[place])) changed = true;
      record.tell();
    });
    this.unchanged = changed ? 0 : this.unchanged + 1;
    const another = this.loaded && before.length > 0 && !this.records.some((record) => before.includes(record));
    this.loaded = true;
    if (another) this.mount.doubt();
  }

  /** @param {string} id @param {string} tag */
  hint(id, tag) {
    const listed = this.records.some((record) => record.job?.id === id);
    if (listed || (this.met.has(id) && !tag.endsWith(".needs_attention"))) return;
    this.met.add(id);
    this.wake(true);
  }

  forget() {
    for (const record of this.records) record.listed = false;
    this.records = [];
    this.met.clear();
    this.loaded = false;
  }

  /** @returns {Seen} */
  seen() {
    const { mount } = this;
    const status = mount.out ? "signed-out" : this.loaded ? "shown" : "loading";
    const jobs = this.records.flatMap((record) => record.job ?? []);
    jobs.sort((a, b) => ORDER.indexOf(sectionOf(a)) - ORDER.indexOf(sectionOf(b)));
    const away = this.failures > 0 || (!navigator.onLine && !mount.live);
    const known = Math.max(this.known, mount.live ? mount.beat : 0);
    return { status, job: null, jobs, knownAt: this.known ? new Date(known * 1000) : null, away: away && !mount.out };
  }
}

// -- one API mount, as this page follows it ------------------------------------------------------------------------

/** @type {Map<string, Mount>} */
const mounts = new Map();

/** The mount, and the id of a job or "" for the list, of an address; null for what is none of the API. @param {string} href */
function placeOf(href) {
  if (!href || !URL.canParse(href, document.baseURI)) return null;
  const url = new URL(href, document.baseURI);
  const found = /^(.*)\/v1\/jobs(?:\/([^/]+))?\/?$/.exec(url.pathname);
  if (!found || !/^https?:$/.test(url.protocol)) return null;
  const base = url.origin + found[1];
  const mount = mounts.get(base) ?? new Mount(base);
  mounts.set(base, mount);
  return { mount, id: found[2] ?? "", search: url.search };
}

/** Shares one event stream with all pages of this browser that show jobs of the same mount. */
class Mount {
  /** @type {Map<string, JobRecord>} */ records = new Map();
  /** @type {Map<string, JobList>} */ lists = new Map();
  /** @type {Credentials | undefined} */ credentials = undefined;
  out = false; // nobody is signed in
  live = false; // a stream is open, here or in the leader's page
  beat = 0; // when that was last heard
  was = false; // whether there was one before
  graceUntil = 0;
  doubted = 0;
  /** @type {AbortController | null} */ life = null; // while this page follows
  /** @type {AbortController | null} */ reign = null; // while it leads
  /** @type {AbortController | null} */ stream = null;
  /** @type {Map<string, string>} */ named = new Map(); // what the leader's stream has said since it opened
  /** @type {BroadcastChannel | null} */ channel = null;
  pause = new Pause();
  patient = false; // the stream is refused or held back: trying sooner does not help
  retry = 2;

  /** @param {string} base */
  constructor(base) {
    this.base = base;
    this.name = `outlast ${base}`;
    this.shared = "locks" in navigator && "BroadcastChannel" in globalThis;
  }

  get subjects() {
    return [...this.records.values(), ...this.lists.values()];
  }

  /** @param {string} url */
  idOf(url) {
    return url.slice(url.lastIndexOf("/") + 1);
  }

  /** @param {string} id */
  record(id) {
    const known = this.records.get(id);
    if (known) return known;
    const record = new JobRecord(this, `${this.base}/v1/jobs/${id}`);
    this.records.set(id, record);
    const tag = this.reign && this.named.get(id);
    if (tag) record.hint(tag);
    return record;
  }

  /** @param {string} search @param {number} limit */
  list(search, limit) {
    const key = `${search} ${limit}`;
    const list = this.lists.get(key) ?? new JobList(this, `${this.base}/v1/jobs${search}`);
    list.limit = limit;
    this.lists.set(key, list);
    return list;
  }

  /** @param {JobRecord | JobList} subject @param {() => void} watcher @returns {() => void} */
  watch(subject, watcher) {
    subject.watchers.add(watcher);
    this.go();
    subject.start();
    if (subject instanceof JobRecord && !subject.covered) this.post({ type: "ask", ids: [this.idOf(subject.url)] });
    return () => {
      subject.watchers.delete(watcher);
      setTimeout(() => this.tidy(), 0); // a node that moves is taken out and put back in one go
    };
  }

  tidy() {
    for (const places of [this.records, this.lists])
      for (const [key, subject] of places)
        if (!subject.watchers.size) {
          subject.stop();
          if (!(subject instanceof JobRecord && subject.listed)) places.delete(key);
        }
    if (!this.subjects.some((subject) => subject.watchers.size)) this.leave();
  }

  /** Begins to follow. */
  go() {
    if (this.life) return;
    this.life = new AbortController();
    if (this.shared && !this.channel) {
      this.channel = new BroadcastChannel(this.name);
      this.channel.onmessage = ({ data }) => this.receive(data);
    }
    this.setLive(false);
    this.beat = now();
    this.post({ type: "ask", ids: [...this.records.keys()], arrived: true });
    void this.elect(this.life.signal, false);
    for (const subject of this.subjects) if (subject.watchers.size) subject.start();
  }

  /** Ends all requests of its own, and leads no longer. */
  halt() {
    this.life?.abort();
    this.life = null;
    this.reign?.abort();
    this.stream?.abort();
    this.pause.end();
    for (const subject of this.subjects) subject.stop();
  }

  /** As if the page were closed. */
  leave() {
    this.halt();
    this.channel?.close();
    this.channel = null;
  }

  /** Asks about everything that is shown. @param {{ spread?: boolean, settled?: boolean }} [how] */
  look({ spread = false, settled = true } = {}) {
    if (!this.life && this.subjects.some((subject) => subject.watchers.size)) this.go();
    for (const list of this.lists.values()) list.wake(spread);
    for (const record of this.records.values()) if (!record.listed && (settled || !record.settled)) record.wake(spread);
  }

  /** Something that was shown is foreign or gone: somebody else may have signed in. Everybody looks again, and the stream is asked for anew. */
  doubt() {
    if (now() < this.doubted + GRACE) return;
    this.doubted = now();
    this.post({ type: "look" });
    this.look();
    this.reopen();
  }

  /** Nobody is signed in: nothing of what was shown may stay. @param {boolean} [told] */
  signedOut(told = false) {
    const before = this.out;
    this.out = true;
    this.halt();
    if (!told && !before) this.post({ type: "out" });
    for (const subject of this.subjects) {
      subject.forget();
      subject.stale = true;
      subject.failures = 0;
    }
    if (!before) for (const subject of this.subjects) subject.tell();
  }

  /** @param {Credentials | undefined} credentials */
  use(credentials) {
    this.credentials = credentials;
    if (this.out) this.look();
  }

  // Between tabs. No message says more than ids and tags; a page that may not see a job learns nothing it could show.

  /** @param {{ type: string, ids?: string[], arrived?: boolean, id?: string, tag?: string, live?: boolean }} message */
  post(message) {
    this.channel?.postMessage(message);
  }

  /** @param {any} message */
  receive(message) {
    if (message.type === "ask") {
      if (message.arrived && this.out) this.look({ spread: true });
      if (!this.reign) return;
      this.post({ type: "live", live: this.live });
      for (const id of message.ids) if (this.named.has(id)) this.post({ type: "news", id, tag: this.named.get(id) });
      // A page arrived: perhaps after a sign-in as somebody else. What is shown here tells, if the server still shows it.
      if (message.arrived && now() > this.doubted + GRACE) this.look();
    } else if (message.type === "news" && !this.reign) this.hear(message.id, message.tag);
    else if (message.type === "live" && !this.reign) this.setLive(message.live);
    else if (message.type === "look") {
      this.doubted = now();
      this.look({ spread: true });
      this.reopen();
    } else if (message.type === "out" && !this.out) {
      // Who signs in by headers may be somebody else than the page that was refused: the server is asked.
      if (this.credentials) this.look();
      else this.signedOut(true);
    }
  }

  /** @param {string} id @param {string} tag */
  hear(id, tag) {
    this.beat = now();
    this.records.get(id)?.hint(tag);
    for (const list of this.lists.values()) list.hint(id, tag);
  }

  /** @param {boolean} live */
  setLive(live) {
    this.beat = now();
    if (live === this.live && this.graceUntil) return;
    this.live = live;
    this.graceUntil = now() + GRACE;
    if (!live) for (const record of this.records.values()) record.uncover();
    // What ended while there was no stream is not named by the next one.
    else if (this.was) this.look({ spread: true, settled: false });
    this.was ||= live;
    for (const subject of this.subjects) subject.pause.end();
  }

  // The leader.

  /** @param {AbortSignal} signal @param {boolean} steal */
  async elect(signal, steal) {
    const reign = new AbortController();
    const lead = async () => {
      if (signal.aborted) return;
      this.reign = reign;
      await this.lead(reign.signal);
    };
    try {
      if (!this.shared) await lead();
      else await navigator.locks.request(this.name, steal ? { steal: true } : { signal }, lead);
    } catch {
      // Not granted before the end; or taken by another page, which had not heard of this one for too long.
      reign.abort();
      this.stream?.abort();
      if (this.reign === reign) this.reign = null;
      if (!signal.aborted) void this.elect(signal, false);
    }
  }

  /** A visible page that has not heard of its leader for long takes over. */
  checkLeader() {
    if (!this.life || !this.shared || this.reign || document.hidden || now() < this.beat + UNHEARD) return;
    this.setLive(false);
    void this.elect(this.life.signal, true);
  }

  /** Opens the stream for anew, with the credentials of now. */
  reopen() {
    if (!this.reign) return;
    this.patient = false;
    this.stream?.abort();
    this.pause.end();
  }

  /** @param {AbortSignal} signal */
  async lead(signal) {
    let failures = 0;
    while (!signal.aborted) {
      if (!this.shared && document.hidden) {
        await this.pause.wait(Infinity); // a stream for each hidden page would use up the browser's connections
        continue;
      }
      const began = now();
      const pause = await this.followStream(signal, failures);
      failures = now() - began > QUIET ? 0 : failures + 1;
      this.named.clear();
      this.setLive(false);
      this.post({ type: "live", live: false });
      if (!signal.aborted) await this.pause.wait(around(pause));
    }
    if (this.reign?.signal === signal) this.reign = null;
  }

  /** One stream until it ends; seconds until the next. @param {AbortSignal} signal @param {number} failures */
  async followStream(signal, failures) {
    const ending = (this.stream = new AbortController());
    let timer = setTimeout(() => ending.abort(), FIRST_BYTE * 1000);
    let heard = false;
    this.patient = false;
    try {
      const headers = { Accept: "text/event-stream" };
      const { status, response } = await send(`${this.base}/v1/events`, this.credentials, { headers, signal: ending.signal });
      if (status === 401) {
        if (!signal.aborted) this.signedOut();
        return RARELY;
      }
      if (status !== 200 || !response.body || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        this.patient = status < 500;
        ending.abort();
        return Math.max(retryAfter(response.headers), backoff(failures, status < 500 ? STEADY / 4 : 2, RARELY));
      }
      const alive = () => {
        clearTimeout(timer);
        timer = setTimeout(() => ending.abort(), QUIET * 1000);
        heard = true;
        this.setLive(true);
        this.post({ type: "live", live: true });
      };
      let tag = "";
      for await (const line of eventsOf(response.body, alive)) {
        if (signal.aborted) break;
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
        if (field === "retry") this.retry = Math.min(Math.max(Number(value) / 1000 || 2, 0.5), STEADY);
        if (field === "id") tag = value;
        if (field === "data") this.passOn(JSON.parse(value).id, tag);
      }
    } catch {
      this.patient = !heard && navigator.onLine && ending.signal.aborted && !signal.aborted && this.stream === ending;
      if (this.patient) return backoff(failures, STEADY, 600); // held back
    } finally {
      clearTimeout(timer);
      ending.abort();
    }
    return heard ? this.retry : backoff(failures, this.retry);
  }

  /** @param {string} id @param {string} tag */
  passOn(id, tag) {
    this.named.set(id, tag);
    this.post({ type: "news", id, tag });
    this.hear(id, tag);
  }
}

/** The person signed out: what is shown is removed in all tabs. */
export function signedOut() {
  for (const mount of mounts.values()) mount.signedOut();
}

const everywhere = /** @param {(mount: Mount) => void} act */ (act) => () => mounts.forEach(act);
const comeBack = everywhere((mount) => {
  mount.look();
  if (!mount.patient) mount.pause.end();
});
addEventListener("online", comeBack);
addEventListener("offline", everywhere((mount) => {
  mount.stream?.abort();
  mount.look({ spread: true });
}));
addEventListener("pagehide", everywhere((mount) => mount.leave()));
addEventListener("pageshow", ({ persisted }) => persisted && comeBack());
document.addEventListener("freeze", everywhere((mount) => mount.leave()));
document.addEventListener("resume", comeBack);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) comeBack();
  else for (const mount of mounts.values()) if (!mount.shared) mount.stream?.abort();
});
setInterval(everywhere((mount) => mount.checkLeader()), 10_000);

/** See component.d.ts. @param {string} href @param {(seen: Seen) => void} callback @param {{ headers?: Credentials, limit?: number }} [options] */
export function watch(href, callback, { headers, limit = 20 } = {}) {
  const place = placeOf(href);
  if (!place) throw new TypeError("watch() takes the address of a job or of the list of jobs.");
  if (headers) place.mount.use(headers);
  const subject = place.id ? place.mount.record(place.id) : place.mount.list(place.search, limit);
  const tell = () => callback(structuredClone(subject.seen()));
  const end = place.mount.watch(subject, tell);
  tell();
  return end;
}
