/** Types of component.js: the elements <outlast-job> and <outlast-jobs>, watch(), submit() and resume(). */

export type JobState = "queued" | "running" | "retrying" | "needs_attention" | "completed" | "cancelled";
export type JobOutcome = "succeeded" | "succeeded_with_problems" | "user" | "abandoned" | "superseded";
export type JobAction = "retry" | "answer" | "skip" | "dismiss";

/** What the owner must decide. The id is for one use. */
export interface Attention {
  id: string;
  code: string;
  message: string;
  task: string;
  /** When it is decided without the owner, as RFC 3339. */
  until: string;
  actions: { action: JobAction; label: string; input?: unknown }[];
}

/** A job as the API shows it. Times are RFC 3339 in UTC. */
export interface Job {
  id: string;
  kind: string;
  label: string;
  state: JobState;
  outcome: JobOutcome | null;
  version: number;
  /** Cancelled, and a worker still winds down. */
  stopping: boolean;
  target: { ref: string; version: string } | null;
  /** When the first result could be opened. */
  usable_at: string | null;
  usable_ref: string | null;
  progress: { done: number; total: number; label: string | null };
  /** The oldest open question. */
  attention: Attention | null;
  attention_count: number;
  attach: "none" | "attached" | "parked";
  taken_over_at: string | null;
  /** What a cancel cannot undo. */
  cancel_note: string;
  tasks_url: string;
  events_url: string;
  result_url: string;
  recovery_url: string;
  accepted_at: string;
  finished_at: string | null;
  rerun_of: string | null;
  correlation_id: string;
}

/** Header fields for a host that authenticates by header: as they are, or a function that is called before each request. */
export type Headers = Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);

/** Every word that people read. Overwrite any before the first element is shown: `Object.assign(words, { cancel: "Abbrechen" })`. */
export const words: Record<string, string>;

/** What is known of a job, or of a list, at this moment. */
export interface Seen {
  status: "loading" | "shown" | "gone" | "signed-out";
  /** Of the address of one job. */
  job: Job | null;
  /** Of the address of a list: what needs attention, then what goes on, then what has ended, newest first in each. */
  jobs: Job[] | null;
  /** When the server last said so. */
  knownAt: Date | null;
  /** The browser is offline or the server does not answer: this is how things stood at `knownAt`. */
  away: boolean;
}

/**
 * Follows a job (`…/v1/jobs/ID`) or a list (`…/v1/jobs`) without an element: the callback is called with what is known now, and at each
 * change. Shares the one event stream of the browser with all elements. Returns the function that ends it.
 */
export function watch(href: string, callback: (seen: Seen) => void, options?: { headers?: Headers; limit?: number }): () => void;

export interface SubmitOptions {
  /** The idempotency key; made if not given. */
  key?: string;
  headers?: Headers;
  /** Where the request waits for its answer; null: nowhere. */
  storage?: Storage | null;
  /** What the request is for, in the host's words. While one of the same name and body is unanswered it is repeated, not doubled. */
  name?: string;
  /** Who is signed in, by any stable text: `resume` repeats only what the same person asked for. */
  owner?: string;
  /** Ends the repeating. What is stored stays stored. */
  signal?: AbortSignal;
}

/** A request that was answered with a job. */
export interface Submitted {
  job: Job;
  /** The job's address, for `<outlast-job href>`. */
  href: string;
  key: string;
  name: string;
  /** Whether the request had been stored before it was sent: false where the browser's storage is blocked or full. */
  stored: boolean;
  /** Whether the key had come before. */
  replayed: boolean;
  /** Whether that job is no longer kept: of `job` there are then only `id`, `state`, `outcome` and `finished_at`. */
  expired: boolean;
}

/** The request was answered, and not with a job. */
export class SubmitRefused extends Error {
  readonly status: number;
  /** The code of the problem document, such as `invalid`; empty where there was none. */
  readonly code: string;
  /** The problem document. */
  readonly problem: unknown;
  /** Whether the request is still stored, to be repeated by `resume` (after a sign-in, for example). */
  readonly kept: boolean;
}

/**
 * Asks for a job: stores the request with its idempotency key, posts it, and repeats it with the same key until a job is known or the
 * request is refused. Rejects with SubmitRefused, or with the reason of `signal`.
 */
export function submit(
  href: string,
  body: { kind: string; input: unknown; schema_version?: number; not_before?: string },
  options?: SubmitOptions,
): Promise<Submitted>;

export interface Resumed {
  key: string;
  name: string;
  /** The answer; null where the request was refused or is still waiting. */
  submitted: Submitted | null;
  error: unknown;
}

/** Repeats what `submit` stored for this address and was never answered, by the page that was closed or by another. */
export function resume(href: string, options?: Omit<SubmitOptions, "key" | "name">): Promise<Resumed[]>;

/**
 * Tells all tabs that the person signed out: what is shown is removed, and following ends. An answer 401 does the same by itself; a host
 * that signs people out without leaving the page calls this at once.
 */
export function signedOut(): void;

/** Events of both elements; they bubble and cross shadow roots. `detail` is a copy. */
export interface OutlastEventMap {
  /** Each state that is shown. */
  "outlast-change": CustomEvent<Job>;
  /** Once: the first result can be opened. */
  "outlast-usable": CustomEvent<Job>;
  /** Once for each question. */
  "outlast-attention": CustomEvent<Job>;
  /** Once: the job completed or was cancelled. */
  "outlast-final": CustomEvent<Job>;
  /** Cancelable: the owner chose to answer. The default is to go to the job's page. */
  "outlast-answer": CustomEvent<{ job: Job; attention: Attention }>;
  /** Cancelable: the owner chose to open the result. The default is to follow the link. */
  "outlast-open": CustomEvent<{ job: Job; url: string }>;
  /** What was asked for was not done; or the job is gone (`not_found`), or the server does not answer (`unreachable`). */
  "outlast-error": CustomEvent<{ status: number; code: string; message: string }>;
  /** Nobody is signed in any more; what was shown is removed. */
  "outlast-signed-out": CustomEvent<null>;
}

declare class OutlastElement extends HTMLElement {
  /** The address of the API's job or list. */
  href: string;
  /** Header fields of a host that authenticates by header. Set it before the element is connected. */
  headers: Headers | undefined;
  /** Asks the server now. */
  refresh(): void;
}

/** `<outlast-job href="/jobs/v1/jobs/ID" page-href="/jobs/ID" no-cancel no-actions>` */
export class OutlastJob extends OutlastElement {
  /** The job as it is shown. */
  readonly job: Job | null;
  /** Cancels what is shown; whether it was done. What was not done is explained in the element. */
  cancel(): Promise<boolean>;
  /** Decides the question that is shown; whether it was done. */
  act(action: JobAction, input?: unknown): Promise<boolean>;
}

/** `<outlast-jobs href="/jobs/v1/jobs" limit="20" page-href="/jobs/{id}" no-cancel no-actions>` */
export class OutlastJobs extends OutlastElement {
  /** The jobs as they are shown, in that order. */
  readonly jobs: Job[];
}

declare global {
  interface HTMLElementTagNameMap {
    "outlast-job": OutlastJob;
    "outlast-jobs": OutlastJobs;
  }
  interface GlobalEventHandlersEventMap extends OutlastEventMap {}
}
