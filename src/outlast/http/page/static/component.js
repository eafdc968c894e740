// @ts-check
/**
 * Outlast in a page of yours: the elements <outlast-job> and <outlast-jobs>, and watch(), submit() and resume(); see component.d.ts.
 * One module without dependencies. It builds nodes only, so it works under a strict Content-Security-Policy with Trusted Types.
 *
 * How it stays true
 *   What is shown was always fetched by this page, with the credentials of that moment. The event stream, and what tabs tell each other,
 *   are hints that it is time to ask again: they carry a job's id and tag, never what a job is. So a lost, late or doubled hint costs time
 *   only; and when somebody else signs in in this browser, no tab can be fed what belongs to the person before: the server is asked as
 *   whoever is signed in now, answers 404 for what is theirs no longer, and what was shown is removed.
 *   Of two answers the one with the newer version is shown; at the same version the later one, for the shown state may differ.
 *
 * How it stays quiet
 *   One tab, the leader, holds the one event stream of the browser (a Web Lock elects it) and passes hints on through a BroadcastChannel.
 *   A job that the stream does not speak of is asked for by a long poll, one at a time for each page, or else by polls at the pace that the
 *   server names: when the stream is refused, or held back by a buffering proxy; or when the job is somebody else's, and an operator looks
 *   at it. Hidden tabs ask late and seldom, and at once when they are looked at.
 *
 * Nothing is ever cancelled because a page goes away.
 *
 * @typedef {import("./component.d.ts").Job} Job
 * @typedef {import("./component.d.ts").Seen} Seen
 * @typedef {import("./component.d.ts").Headers} Credentials
 * @typedef {{ status: number, headers: Headers, body: any }} Answer
 * @typedef {{ url: string, key: string, name: string, owner: string, body: string, at: number }} Wanted
 */

// -- words ---------------------------------------------------------------------------------------------------------

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
  usable: "The first result can be opened now.",
  usable_goes_on: "The first result can be opened now. The rest goes on by itself.",
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
  unsent: "Not known to be done: the server did not answer. Try again.",
  refused: "Not done: {reason}.",
  loading: "Loading",
  gone: "This job is gone, or it is not yours to see.",
  "signed-out": "Signed out. Sign in to see this.",
  away: "Not connected. Last known at {time}.",
  unreached: "Not connected. This appears as soon as the server answers.",
  needs: "Needs you",
  going: "Goes on",
  done: "Ended",
  empty: "There is no work of yours here yet.",
  older: "There are older ones that are not shown here.",
};

/** @param {string} name @param {Record<string, unknown>} [values] */
const say = (name, values = {}) => (words[name] ?? "").replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));

/** The hour and minute of a moment; with its day when that is another one. @param {Date | string} moment */
function clock(moment) {
  const at = new Date(moment);
  const day = at.toDateString() === new Date().toDateString() ? {} : /** @type {const} */ ({ day: "numeric", month: "short" });
  return at.toLocaleString(undefined, { hour: "2-digit", minute: "2-digit", ...day });
}

const SECTIONS = ["needs", "going", "done"];
/** @param {Job} job */
const sectionOf = (job) => (job.state === "needs_attention" ? "needs" : job.outcome === null ? "going" : "done");
/** What needs its owner first, then what goes on, then what has ended; the newest first in each. @param {Job} a @param {Job} b */
const inOrder = (a, b) => SECTIONS.indexOf(sectionOf(a)) - SECTIONS.indexOf(sectionOf(b)) || (a.accepted_at < b.accepted_at ? 1 : -1);
/** @param {Job} job */
const progressOf = ({ progress }) => say(progress.label ? "progress_now" : "progress", progress);

/**
 * Where the result is opened: what the usable task refers to, if following it is safe, else the API's result.
 * @param {Job} job @param {string} url
 */
