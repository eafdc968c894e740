/* The effect ledger: an intent before the call, the outcome after it, and what a replacement does with an intent that has no outcome.
 *
 * One effect of one task: claims one after the other, each with a worker that may go away at any step and may come back late with what it
 * knows; a provider at which a call happens at any moment between its begin and its own time-out, or not at all; an owner. WAY says what the
 * handler gave: 0 reconcile, 1 idempotent, 2 neither, so that the owner is asked.
 *
 * A tag [effect: ...] names the block of SQL that does a transition of the ledger, [Tn: block] one of the task.
 */

#ifndef WAY
#define WAY 0
#endif
#define RECONCILE (WAY == 0)
#define IDEMPOTENT (WAY == 1)
#define ASKS (WAY == 2)
#define CLAIMS 3    /* workers, each with one claim; the fence is its number */

mtype = { NONE_YET, INTENDED, UNKNOWN, CONFIRMED, REFUSED };

mtype effect = NONE_YET;
byte intent = 0;          /* the fence whose intent stands */
byte fence = 0;           /* of the last claim */
bool leased = false;
bool completed = false;
bool asking = false;
byte repeats = 0;         /* that the owner chose */

/* The call of a claim: 0 none or over; 1 it may start, for its time-out counts from the intent; 2 it is under way; 3 it took place. */
byte calling[CLAIMS + 1];
byte happened = 0;        /* calls that took place */
byte effects_made = 0;    /* what is to be seen at the provider: with an idempotent one, once for a key */

#define HOLDS (fence == me && leased && !completed && !asking)
#define UNDER_WAY (calling[1] || calling[2] || calling[3])
#define SURELY_NOT (!IDEMPOTENT || effects_made == 0)    /* a provider that knows the key says what came of the first call */

/* What is known of the effect when this call was not begun, or did not happen: nothing, if an earlier one may have. */
#ifdef FORGETS_DOUBT
#define NOT_BEGUN REFUSED
#else
#define NOT_BEGUN (doubt -> UNKNOWN : REFUSED)
#endif

inline take_place(n) {
  happened++;
  effects_made = (IDEMPOTENT -> 1 : effects_made + 1)
}

/* [effect: settle_effect] no word about lease or task. That it happened is taken from anybody; that it did not only about the standing intent. */
inline settle(n, to) {
  atomic { if
#ifdef LAST_REPORT_WINS
  :: (to == CONFIRMED || intent == n) -> effect = to
#else
#ifdef ABOUT_WHATEVER_STANDS
  :: (effect == INTENDED || effect == UNKNOWN) -> effect = to
#else
  :: (effect == INTENDED || effect == UNKNOWN) && (to == CONFIRMED || intent == n) -> effect = to
#endif
#endif
  :: else -> skip
  fi }
}

/* The provider: a call takes place, once, while it is under way. */
active proctype Provider() {
end:
  do
  :: atomic { calling[1] == 2 -> take_place(1); calling[1] = 3 }
  :: atomic { calling[2] == 2 -> take_place(2); calling[2] = 3 }
  :: atomic { calling[3] == 2 -> take_place(3); calling[3] = 3 }
  od
}

/* A call's time-out ends it, whoever waits for it. */
active proctype Timer() {
end:
  do
  :: atomic { calling[1] != 0 -> calling[1] = 0 }
  :: atomic { calling[2] != 0 -> calling[2] = 0 }
  :: atomic { calling[3] != 0 -> calling[3] = 0 }
  od
}

inline intend() { effect = INTENDED; intent = me; calling[me] = 1 }

