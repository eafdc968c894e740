/* Lease, fence and cancel of one required task: workers, an owner, a sweep, and a clock by which a lease ends at any moment.
 *
 * A tag [Tn: block] says which row of the task's table a transition is, and which block of SQL does it. A statement is one atomic step;
 * what it locks stays locked to its commit where other statements of the same transaction follow. Workers pause, go away and lose
 * connections wherever they stand between two steps.
 */

#define MAX_ATTEMPTS 2
#ifndef MAX_FENCE
#define MAX_FENCE 4
#endif

mtype = { OPEN, ASKING, COMPLETED, CANCELLED };

mtype task = OPEN;      /* task.state */
byte task_fence = 0;    /* task.fence, where no entry stands */
bool entry = true;      /* a row of queue_entry stands */
bool ready = true;      /* ready_at is not null */
byte holder = 0;        /* 0: nobody */
byte fence = 0;
byte spent = 0;
bool leased = false;    /* lease_until > now */
bool revoked = false;

bool job_locked = false;    /* by a transaction of several statements */
bool entry_locked = false;
bool cancel_committed = false;

byte completions = 0;
byte last_fence = 0;    /* of the claims so far: C1 */
byte retries = 0;       /* owner's */

/* The guard of every write of a holder; the errors that can be seeded take one word of it away. */
#ifdef NO_FENCE_CHECK
#define FENCE_OK true
#else
#define FENCE_OK (fence == mine)
#endif
#ifdef NO_LEASE_CHECK
#define LEASE_OK true
#else
#define LEASE_OK leased
#endif
#ifdef NO_REVOKED_CHECK
#define REVOKED_OK true
#else
#define REVOKED_OK (!revoked)
#endif
/* The holder is the worker's id here, and two of its slots may run one task: what tells them apart is the fence. In SQL the holder is the
 * claim statement's, which is a second belt. */
#define HOLDS (entry && holder == me && FENCE_OK && LEASE_OK && REVOKED_OK)
#define FREE_ENTRY (!entry_locked)
#define FREE_JOB (!job_locked)

inline let_go() { holder = 0; leased = false }
inline drop_entry() { task_fence = fence; entry = false; let_go(); ready = false; revoked = false }

/* What a holder may not do once it has lost its claim, whatever the guard says: C2, D2, E1. */
inline judged() {
  assert(fence == mine);
  assert(leased);
  assert(!cancel_committed)
}

proctype Worker(byte me) {
  byte mine = 0;    /* the fence of my claim; 0: none */
  bool told = false;    /* my finish was accepted, and I do not know it */
end:
  do
  :: atomic {    /* [T5: claim] rows that another has locked are passed by */
       (mine == 0 && fence < MAX_FENCE && entry && ready && holder == 0 && FREE_ENTRY) ->
       assert(task == OPEN && !cancel_committed);    /* C4, D5, E1 */
#ifndef NO_FENCE_INCREMENT
       fence++;
#endif
       assert(fence == last_fence + 1);    /* C1 */
       last_fence = fence;
       holder = me; leased = true; mine = fence
     }
  :: mine != 0 ->
     if
     :: atomic { FREE_ENTRY ->    /* [T6: renew_one] */
          if
          :: HOLDS -> judged(); leased = true
          :: else -> mine = 0
          fi }
     :: atomic { FREE_JOB && FREE_ENTRY ->    /* [T7: finish] */
          if
          :: HOLDS ->
             judged();
             task = COMPLETED; completions++; drop_entry();
             if
             :: mine = 0
             :: told = true    /* the connection went: the commit's outcome is unknown to me */
             fi
          :: else ->
             if
             :: told -> assert(!entry && task == COMPLETED && task_fence == mine); told = false    /* the verdict `accepted` */
             :: else -> skip
             fi;
             mine = 0
          fi }
     :: atomic { FREE_ENTRY && !told && spent + 1 < MAX_ATTEMPTS ->    /* [T8: release_entry] */
          if
          :: HOLDS -> judged(); spent++; ready = false; let_go()
          :: else -> skip
          fi;
          mine = 0 }
     :: atomic { FREE_JOB && FREE_ENTRY && !told ->    /* [T9: end_entry] permanent, or no budget; [T11: end_entry] it asks */
          if
          :: HOLDS -> judged(); task = ASKING; drop_entry()
          :: else -> skip
          fi;
          mine = 0 }
     :: atomic { FREE_ENTRY && !told ->    /* [T12: release_entry] snooze */
          if
          :: HOLDS -> judged(); ready = false; let_go()
          :: else -> skip
          fi;
          mine = 0 }
     :: atomic { FREE_ENTRY && !told ->    /* [T13: hand_back] */
          if
          :: HOLDS -> judged(); ready = true; let_go()
          :: else -> skip
          fi;
          mine = 0 }
     :: atomic { FREE_JOB && FREE_ENTRY && revoked && !told ->    /* [T16: stop_entry] */
          if
          :: entry && holder == me && fence == mine && revoked -> drop_entry()
          :: else -> skip
          fi;
          mine = 0 }
     :: mine = 0; told = false    /* it is killed; its entry stays held until its lease ends */
     fi
  od
}