function openable(job, url) {
  const ref = job.usable_ref ?? "";
  // Browsers drop blanks and controls and turn backslashes: the address would be another one than it seems.
  const safe = !/[\s\\\p{C}]/u.test(ref) && (/^\/(?!\/)/.test(ref) || /^https?:\/\/[^/?#@]+(?:[/?#]|$)/i.test(ref));
  return safe && URL.canParse(ref, document.baseURI) ? new URL(ref, document.baseURI).href : `${url}/result`;
}

// -- requests and pauses; all times are seconds --------------------------------------------------------------------

const GAP = 0.25; // between two questions about the same thing, however many hints come
const GRACE = 5; // within which a stream must have begun, and have named what is shown
const WAIT = 25; // of a long poll
const QUIET = 40; // a stream that says nothing so long is dead: a heartbeat comes every 15 s
const UNHEARD = 100; // a leader that says nothing so long is frozen: a hidden one may speak once a minute only
const STEADY = 60; // between looks that should find nothing new, and the longest pause between polls
const RARELY = 300; // between looks of hidden tabs
const SPREAD = 5; // hidden tabs follow a hint within about this time, each at its own
const WEEK = 7 * 24 * 3600;

const now = () => Date.now() / 1000;
/** About so long, for each tab another time. @param {number} seconds */
const around = (seconds) => seconds * (0.5 + Math.random());
/** @param {number} failures @param {number} [least] @param {number} [most] */
const backoff = (failures, least = 1, most = STEADY) => Math.min(most, least * 2 ** Math.max(failures - 1, 0));

/** A pause that can be cut short. */
class Pause {
  end = () => {};

  /** @param {number} seconds @returns {Promise<void>} */
  wait(seconds) {
    return new Promise((resolve) => {
      const timer = seconds < Infinity ? setTimeout(resolve, seconds * 1000) : undefined;
      this.end = () => (clearTimeout(timer), resolve());
    });
  }
}

/** Seconds that an answer asks to wait; 0 if it does not say. @param {Headers | undefined} headers */
function retryAfter(headers) {
  const said = headers?.get("Retry-After") ?? "";
  const seconds = /^\d+$/.test(said) ? Number(said) : (Date.parse(said) - Date.now()) / 1000;
  return seconds > 0 ? Math.min(seconds, 3600) : 0;
}

/**
 * A response, asked for with the credentials of this moment.
 * @param {string} url @param {Credentials | undefined} credentials @param {RequestInit} init
 */
async function send(url, credentials, init) {
  const own = typeof credentials === "function" ? await credentials() : credentials;
  const headers = { .../** @type {Record<string, string>} */ (init.headers), ...own };
  const response = await fetch(url, { cache: "no-store", credentials: "same-origin", redirect: "manual", ...init, headers });
  // The API never redirects: it is the host that leads to its sign-in.
  return { status: response.type === "opaqueredirect" ? 401 : response.status, response };
}

/**
 * A whole answer, with its body if that is JSON; null where none came in time.
 * @param {string} url @param {Credentials | undefined} credentials @param {RequestInit} [init] @param {number} [seconds]
 * @returns {Promise<Answer | null>}
 */
async function call(url, credentials, { signal, ...init } = {}, seconds = 30) {
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, seconds * 1000);
  signal?.addEventListener("abort", end);
  try {
    signal?.throwIfAborted();
    const { status, response } = await send(url, credentials, { ...init, signal: ending.signal });
    const json = /[/+]json\b/.test(response.headers.get("Content-Type") ?? "");
    return { status, headers: response.headers, body: json ? await response.json() : null };
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** The lines of a stream as they come. @param {ReadableStream<Uint8Array>} body @param {() => void} heard called for every part */
async function* linesOf(body, heard) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

// -- what is followed ----------------------------------------------------------------------------------------------

/** Something that is kept true while anybody watches it: asked for when a hint says so, and from time to time. @abstract */
class Subject {
  /** @type {Set<() => void>} */ watchers = new Set();
  stale = true; // what is known may not be so any more
  asked = 0; // when the last question was over
  known = 0; // when the server last said how it stands
  failures = 0; // questions since then
  unchanged = 0; // answers in a row that brought nothing new
  retry = 0; // what the last answer asked to wait
  luck = 1; // spreads the pauses
  hinted = false;
  pause = new Pause();
  /** @type {AbortController | null} */ life = null;
  /** @type {AbortController | null} */ waiting = null; // the long poll under way

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

  /** Asks at once; with `spread` a hidden tab takes its time. @param {boolean} [spread] */
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
      const pause = this.failures ? Math.max(this.retry, backoff(this.failures) * this.luck) : this.next();
      const left = this.asked + Math.max(this.stale ? 0 : pause, this.asked && GAP) - now();
      if (left > 0) {
        await this.pause.wait(left);
        continue;
      }
      const calm = !this.stale;
      this.stale = false;
      await this.ask(signal, calm);
      this.stale ||= signal.aborted;
      this.asked = now();
      this.mount.adjust();
      this.luck = 0.8 + 0.4 * Math.random();
    }
  }

  /** Takes note of an answer; whether it says how things stand. @param {Answer | null} answer */
  heard(answer) {
    if (answer?.status === 401) this.mount.signedOut();
    this.retry = retryAfter(answer?.headers);
    const good = answer?.status === 304 || (answer?.status === 200 && answer.body !== null);
    this.failures = good ? 0 : this.failures + 1;
    if (!good) return false;
    this.mount.out = false;
    this.known = now();
    return true;
  }

  /** @param {boolean} covered whether the stream speaks of it @param {Partial<Seen>} seen @returns {Seen} */
  describe(covered, seen) {
    const { out, live, beat } = this.mount;
    const following = covered && live;
    const known = Math.max(this.known, this.known && following ? beat : 0);
    const away = !out && (this.failures > 0 || (!navigator.onLine && !following));
    return { status: out ? "signed-out" : "loading", job: null, jobs: null, knownAt: known ? new Date(known * 1000) : null, away, ...seen };
  }

  /** Nothing changes any more. */
  get settled() {
    return false;
  }

  /** Seconds from the last answer to the next question, if nothing happens. @returns {number} */
  next() {
    throw new Error("abstract");
  }

  /** @param {AbortSignal} signal @param {boolean} calm nothing is known to have changed: it may be waited for @returns {Promise<void>} */
  async ask(signal, calm) {
    throw new Error(`abstract ${signal} ${calm}`);
  }
}

/** One job. */
class JobRecord extends Subject {
  /** @type {Job | null} */ job = null;
  tag = "";
  gone = false;
  covered = false; // the stream speaks of it
  listed = false; // a list on this page asks for it
  graceUntil = now() + GRACE;
  waits = true; // the last question waited, or the next one may
  waitsAgain = 0; // when, after a long poll did not work

  /** @param {Mount} mount @param {string} id */
  constructor(mount, id) {
    super(mount, `${mount.base}/v1/jobs/${id}`);
    this.id = id;
  }

  get settled() {
    return this.gone || (this.job !== null && this.job.outcome !== null && !this.job.stopping);
  }

  next() {
    if (this.settled) return Infinity;
    if (this.covered) return (document.hidden ? RARELY : STEADY) * this.luck;
    if (this.listed) return Infinity;
    if (now() < this.graceUntil) return this.graceUntil - this.asked;
    if (document.hidden) return RARELY * this.luck;
    if (this.waits && now() >= this.waitsAgain) return 0;
    const pace = this.retry || GRACE;
    return Math.min(pace * 1.25 ** this.unchanged, Math.max(pace, STEADY)) * this.luck;
  }

  /** @param {AbortSignal} signal @param {boolean} calm */
  async ask(signal, calm) {
    const { mount } = this;
    const open = this.tag !== "" && !this.covered && !this.settled;
    const wait = calm && open && !document.hidden && !mount.waiting && now() >= this.waitsAgain;
    mount.waiting ||= wait;
    this.waiting = wait ? new AbortController() : null;
    const headers = this.tag ? { "If-None-Match": `"${this.tag}"` } : undefined;
    const stopping = this.waiting?.signal ?? signal;
    const answer = await call(wait ? `${this.url}?wait=${WAIT}` : this.url, mount.credentials, { headers, signal: stopping }, WAIT + 20);
    if (wait) mount.waiting = false;
    this.waiting = null;
    if (stopping.aborted || signal.aborted) return;
    this.waits = wait;
    if (wait && ![200, 304, 401].includes(answer?.status ?? 0)) {
      // Perhaps it is waiting that does not work here: the plain question that follows at once tells.
      this.waitsAgain = now() + Math.max(STEADY, retryAfter(answer?.headers));
      this.waits = false;
      this.stale = true;
      return;
    }
    if (answer && [403, 404, 410].includes(answer.status)) this.vanish();
    else if (this.heard(answer)) {
      this.gone = false;
      this.unchanged = answer?.body && this.apply(answer.body) ? 0 : this.unchanged + 1;
    }
    this.tell();
  }

  /** Takes what the server said, unless what is known is newer; whether it did. @param {Job} job */
  apply(job) {
    const tag = `${job.version}.${job.state}`;
    if (job.id !== this.id || tag === this.tag || (this.job && job.version < this.job.version)) return false;
    this.job = job;
    this.tag = tag;
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
  }

  vanish() {
    const shown = this.job !== null;
    this.forget();
    this.gone = true;
    this.failures = 0;
    if (shown) this.mount.doubt();
  }

  forget() {
    this.job = null;
    this.tag = "";
    this.gone = false;
  }

  seen() {
    const { job, covered } = this;
    return this.describe(covered, this.gone ? { status: "gone" } : job ? { status: "shown", job } : {});
  }
}

/** The jobs of whoever is signed in. */
class JobList extends Subject {
  /** @type {JobRecord[]} */ records = [];
  /** @type {Set<string>} */ met = new Set(); // jobs that are no reason to ask for the list
  loaded = false;
  more = false;
  limit = 20;

  next() {
    if (this.mount.live || document.hidden) return (document.hidden ? RARELY : STEADY) * this.luck;
    return now() < this.mount.graceUntil ? this.mount.graceUntil - this.asked : backoff(this.unchanged / 2, GRACE) * this.luck;
  }

  /** The open jobs too, so that an old one is not hidden behind newer ones that have ended. @param {AbortSignal} signal */
  async ask(signal) {
    const newest = new URL(this.url);
    newest.searchParams.set("limit", String(this.limit));
    const open = new URL(newest);
    if (!open.searchParams.has("state")) open.searchParams.set("state", "active");
    const urls = [...new Set([newest.href, open.href])];
    const answers = await Promise.all(urls.map((url) => call(url, this.mount.credentials, { signal })));
    if (signal.aborted) return;
    const bad = answers.find((answer) => !Array.isArray(answer?.body?.items));
    if (this.heard(bad === undefined ? answers[0] : bad)) this.take(answers.map((answer) => answer?.body));
    this.tell();
  }

  /** @param {{ items: Job[], next: string | null }[]} pages */
  take(pages) {
    const found = new Map(pages.flatMap((page) => page.items).map((job) => [job.id, job]));
    const chosen = [...found.values()].sort(inOrder).slice(0, this.limit);
    const before = this.records;
    for (const record of before) record.listed = false;
    let changed = before.length !== chosen.length;
    this.records = chosen.map((job) => {
      const record = this.mount.record(job.id);
      if (!record.job) Object.assign(record, { stale: false, asked: now() });
      Object.assign(record, { listed: true, gone: false, failures: 0, known: now() });
      changed = record.apply(job) || changed;
      record.tell();
      return record;
    });
    this.more = found.size > chosen.length || pages.some((page) => page.next !== null);
    for (const id of found.keys()) this.met.add(id);
    this.unchanged = changed ? 0 : this.unchanged + 1;
    if (before.length && !before.some((record) => record.listed)) this.mount.doubt();
    this.loaded = true;
  }

  /** A hint: a job, perhaps a new one, stands at this tag. @param {string} id @param {string} tag */
  hint(id, tag) {
    const urgent = tag.endsWith(".needs_attention") && !this.records.some((record) => record.id === id);
    if (this.met.has(id) && !urgent) return;
    this.met.add(id);
    this.wake(true);
  }

  forget() {
    for (const record of this.records) record.listed = false;
    this.records = [];
    this.met.clear();
    this.loaded = false;
  }

  seen() {
    const jobs = this.records.flatMap((record) => record.job ?? []).sort(inOrder);
    return this.describe(true, this.loaded ? { status: "shown", jobs } : {});
  }
}

// -- one API mount, as this page follows it ------------------------------------------------------------------------

/** @type {Map<string, Mount>} */
const mounts = new Map();

/** What an address of the API is about: one job, or the list; null for any other address. @param {string} href @param {number} limit */
function subjectOf(href, limit) {
  const url = URL.canParse(href, document.baseURI) ? new URL(href, document.baseURI) : null;
  const found = /^(.*)\/v1\/jobs(?:\/([^/]+))?\/?$/.exec(url?.pathname ?? "");
  if (!url || !found || !href || !/^https?:$/.test(url.protocol)) return null;
  const base = url.origin + found[1];
  const mount = mounts.get(base) ?? new Mount(base);
  mounts.set(base, mount);
  return found[2] ? mount.record(found[2]) : mount.list(url.search, limit);
}

/** Follows all that this page shows of a mount, and shares one event stream with the other pages of this browser. */
class Mount {
  /** @type {Map<string, JobRecord>} */ records = new Map();
  /** @type {Map<string, JobList>} */ lists = new Map();
  /** @type {Credentials | undefined} */ credentials = undefined;
  out = false; // nobody is signed in
  live = false; // a stream is open, here or in the leader's page
  was = false; // there was one before
  beat = 0; // when the leader was last heard
  graceUntil = 0;
  doubted = 0; // when it seemed that somebody else signed in
  looked = 0; // when a page that arrived was reason to look
  waiting = false; // a long poll is under way
  /** @type {AbortController | null} */ life = null; // while this page follows
  /** @type {AbortController | null} */ candidacy = null; // while it may lead
  /** @type {AbortController | null} */ reign = null; // while it leads
  /** @type {AbortController | null} */ stream = null;
  /** @type {BroadcastChannel | null} */ channel = null;
  /** @type {Map<string, string>} */ named = new Map(); // what the leader's stream has said: tags by id
  pause = new Pause(); // until the next stream
  patient = false; // the stream is refused or held back, and trying sooner does not help
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

  /** @param {string} id */
  record(id) {
    const record = this.records.get(id) ?? new JobRecord(this, id);
    this.records.set(id, record);
    if (this.named.has(id)) record.covered = true;
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

  /** Other header fields may be another person's. @param {Credentials | undefined} credentials */
  use(credentials) {
    const before = this.credentials;
    this.credentials = credentials;
    // Of a function nobody can tell what it will say; frameworks make a new one at each of their renders.
    const same = typeof credentials === "function" ? typeof before === "function" : JSON.stringify(credentials) === JSON.stringify(before);
    if (same && !this.out) return;
    this.halt();
    this.look();
  }

  /** @param {JobRecord | JobList} subject @param {() => void} watcher */
  watch(subject, watcher) {
    subject.watchers.add(watcher);
    if (this.life && subject instanceof JobRecord && !subject.covered) this.post({ type: "ask", ids: [subject.id] });
    this.go();
    subject.start();
    this.adjust();
    return () => {
      subject.watchers.delete(watcher);
      setTimeout(() => this.tidy(), 0); // a node that moves is taken out and put in again at once
    };
  }

  /** Lets go of what nobody watches. */
  tidy() {
    for (const subject of this.subjects) if (!subject.watchers.size) subject.stop();
    for (const [key, list] of this.lists) if (!list.watchers.size && this.lists.delete(key)) list.forget();
    for (const [id, record] of this.records) if (!record.watchers.size && !record.listed) this.records.delete(id);
    if (this.subjects.some((subject) => subject.watchers.size)) this.adjust();
    else this.leave();
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
    this.post({ type: "ask", ids: [...this.records.keys()], arrived: true });
    this.adjust();
    for (const subject of this.subjects) if (subject.watchers.size) subject.start();
  }

  /** Takes part in the stream while something may still change, and not for what has ended. */
  adjust() {
    if (!this.life || !this.subjects.some((subject) => subject.watchers.size && !subject.settled)) this.resign();
    else if (!this.candidacy) {
      this.candidacy = new AbortController();
      void this.elect(this.candidacy.signal);
    }
  }

  resign() {
    this.candidacy?.abort();
    this.reign?.abort();
    this.stream?.abort();
    this.candidacy = this.reign = null;
    this.pause.end();
  }

  /** Ends every request. */
  halt() {
    this.life?.abort();
    this.life = null;
    this.resign();
    for (const subject of this.subjects) subject.stop();
  }

  /** As a page that is closed does. */
  leave() {
    this.halt();
    this.channel?.close();
    this.channel = null;
  }

  /** Asks about all that is shown. @param {boolean} [spread] @param {boolean} [settled] also about what has ended */
  look(spread = false, settled = true) {
    if (this.subjects.some((subject) => subject.watchers.size)) this.go();
    for (const list of this.lists.values()) list.wake(spread);
    for (const record of this.records.values()) if (!record.listed && (settled || !record.settled)) record.wake(spread);
  }

  /** Something that was shown is gone: perhaps somebody else signed in. Everybody looks again, and the stream is opened for them. */
  doubt() {
    if (now() < this.doubted + GRACE) return;
    this.doubted = now();
    this.post({ type: "look" });
    this.look();
    this.reopen();
  }

  /** Nobody is signed in: nothing of what was shown may stay. @param {boolean} [told] by another page */
  signedOut(told = false) {
    const before = this.out;
    this.out = true;
    this.halt();
    for (const subject of this.subjects) {
      subject.forget();
      Object.assign(subject, { stale: true, failures: 0, known: 0 });
    }
    if (before) return;
    if (!told) this.post({ type: "out" });
    for (const subject of this.subjects) subject.tell();
  }

  // Between tabs: ids and tags, so that a page which may not see a job learns nothing that it could show.

  /** @param {{ type: string, ids?: string[], arrived?: boolean, id?: string, tag?: string, live?: boolean }} message */
  post(message) {
    this.channel?.postMessage(message);
  }

  /** @param {any} message */
  receive({ type, ids, arrived, id, tag, live }) {
    if (type === "news" && !this.reign) this.hear(id, tag);
    if (type === "live" && !this.reign) this.setLive(live);
    if (type === "ask" && this.reign) {
      this.post({ type: "live", live: this.live });
      for (const known of ids) if (this.named.has(known)) this.post({ type: "news", id: known, tag: this.named.get(known) });
    }
    // A page arrived, perhaps after a sign-in: what is shown here tells whether it was as somebody else.
    if (type === "ask" && arrived && (this.out || this.reign) && now() > this.looked + GRACE) {
      this.looked = now();
      this.look(this.out);
    }
    if (type === "look") {
      this.doubted = now();
      this.look(true);
      this.reopen();
    }
    // Who signs in by header fields may be somebody else than who was refused: the server is asked.
    if (type === "out" && this.credentials) this.look();
    else if (type === "out") this.signedOut(true);
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
    else if (this.was) this.look(true, false); // what ended while there was none, the new stream does not name
    this.was ||= live;
    for (const subject of this.subjects) subject.pause.end();
  }

  // The leader.

  /** @param {AbortSignal} signal @param {boolean} [steal] */
  async elect(signal, steal = false) {
    const reign = new AbortController();
    const lead = async () => {
      if (signal.aborted) return;
      this.reign = reign;
      await this.lead(reign.signal);
    };
    try {
      if (this.shared) await navigator.locks.request(this.name, steal ? { steal } : { signal }, lead);
      else await lead();
    } catch {
      // It ended before it was elected; or another page took over, which had not heard of this one for too long.
      reign.abort();
      if (this.reign !== reign) return;
      this.reign = null;
      this.stream?.abort();
      this.pause.end();
      void this.elect(signal);
    }
  }

  /** The leader says that it is there; a visible page that has not heard of it for too long takes over. */
  checkLeader() {
    if (this.reign) this.announce(this.live);
    if (!this.candidacy || !this.shared || this.reign || document.hidden || now() < this.beat + UNHEARD) return;
    this.setLive(false);
    void this.elect(this.candidacy.signal, true);
  }

  /** @param {boolean} live */
  announce(live) {
    this.setLive(live);
    this.post({ type: "live", live });
  }

  /** Opens the stream anew, with the credentials of now. */
  reopen() {
    if (!this.reign) return;
    this.stream?.abort();
    this.pause.end();
  }

  /** @param {AbortSignal} signal */
  async lead(signal) {
    this.announce(false); // what the leader before has said of its stream holds no longer
    for (let failures = 0; !signal.aborted; ) {
      // Without sharing, a stream for each hidden page would use up the connections that a browser has to a host.
      if (!this.shared && document.hidden) {
        await this.pause.wait(Infinity);
        continue;
      }
      const began = now();
      const pause = await this.followStream(failures);
      failures = now() - began > QUIET ? 0 : failures + 1;
      if (signal.aborted) break;
      this.named.clear();
      this.announce(false);
      await this.pause.wait(pause);
    }
  }

  /** One stream until it ends; seconds until the next. @param {number} failures */
  async followStream(failures) {
    const ending = (this.stream = new AbortController());
    let heard = false;
    let late = false;
    const end = () => {
      late = true;
      ending.abort();
    };
    let timer = setTimeout(end, GRACE * 1000);
    this.patient = false;
    try {
      const headers = { Accept: "text/event-stream" };
      const { status, response } = await send(`${this.base}/v1/events`, this.credentials, { headers, signal: ending.signal });
      if (status === 401 && !ending.signal.aborted) this.signedOut();
      if (status !== 200 || !response.body || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        this.patient = status < 500;
        return Math.max(retryAfter(response.headers), around(backoff(failures, this.patient ? STEADY / 4 : this.retry, RARELY)));
      }
      let tag = "";
      const lines = linesOf(response.body, () => {
        clearTimeout(timer);
        timer = setTimeout(end, QUIET * 1000);
        heard = true;
        this.announce(true);
      });
      for await (const line of lines) {
        const [, field, value] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
        if (field === "retry") this.retry = Math.min(Math.max(Number(value) / 1000 || 2, 1), STEADY);
        if (field === "id") tag = value;
        if (field === "data") this.passOn(JSON.parse(value).id, tag);
      }
      return around(backoff(failures, this.retry));
    } catch {
      // Nothing came in time, though the browser is online: something holds it back.
      this.patient = late && !heard && navigator.onLine;
      return around(this.patient ? backoff(failures, STEADY, 2 * RARELY) : backoff(failures, this.retry));
    } finally {
      clearTimeout(timer);
      ending.abort();
    }
  }

  /** @param {string} id @param {string} tag */
  passOn(id, tag) {
    this.named.set(id, tag);
    this.post({ type: "news", id, tag });
    this.hear(id, tag);
  }
}

/** @param {(mount: Mount) => void} act */
const everywhere = (act) => () => mounts.forEach(act);
const leave = everywhere((mount) => mount.leave());
const comeBack = everywhere((mount) => {
  mount.look(true);
  if (!mount.patient) mount.pause.end();
});
const stayAway = everywhere((mount) => {
  mount.stream?.abort();
  mount.look(true);
});
const toggle = () => (document.hidden ? mounts.forEach((mount) => mount.shared || mount.stream?.abort()) : comeBack());
addEventListener("online", comeBack);
addEventListener("offline", stayAway);
addEventListener("pagehide", leave);
addEventListener("pageshow", ({ persisted }) => persisted && comeBack());
document.addEventListener("freeze", leave);
document.addEventListener("resume", comeBack);
document.addEventListener("visibilitychange", toggle);
setInterval(everywhere((mount) => mount.checkLeader()), 10_000);

/** @type {import("./component.d.ts").signedOut} */
export const signedOut = everywhere((mount) => mount.signedOut());

/** @type {import("./component.d.ts").watch} */
export function watch(href, callback, { headers, limit = 20 } = {}) {
  const subject = subjectOf(href, limit);
  if (!subject) throw new TypeError("watch() takes the address of a job or of the list of jobs.");
  if (headers) subject.mount.use(headers);
  const tell = () => callback(structuredClone(subject.seen()));
  const end = subject.mount.watch(subject, tell);
  tell();
  return end;
}

// -- the elements --------------------------------------------------------------------------------------------------

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host {
  --_text: var(--outlast-text, light-dark(#1c2127, #e6e9ed)); --_muted: var(--outlast-muted, light-dark(#59636f, #a5afbb));
  --_surface: var(--outlast-surface, light-dark(#fff, #1a1e23)); --_border: var(--outlast-border, light-dark(#d3d9e0, #3a424c));
  --_accent: var(--outlast-accent, light-dark(#0b5cad, #82b8f5)); --_on-accent: var(--outlast-on-accent, light-dark(#fff, #0d1a29));
  --_good: var(--outlast-good, light-dark(#176a3a, #7bd3a0)); --_warn: var(--outlast-warn, light-dark(#8a4600, #f3bd6f));
  --_warn-surface: var(--outlast-warn-surface, light-dark(#fff5e6, #33260f)); --_radius: var(--outlast-radius, 0.5rem);
  display: block; container-type: inline-size; color: var(--_text); font: var(--outlast-font, inherit); line-height: 1.45;
}
:host([hidden]), [hidden] { display: none !important; }
article {
  background: var(--_surface); border: 1px solid var(--_border); border-radius: var(--_radius);
  padding: var(--outlast-padding, 0.875rem 1rem);
}
article:focus { outline: none; }
article, .rows { display: grid; gap: 0.5rem; }
.line { display: flex; flex-wrap: wrap; gap: 0.25rem 0.75rem; align-items: center; }
.label { font-weight: 600; margin-inline-end: auto; overflow-wrap: anywhere; color: inherit; }
.state { color: var(--_muted); font-weight: 600; font-size: 0.875em; }
.running .state, .queued .state, .retrying .state { color: var(--_accent); }
.needs_attention .state { color: var(--_warn); }
.completed .state { color: var(--_good); }
p, h3, ul { margin: 0; padding: 0; overflow-wrap: anywhere; }
ul { list-style: none; }
h3 { font-size: 1em; margin-block-end: 0.375rem; }
.quiet { color: var(--_muted); font-size: 0.875em; }
.away { color: var(--_warn); }
.section, .older { margin-block-start: 0.75rem; }
.box {
  background: var(--_warn-surface); border-inline-start: 0.25rem solid var(--_warn); border-radius: calc(var(--_radius) / 2);
  padding: 0.625rem 0.75rem; display: grid; gap: 0.5rem;
}
progress {
  appearance: none; flex: 1 1 8rem; min-inline-size: 6rem; block-size: 0.5rem; border: 0; border-radius: 1rem; overflow: hidden;
  background: var(--_border); color: var(--_accent);
}
progress::-webkit-progress-bar { background: var(--_border); }
progress::-webkit-progress-value { background: var(--_accent); }
progress::-moz-progress-bar { background: var(--_accent); }
button, .open, .box a {
  box-sizing: border-box; font: inherit; font-size: 0.9375em; color: var(--_text); background: transparent; text-decoration: none;
  cursor: pointer; border: 1px solid var(--_border); border-radius: calc(var(--_radius) * 0.75); padding: 0.3125rem 0.75rem;
  min-block-size: 2.25em; display: inline-flex; align-items: center;
}
.box button, .box a { border-color: currentColor; }
.open { background: var(--_accent); border-color: var(--_accent); color: var(--_on-accent); }
button:hover, .open:hover, .box a:hover { text-decoration: underline; }
[aria-busy="true"] button { opacity: 0.6; cursor: progress; }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
.spoken { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@container (max-width: 22rem) { .line > button, .line > .open, .box a { flex: 1 1 auto; justify-content: center; } }
@media (forced-colors: active) { progress { appearance: auto; } article { border-color: CanvasText; } }
`);

/**
 * A node with its part, which is also its class. @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {string} part @param {...(Node | string)} children @returns {HTMLElementTagNameMap[T]}
 */
function node(tag, part, ...children) {
  const made = document.createElement(tag);
  if (part) made.setAttribute("part", part);
  made.className = part;
  made.append(...children);
  return made;
}

/** Shows a text, or hides the node for none. @param {HTMLElement} shown @param {string} text */
function write(shown, text) {
  if (shown.textContent !== text) shown.textContent = text;
  shown.hidden = text === "";
}

/** What both elements have. */
class OutlastElement extends HTMLElement {
  static observedAttributes = ["href", "limit", "page-href", "no-cancel", "no-actions"];
  root = this.attachShadow({ mode: "open" });
  quiet = false; // a row: its list speaks of what concerns them all
  state = ""; // what was reported last
  /** @type {JobRecord | JobList | null} */ subject = null;
  /** @type {Credentials | undefined} */ given = undefined;
  end = () => {};

  constructor() {
    super();
    this.root.adoptedStyleSheets = [sheet];
  }

  get href() {
    return this.getAttribute("href") ?? "";
  }

  set href(value) {
    this.setAttribute("href", value);
  }

  get headers() {
    return this.given;
  }

  set headers(value) {
    this.given = value;
    if (this.isConnected) this.subject?.mount.use(value);
  }

  refresh() {
    this.subject?.mount.go();
    this.subject?.wake();
  }

  connectedCallback() {
    for (const name of /** @type {const} */ (["headers", "href"]))
      if (Object.hasOwn(this, name)) {
        // It was set before this class was known, and hides the accessor.
        const value = /** @type {any} */ (this)[name];
        delete (/** @type {any} */ (this)[name]);
        /** @type {any} */ (this)[name] = value;
      }
    this.attach();
  }

  disconnectedCallback() {
    this.end();
    this.end = () => {};
  }

  /** @param {string} name @param {string | null} before @param {string | null} value */
  attributeChangedCallback(name, before, value) {
    if (!this.isConnected || before === value) return;
    if (name === "href" || name === "limit") this.attach();
    else this.update();
  }

  attach() {
    this.end();
    const subject = subjectOf(this.href, Math.min(Math.max(Number(this.getAttribute("limit")) || 20, 1), 200));
    if (subject !== this.subject) this.reset();
    this.subject = subject;
    if (this.given) subject?.mount.use(this.given);
    this.end = subject?.mount.watch(subject, () => this.update()) ?? (() => {});
    this.update();
  }

  /** @param {string} name @param {unknown} detail @param {boolean} [cancelable] whether the host let it pass */
  fire(name, detail, cancelable = false) {
    const options = { detail: structuredClone(detail), bubbles: true, composed: true, cancelable };
    return this.dispatchEvent(new CustomEvent(`outlast-${name}`, options));
  }

  /** The events of what concerns the whole element. @param {Seen | undefined} seen */
  report(seen) {
    const state = seen?.status !== "shown" && seen?.status !== "loading" ? (seen?.status ?? "") : seen.away ? "away" : "";
    const news = state !== this.state && !this.quiet;
    this.state = state;
    if (news && state === "signed-out") this.fire("signed-out", null);
    if (news && state === "gone") this.fire("error", { status: 404, code: "not_found", message: say("gone") });
    if (news && state === "away") this.fire("error", { status: 0, code: "unreachable", message: say("unreached") });
  }

  /** What stands where a job or a list would. @param {Seen | undefined} seen */
  instead(seen) {
    if (!seen) return say("gone");
    return seen.status === "shown" ? "" : say(seen.away && seen.status === "loading" ? "unreached" : seen.status);
  }

  /** @param {Seen | undefined} seen */
  awayText(seen) {
    return seen?.away && seen.knownAt && seen.status === "shown" && !this.quiet ? say("away", { time: clock(seen.knownAt) }) : "";
  }

  reset() {}
  update() {}
}

/** <outlast-job href> */
export class OutlastJob extends OutlastElement {
  #busy = false;
  #notice = "";
  /** @type {"cancel" | "dismiss" | null} */ #asking = null; // what is to be confirmed
  #question = ""; // the attention whose buttons stand there
  #spoken = ""; // the state that was announced
  /** @type {Set<string>} */ #told = new Set(); // events that come once
  #shown = ""; // the tag that is shown

  #instead = node("p", "empty quiet");
  #label = node("a", "label");
  #state = node("span", "state");
  #bar = node("progress", "bar");
  #progress = node("span", "progress-text quiet");
  #line = node("div", "progress line", this.#bar, this.#progress);
  #note = node("p", "note quiet");
  #message = node("p", "message");
  #more = node("p", "more quiet");
  #actions = node("div", "actions line");
  #attention = node("div", "attention box", this.#message, this.#actions, this.#more);
  #warning = node("p", "confirm-text");
  #yes = this.#button("confirm-yes", () => void this.#confirmed());
  #keep = this.#button("confirm-no", () => this.#ask(null));
  #confirm = node("div", "confirm box", this.#warning, node("div", "line", this.#keep, this.#yes));
  #noticed = node("p", "notice box");
  #open = node("a", "open");
  #cancel = this.#button("cancel", () => this.#ask("cancel"));
  #time = node("time", "time quiet");
  #links = node("div", "links line", this.#open, this.#cancel, this.#time);
  #away = node("p", "away quiet");
  #status = node("p", "spoken");
  #head = node("header", "head line", this.#label, this.#state);
  #parts = [this.#head, this.#line, this.#note, this.#attention, this.#noticed, this.#links, this.#confirm, this.#away];
  #article = node("article", "job", this.#instead);

  constructor() {
    super();
    this.#article.tabIndex = -1;
    this.#status.setAttribute("role", "status");
    this.#confirm.setAttribute("role", "group");
    this.#confirm.addEventListener("keydown", ({ key }) => key === "Escape" && this.#ask(null));
    this.#open.addEventListener("click", (event) => {
      if (!this.fire("open", { job: this.job, url: this.#open.href }, true)) event.preventDefault();
    });
    this.root.append(this.#article, this.#status);
  }

  get record() {
    return this.subject instanceof JobRecord ? this.subject : null;
  }

  get job() {
    return this.record ? structuredClone(this.record.job) : null;
  }

  /** Cancels what is shown. The tag says what that was, so that what changed meanwhile is not cancelled unseen. */
  async cancel() {
    return this.#send("cancel", { "If-Match": `"${this.record?.tag}"` });
  }

  /** @param {import("./component.d.ts").JobAction} action @param {unknown} [input] */
  async act(action, input) {
    const body = { attention_id: this.record?.job?.attention?.id, action, ...(input === undefined ? {} : { input }) };
    return this.#send("actions", { "Content-Type": "application/json" }, JSON.stringify(body));
  }

  /** @param {string} what @param {Record<string, string>} headers @param {string} [body] */
  async #send(what, headers, body) {
    const { record } = this;
    if (!record?.job || this.#busy) return false;
    this.#busy = true;
    this.#notice = "";
    this.update();
    const answer = await call(`${record.url}/${what}`, record.mount.credentials, { method: "POST", headers, body });
    this.#busy = false;
    if (answer?.status === 401) record.mount.signedOut();
    if (record.mount.out || record !== this.record) return false;
    const done = [200, 202].includes(answer?.status ?? 0) && Boolean(answer?.body?.id);
    const job = done ? answer?.body : answer?.body?.job;
    if (answer?.status === 404 || answer?.status === 410) record.vanish();
    else if (job?.id && record.apply(job)) record.known = now();
    if (!done) this.#explain(answer, record.job);
    if (!job) record.wake();
    record.tell();
    if (this.#notice) this.#status.textContent = this.#notice;
    return done;
  }

  /** @param {Answer | null} answer @param {Job | null} job */
  #explain(answer, job) {
    const code = answer?.status === 403 ? "forbidden" : String(answer?.body?.code ?? "");
    const known = ["stale_version", "already_completed", "attention_superseded", "forbidden"].includes(code);
    const refused = answer && answer.status >= 400 && answer.status < 500;
    if (known && job) this.#notice = say(code, { state: say(job.outcome ?? job.state), progress: progressOf(job) });
    else this.#notice = refused ? say("refused", { reason: answer.body?.title ?? answer.status }) : say("unsent");
    this.fire("error", { status: answer?.status ?? 0, code: code || "unreachable", message: this.#notice });
  }

  /** @param {string} part @param {() => void} act */
  #button(part, act) {
    const made = node("button", part);
    made.type = "button";
    made.addEventListener("click", () => this.#busy || act());
    return made;
  }

  /** @param {"cancel" | "dismiss" | null} what */
  #ask(what) {
    this.#asking = what;
    this.#notice = "";
    this.update();
    if (what) this.#keep.focus();
  }

  async #confirmed() {
    const what = this.#asking;
    this.#asking = null;
    await (what === "cancel" ? this.cancel() : this.act("dismiss"));
  }

  /** @param {string} action @param {string} label */
  #action(action, label) {
    const { page } = this;
    const answer = () => this.fire("answer", { job: this.job, attention: this.job?.attention }, true);
    if (action === "answer" && page) {
      const link = node("a", "action action-answer", say("answer") || label);
      link.href = page;
      link.addEventListener("click", (event) => answer() || event.preventDefault());
      return link;
    }
    const made = this.#button(`action action-${action}`, () => {
      if (action === "dismiss") this.#ask("dismiss");
      else if (action !== "answer") void this.act(/** @type {any} */ (action));
      else if (answer()) {
        this.#notice = say("answer_elsewhere");
        this.update();
      }
    });
    made.textContent = say(action) || label;
    return made;
  }

  /** The address of the job's page, if the host says one. */
  get page() {
    return this.getAttribute("page-href")?.replace("{id}", this.record?.id ?? "") ?? "";
  }

  reset() {
    this.#told.clear();
    this.#shown = this.#spoken = this.#notice = "";
    this.#asking = null;
  }

  update() {
    const seen = this.record?.seen();
    this.report(seen);
    const focused = /** @type {HTMLElement | null} */ (this.root.activeElement);
    this.#render(seen);
    if (focused && (!focused.isConnected || focused.closest("[hidden]"))) (this.#confirm.hidden ? this.#article : this.#keep).focus();
    const job = seen?.job;
    if (!job || !this.record || this.record.tag === this.#shown) return;
    this.#shown = this.record.tag;
    this.fire("change", job);
    this.#tell("usable", job.usable_at, job);
    this.#tell("attention", job.attention?.id, job);
    this.#tell("final", job.outcome, job);
  }

  /** An event that comes once for what it is about. @param {string} name @param {string | null | undefined} about @param {Job} job */
  #tell(name, about, job) {
    const key = name === "attention" ? `attention ${about}` : name;
    if (!about || this.#told.has(key)) return;
    this.#told.add(key);
    this.fire(name, job);
  }

  /** @param {Seen | undefined} seen */
  #render(seen) {
    const job = seen?.job;
    write(this.#instead, this.instead(seen));
    write(this.#away, this.awayText(seen));
    this.#article.setAttribute("aria-busy", String(this.#busy || seen?.status === "loading"));
    // Nothing of a job that is gone stays in the document, hidden or not.
    if ((this.#head.parentNode !== null) !== Boolean(job)) this.#article.replaceChildren(...(job ? this.#parts : [this.#instead]));
    this.#article.className = job?.state ?? "";
    this.#article.setAttribute("part", `job ${job?.state ?? ""}`);
    if (!job) {
      this.#status.textContent = this.#spoken = "";
      return;
    }
    const state = say(job.outcome ?? job.state);
    const over = job.outcome !== null;
    if (over || (this.#asking === "dismiss" && !job.attention)) this.#asking = null;
    write(this.#label, job.label);
    if (this.page) this.#label.href = this.page;
    else this.#label.removeAttribute("href");
    write(this.#state, state);
    this.#line.hidden = over;
    this.#bar.max = Math.max(job.progress.total, 1);
    this.#bar.value = job.progress.done;
    this.#bar.ariaLabel = progressOf(job);
    write(this.#progress, progressOf(job));
    const usable = job.usable_at && !over ? say(job.attention ? "usable" : "usable_goes_on") : "";
    write(this.#note, job.stopping ? say("stopping") : usable);
    this.#renderAttention(job);
    write(this.#noticed, this.#notice);
    this.#open.href = openable(job, this.record?.url ?? "");
    this.#open.hidden = !job.usable_at;
    write(this.#open, job.usable_at ? say("open") : "");
    write(this.#cancel, over || this.hasAttribute("no-cancel") || this.#asking ? "" : say("cancel"));
    this.#time.dateTime = job.finished_at ?? job.accepted_at;
    const time = say(job.finished_at ? "finished" : "accepted", { time: clock(job.finished_at ?? job.accepted_at) });
    write(this.#time, over && job.progress.done < job.progress.total ? `${time}, ${progressOf(job)}` : time);
    this.#confirm.hidden = !this.#asking;
    if (this.#asking) {
      write(this.#warning, [say(`${this.#asking}_question`), job.cancel_note].filter(Boolean).join(" "));
      write(this.#yes, say(`${this.#asking}_yes`));
      write(this.#keep, say("keep"));
      this.#confirm.ariaLabel = say(this.#asking);
    }
    // Only a change of the state is spoken of: progress would never let anybody finish a sentence.
    if (this.#spoken && this.#spoken !== state) this.#status.textContent = `${job.label}: ${state}`;
    this.#spoken = state;
  }

  /** @param {Job} job */
  #renderAttention({ attention, attention_count }) {
    const offered = attention && !this.hasAttribute("no-actions") ? attention.actions : [];
    this.#attention.hidden = !attention;
    write(this.#message, attention?.message ?? "");
    write(this.#more, attention_count > 1 ? say("more_questions") : "");
    this.#actions.hidden = this.#asking === "dismiss" || !offered.length;
    const question = JSON.stringify([attention?.id, offered, this.page]);
    if (question === this.#question) return;
    this.#question = question;
    this.#actions.replaceChildren(...offered.map(({ action, label }) => this.#action(action, label)));
  }
}

const PARTS = [
  "job, queued, running, retrying, needs_attention, completed, cancelled, head, label, state, progress, bar, progress-text, note",
  "attention, message, actions, action, action-retry, action-answer, action-skip, action-dismiss, more, notice",
  "confirm, confirm-text, confirm-yes, confirm-no, links, open, cancel, time",
].join(", ");

/** <outlast-jobs href> */
export class OutlastJobs extends OutlastElement {
  /** @type {Map<string, HTMLLIElement>} */ #rows = new Map();
  #sections = SECTIONS.map((name) => {
    const heading = node("h3", "heading");
    const rows = node("ul", "rows");
    rows.setAttribute("role", "list");
    return { name, heading, rows, whole: node("section", "section", heading, rows) };
  });

  #instead = node("p", "empty quiet");
  #empty = node("p", "empty quiet");
  #slot = node("slot", "");
  #more = node("p", "older quiet");
  #away = node("p", "away quiet");

  constructor() {
    super();
    this.#slot.name = "empty";
    this.#slot.append(this.#empty);
    this.root.append(this.#away, this.#instead, this.#slot, ...this.#sections.map(({ whole }) => whole), this.#more);
    this.root.addEventListener("outlast-change", () => this.update());
  }

  get list() {
    return this.subject instanceof JobList ? this.subject : null;
  }

  get jobs() {
    return structuredClone(this.list?.seen().jobs ?? []);
  }

  update() {
    const seen = this.list?.seen();
    this.report(seen);
    const jobs = seen?.jobs ?? [];
    const instead = this.instead(seen);
    write(this.#instead, instead);
    write(this.#empty, instead || jobs.length ? "" : say("empty"));
    this.#slot.hidden = this.#empty.hidden; // what a host puts there too
    write(this.#away, this.awayText(seen));
    write(this.#more, jobs.length && this.list?.more ? say("older") : "");
    for (const { name, heading, rows, whole } of this.#sections) {
      const mine = jobs.filter((job) => sectionOf(job) === name);
      whole.hidden = !mine.length;
      write(heading, mine.length ? say(name) : "");
      mine.forEach((job, place) => this.#put(rows, place, this.#row(job)));
    }
    const ids = new Set(jobs.map((job) => job.id));
    for (const [id, row] of this.#rows) if (!ids.has(id)) row.remove(), this.#rows.delete(id);
  }

  /** @param {Job} job */
  #row(job) {
    const made = this.#rows.get(job.id) ?? node("li", "row", document.createElement("outlast-job"));
    const shown = /** @type {OutlastJob} */ (made.firstElementChild);
    for (const name of ["no-cancel", "no-actions", "page-href"]) {
      const value = this.getAttribute(name);
      if (value === null) shown.removeAttribute(name);
      else shown.setAttribute(name, value);
    }
    if (!this.#rows.has(job.id)) {
      shown.quiet = true;
      shown.setAttribute("exportparts", PARTS);
      shown.href = `${this.list?.mount.base}/v1/jobs/${job.id}`;
      this.#rows.set(job.id, made);
    }
    return made;
  }

  /**
   * Moves a row only if it stands elsewhere, and leaves the focus where it was.
   * @param {HTMLElement} rows @param {number} place @param {HTMLElement} row
   */
  #put(rows, place, row) {
    const there = rows.children[place] ?? null;
    if (there === row) return;
    const focused = /** @type {HTMLElement | null} */ (row.firstElementChild?.shadowRoot?.activeElement);
    rows.insertBefore(row, there);
    focused?.focus();
  }
}

if (!customElements.get("outlast-job")) customElements.define("outlast-job", OutlastJob);
if (!customElements.get("outlast-jobs")) customElements.define("outlast-jobs", OutlastJobs);

// -- asking for a job ----------------------------------------------------------------------------------------------

const STORED = "outlast submit ";
const AGAIN = [408, 425, 429, 502, 503, 504];

/** See component.d.ts. */
export class SubmitRefused extends Error {
  /** @param {number} status @param {any} problem @param {boolean} kept */
  constructor(status, problem, kept) {
    super(problem?.detail ?? problem?.title ?? `The request was answered with ${status}.`);
    this.name = "SubmitRefused";
    this.status = status;
    this.code = String(problem?.code ?? "");
    this.problem = problem;
    this.kept = kept;
  }
}

/** The browser's storage; null where it is blocked. */
function ownStorage() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

/** Runs on a storage that may be blocked or full; whether it worked. @param {() => void} act */
function attempt(act) {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

/** A key that nobody else has; also where randomUUID is missing, which browsers offer to secure pages only. */
function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16).padStart(8, "0")).join("");
}

/**
 * What waits for an answer. Each request is an item of its own, so that two tabs never overwrite each other's.
 * @param {Storage | null} storage @param {string} url @param {string} owner
 */
function waiting(storage, url, owner) {
  /** @type {Wanted[]} */ const found = [];
  attempt(() => {
    for (const name of Object.keys(storage ?? {}))
      if (name.startsWith(STORED)) attempt(() => found.push(JSON.parse(storage?.getItem(name) ?? "")));
  });
  return found.filter((request) => request.url === url && request.owner === owner).sort((a, b) => a.at - b.at);
}

/**
 * Posts a request until it is answered.
 * @param {Wanted} request @param {Storage | null} storage @param {boolean} stored
 * @param {Credentials | undefined} credentials @param {AbortSignal | undefined} signal
 */
async function post(request, storage, stored, credentials, signal) {
  const { url, key, name, body } = request;
  const forget = () => attempt(() => storage?.removeItem(STORED + key));
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  const pause = new Pause();
  const hurry = () => pause.end();
  addEventListener("online", hurry);
  signal?.addEventListener("abort", hurry);
  try {
    for (let failures = 1; ; failures += 1) {
      signal?.throwIfAborted();
      // The first time it may outlive the page; that has a limit of 64 KiB for the whole page.
      const keepalive = failures === 1 && body.length < 16_384;
      const answer = await call(url, credentials, { method: "POST", headers, body, signal, keepalive });
      const { status, body: said } = answer ?? { status: 0, body: null };
      if ((status === 200 || status === 202) && said?.id) {
        forget();
        const replayed = answer?.headers.get("Idempotency-Replayed") === "true";
        const expired = said.expired === true;
        return { job: /** @type {Job} */ (said), href: new URL(`${url}/${said.id}`).pathname, key, name, stored, replayed, expired };
      }
      signal?.throwIfAborted();
      // Room under a quota comes when its owner's own work ends: that is for them to know, and not to wait for out of sight.
      const again = AGAIN.includes(status) && said?.code !== "quota_exceeded";
      if (status > 202 && !again && said?.code !== "still_admitting") {
        const kept = stored && (status === 401 || status >= 500);
        if (!kept) forget();
        throw new SubmitRefused(status, said, kept);
      }
      await pause.wait(Math.max(retryAfter(answer?.headers), around(backoff(failures, 1, STEADY / 2))));
    }
  } finally {
    removeEventListener("online", hurry);
    signal?.removeEventListener("abort", hurry);
  }
}

/** @type {import("./component.d.ts").submit} */
export async function submit(href, wanted, { key, headers, storage = ownStorage(), name = "", owner = "", signal } = {}) {
  const url = new URL(href, document.baseURI).href;
  const body = JSON.stringify(wanted);
  const before = name && !key ? waiting(storage, url, owner).find((request) => request.name === name && request.body === body) : undefined;
  const request = before ?? { url, key: key ?? newKey(), name, owner, body, at: now() };
  const stored = storage !== null && attempt(() => storage.setItem(STORED + request.key, JSON.stringify(request)));
  return post(request, storage, stored, headers, signal);
}

/** @type {import("./component.d.ts").resume} */
export async function resume(href, { headers, storage = ownStorage(), owner = "", signal } = {}) {
  const url = new URL(href, document.baseURI).href;
  return Promise.all(
    waiting(storage, url, owner).map(async (request) => {
      const { key, name } = request;
      try {
        // A key is remembered for a time only: what is too old is said, not done, for it might be done twice.
        if (request.at < now() - WEEK) {
          attempt(() => storage?.removeItem(STORED + key));
          throw new SubmitRefused(0, { code: "expired", title: "The request is too old to be repeated." }, false);
        }
        return { key, name, submitted: await post(request, storage, true, headers, signal), error: null };
      } catch (error) {
        return { key, name, submitted: null, error };
      }
    }),
  );
}
