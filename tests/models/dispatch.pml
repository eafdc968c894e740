/* Outbox, relay and sweep: whatever is runnable is worked on in the end, though nobody looks for it but who was told of it.
 *
 * Two tasks, two relays, a broker that loses, doubles and forgets, one worker that only follows hints, one sweep. There are FAULTS faults in
 * all, drawn at any moment; then liveness has to follow, with weak fairness: never more is asked than that who can go on goes on some time.
 * That workers also look for themselves is left out: it would hide what this is about.
 *
 * A tag [Tn: block] says which row of the task's table a transition is, and which block of SQL does it.
 */

#ifndef FAULTS
#define FAULTS 2
#endif
#define TASKS 2
#define MESSAGES 2    /* of one task, waiting at the broker; more of the same are no other state */

bool ready[TASKS];    /* the entry stands with ready_at */
bool held[TASKS];
bool lost[TASKS];     /* held by a worker that went away */
bool done[TASKS];
bool row[TASKS];      /* its row of the outbox */
byte taken[TASKS];    /* taken_until: 0, or the relay that has it */
bool left[TASKS];     /* by a relay that was killed */
bool confirmed[TASKS];    /* the broker has said that it has what this row tells */
byte messages[TASKS];
bool told[TASKS];     /* hinted_at: the sweep has told of it once */
byte faults = 0;

#ifdef SWEEP_ONCE
#define AGAIN(n) (!told[n])
#else
#define AGAIN(n) true
#endif

#define FAULT (faults < FAULTS)

inline dispatch(n) { row[n] = true; taken[n] = 0; left[n] = false; confirmed[n] = false }

active proctype Admission() {
  /* [T1: admit] [T1: open_entries] entry and outbox row in one transaction */
  atomic { ready[0] = true; dispatch(0) };
  atomic { ready[1] = true; dispatch(1) }
}

proctype Relay(byte me) {
  byte n;
end:
  do
  :: atomic {    /* take_outbox: by a lease that ends, not by an open transaction */
       if
       :: row[0] && taken[0] == 0 -> n = 0
       :: row[1] && taken[1] == 0 -> n = 1
       fi;
       taken[n] = me };
#ifdef DELETE_BEFORE_CONFIRM
     atomic { if :: row[n] && taken[n] == me -> assert(confirmed[n]); row[n] = false; taken[n] = 0; left[n] = false :: else -> skip fi };
#endif
     if
     :: atomic {    /* published, and confirmed */
          if :: messages[n] < MESSAGES -> messages[n]++ :: else -> skip fi;
          if :: row[n] && taken[n] == me -> confirmed[n] = true :: else -> skip fi }
     :: atomic { FAULT -> faults++; messages[n] = MESSAGES;    /* twice, for the first answer was lost */
          if :: row[n] && taken[n] == me -> confirmed[n] = true :: else -> skip fi }
     :: atomic { FAULT -> faults++;    /* killed before it published anything */
          if :: row[n] && taken[n] == me -> left[n] = true :: else -> skip fi;
          goto end }
     fi;
     if
     :: atomic {    /* delete_published: as far as this relay still has it */
          if
          :: row[n] && taken[n] == me -> assert(confirmed[n]); row[n] = false; taken[n] = 0; left[n] = false    /* B4 */
          :: else -> skip
          fi }
     :: atomic { FAULT -> faults++;    /* it is killed in between, and starts anew */
          if :: row[n] && taken[n] == me -> left[n] = true :: else -> skip fi }
     fi
  od
}

/* The lease of a row ends that a relay left; and, which is a fault, of one that a slow relay still publishes. */
active proctype Leases() {
end:
  do
#ifndef TAKEN_FOR_EVER
  :: atomic { row[0] && left[0] -> taken[0] = 0; left[0] = false }
  :: atomic { row[1] && left[1] -> taken[1] = 0; left[1] = false }
#endif
  :: atomic { FAULT && row[0] && taken[0] != 0 && !left[0] -> faults++; taken[0] = 0 }
  :: atomic { FAULT && row[1] && taken[1] != 0 && !left[1] -> faults++; taken[1] = 0 }
  od
}

active proctype Broker() {
end:
  do
  :: atomic { FAULT && messages[0] > 0 -> faults++; messages[0]-- }
  :: atomic { FAULT && messages[1] > 0 -> faults++; messages[1]-- }
  :: atomic { FAULT && messages[0] + messages[1] > 0 -> faults++; messages[0] = 0; messages[1] = 0 }    /* its disk is wiped */
  :: atomic { !FAULT -> break }
  od
}

active proctype Worker() {
  byte n;
  bool mine;    /* the claim committed */
  bool read;    /* the store has been asked: there is a claim, or nothing to do */
end:
  do
  :: atomic {    /* a hint is delivered */
       if
       :: messages[0] > 0 -> n = 0
       :: messages[1] > 0 -> n = 1
       fi;
       mine = false; read = false
#ifdef ACKNOWLEDGE_FIRST
       ; assert(read); messages[n]--
#endif
     };
     if
     :: atomic {    /* [T5: claim] the task that it names, or nothing: no authority comes from a message */
#ifdef BELIEVES_HINTS
          assert(ready[n] && !held[n] && !done[n]); held[n] = true; mine = true;
#else
          if :: ready[n] && !held[n] && !done[n] -> held[n] = true; mine = true :: else -> skip fi;
#endif
          read = true
        };
        atomic {    /* acknowledged after the claim has committed, or was for nothing: B7 */
          assert(read);
#ifndef ACKNOWLEDGE_FIRST
          if :: messages[n] > 0 -> messages[n]-- :: else -> skip fi
#endif
        };
        if
        :: atomic { mine -> assert(held[n] && !done[n]); held[n] = false; ready[n] = false; done[n] = true }    /* [T7: finish] */
        :: atomic { mine && FAULT -> faults++; lost[n] = true }    /* killed while it works */
        :: atomic { !mine -> skip }
        fi
     :: atomic { FAULT -> faults++ }    /* killed before the claim: what was not acknowledged is delivered again */
     fi
  od
}

active proctype Sweep() {
  byte n;
end:
  do
     /* [T14: release_lost] [T4: wake] the lease of a worker that went away ends; the row of the outbox is written with the wake */
  :: atomic { held[0] && lost[0] -> held[0] = false; lost[0] = false; dispatch(0) }
  :: atomic { held[1] && lost[1] -> held[1] = false; lost[1] = false; dispatch(1) }
#ifndef NO_SWEEP
     /* dispatch_again: runnable for long, claimed by nobody, and no row stands for it */
  :: atomic { ready[0] && !held[0] && !row[0] && AGAIN(0) -> told[0] = true; dispatch(0) }
  :: atomic { ready[1] && !held[1] && !row[1] && AGAIN(1) -> told[1] = true; dispatch(1) }
#endif
  od
}

init { atomic { run Relay(1); run Relay(2) } }

/* Nothing dispatched is lost: B1, B2. */
ltl settles { <> (done[0] && done[1]) }