/* The clock: a lease ends at any moment. */
active proctype Clock() {
end:
  do
  :: atomic { leased -> leased = false }
  od
}

active proctype Sweep() {
  byte seen;
end:
  do
  :: atomic { (entry && !ready && holder == 0 && FREE_ENTRY) -> ready = true }    /* [T4: wake] */
  :: (entry && holder != 0 && !leased && !revoked) ->
     seen = fence;    /* [T14: ended_leases] read, and decided upon */
     if
     :: spent + 1 < MAX_ATTEMPTS ->
        atomic { FREE_ENTRY ->    /* [T14: release_lost] */
          if
#ifdef SWEEP_BELIEVES
          :: entry && holder != 0 -> assert(!leased); spent++; ready = false; let_go()
#else
          :: entry && holder != 0 && fence == seen && !leased && !revoked -> spent++; ready = false; let_go()
#endif
          :: else -> skip
          fi }
     :: else ->
        atomic { (FREE_JOB && FREE_ENTRY) ->    /* [T14: end_lost_entry] */
          if
          :: entry && holder != 0 && fence == seen && !leased && !revoked -> task = ASKING; drop_entry()
          :: else -> skip
          fi }
     fi
  :: atomic { (FREE_JOB && FREE_ENTRY && entry && revoked && !leased && holder != 0) -> drop_entry() }    /* [T16: stop_lost_entry] */
  od
}

active proctype Owner() {
end:
  do
  :: atomic { task == ASKING && FREE_JOB && retries < 1 ->    /* [T17: reopen_task] [T17: open_entries] */
       retries++; task = OPEN; spent = 0; entry = true; ready = true; fence = task_fence }
  :: atomic { !cancel_committed && FREE_JOB -> job_locked = true };    /* [T15: lock_job] */
     if
     :: atomic { (task == COMPLETED || task == CANCELLED) -> job_locked = false; break }    /* J9: refused */
     :: else ->
#ifdef DELETE_FIRST
        atomic { FREE_ENTRY -> if :: entry && holder == 0 -> drop_entry() :: else -> skip fi };
        atomic { FREE_ENTRY -> if :: entry -> revoked = true; entry_locked = true :: else -> skip fi };
#else
#ifdef REVOKE_ONLY_HELD
        atomic { FREE_ENTRY -> if :: entry && holder != 0 -> revoked = true; entry_locked = true :: else -> skip fi };
#else
        atomic { FREE_ENTRY -> if :: entry -> revoked = true; entry_locked = true :: else -> skip fi };    /* [T15: revoke_entries] */
#endif
        atomic { if :: entry && holder == 0 -> drop_entry(); entry_locked = false :: else -> skip fi };    /* [T15: delete_unheld] */
#endif
        atomic {    /* [T15: cancel_tasks] [T15: cancel_job] and the commit */
          task = CANCELLED; cancel_committed = true; job_locked = false; entry_locked = false };
        break
     fi
  od
}

#define SETTLED (task == COMPLETED || task == CANCELLED)

active proctype Always() {
end:
  if
  :: atomic { completions > 1 -> assert(false) }    /* D1 */
  :: atomic { (completions == 1 && task == CANCELLED) -> assert(false) }    /* E2 */
     /* Nobody is left to take it away: it would stand for ever, or be claimed. */
  :: atomic { (SETTLED && !job_locked && entry && holder == 0) -> assert(false) }
     /* Nothing can move any more: it came to an end, or somebody is asked, or the claims of this model are used up. */
  :: timeout -> assert(!(entry && revoked)); assert(SETTLED || task == ASKING || fence == MAX_FENCE)
  fi
}

init {
  atomic {
    run Worker(1);    /* two slots of one worker */
    run Worker(1);
    run Worker(2)
  }
}