proctype Worker(byte me) {
  bool took_place = false;
  byte standing = 0;    /* whose intent was met */
  bool doubt = false;   /* an earlier call with this key may have happened */
end:
  atomic { (fence == me - 1 && !leased && !completed && !asking) -> fence = me; leased = true };    /* [T5: claim] */

begin:
#ifdef CALL_BEFORE_INTENT
  calling[me] = 1;
  goto call;
#endif
  atomic {    /* [effect: effect_place] the guard, and the row: [effect: insert_effect] [effect: effect_of] */
    if
    :: !HOLDS -> goto over
    :: HOLDS && effect == NONE_YET -> intend(); goto call
    :: HOLDS && effect == REFUSED -> intend(); goto call    /* [effect: intend_effect] a clean repeat */
    :: HOLDS && effect == CONFIRMED -> goto finish    /* the stored outcome, and no call */
#ifdef NO_WAIT
    :: HOLDS && (effect == INTENDED || effect == UNKNOWN) && intent != me ->
#else
    :: HOLDS && (effect == INTENDED || effect == UNKNOWN) && intent != me && !UNDER_WAY ->    /* after the call's own time-out */
#endif
       effect = UNKNOWN; standing = intent;    /* [effect: doubt_effect] */
#ifdef REPEATS_UNKNOWN
       intend(); goto call
#else
       if
       :: IDEMPOTENT -> doubt = true; intend(); goto call    /* [effect: intend_effect] again, with the same key */
       :: RECONCILE -> skip
       :: ASKS -> asking = true; leased = false; goto over    /* [T11: raise_attention] effect_unknown */
       fi
#endif
    fi };

  /* Reconciled: what the provider says is true of the moment at which it is asked. */
  atomic { took_place = (effects_made > 0) };
  if
  :: atomic { took_place -> settle(standing, CONFIRMED) }
  :: atomic { !took_place -> settle(standing, REFUSED) }
  :: goto over    /* it goes away in between */
  fi;
  goto begin;

call:
  if
  :: atomic { calling[me] == 1 ->
       /* no call starts without an intent of this claim's that is committed: G2 */
       assert(intent == me && effect != NONE_YET);
       calling[me] = 2 }
#ifdef LATE_CALL
  :: atomic { calling[me] == 0 -> calling[me] = 2 }
#else
  :: calling[me] == 0 ->    /* it is too late for it: it was not even begun */
     settle(me, NOT_BEGUN);
     goto over
#endif
  :: goto over    /* it goes away */
  fi;
  if
  :: atomic { calling[me] == 3 -> calling[me] = 0 };
     if
     :: settle(me, CONFIRMED)    /* however late */
     :: goto over    /* it goes away and says nothing */
     fi
  :: atomic { calling[me] == 2 && SURELY_NOT -> calling[me] = 0 };    /* it failed, and surely did not happen */
     if
     :: settle(me, REFUSED); goto over
     :: goto over
     fi
  :: atomic { calling[me] == 2 -> calling[me] = 0 };    /* turned away, which says nothing of an earlier call */
     settle(me, NOT_BEGUN);
     goto over
  :: calling[me] == 0 ->    /* its time-out: nobody knows */
     settle(me, UNKNOWN);
     goto over
  :: goto over    /* it goes away while the call is under way */
  fi;

finish:
  atomic {    /* [T7: finish] */
    if
    :: HOLDS -> assert(effect == CONFIRMED); completed = true; leased = false
    :: else -> skip
    fi };
over:
  skip
}

/* The lease ends at any moment; who held it may go on for a while: [T14: release_lost] [T4: wake] */
active proctype Clock() {
end:
  do
  :: atomic { leased -> leased = false }
  od
}

/* Asked about an effect of unknown outcome, the owner accepts a repeat, or looks it up and says what is true. */
active proctype Owner() {
end:
  do
  :: atomic { asking && (effect == UNKNOWN) && repeats < 1 ->    /* [T17: reopen_task] [effect: judge_effect] */
       repeats++; effect = REFUSED; asking = false }
  :: atomic { asking && (effect == UNKNOWN) && !UNDER_WAY ->    /* [T18: store_answer] [effect: judge_effect] */
       effect = (effects_made > 0 -> CONFIRMED : REFUSED); asking = false }
  :: atomic { asking && (effect == CONFIRMED || effect == REFUSED) -> asking = false }    /* somebody reported it meanwhile */
  od
}

active proctype Always() {
end:
  if
     /* G4 */
  :: atomic { (effect == CONFIRMED && happened == 0) -> assert(false) }
     /* G5: more than one only by a repeat that the owner chose */
  :: atomic { effects_made > 1 + repeats -> assert(false) }
     /* What is refused surely did not happen, but for the doubt that the owner took upon himself. */
  :: atomic { (effect == REFUSED && repeats == 0 && effects_made > 0) -> assert(false) }
  fi
}

init { atomic { run Worker(1); run Worker(2); run Worker(3) } }
