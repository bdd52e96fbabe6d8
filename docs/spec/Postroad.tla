------------------------------ MODULE Postroad ------------------------------
(***************************************************************************)
(* The replication protocol of one Postroad partition: followers pull, the *)
(* fetch offset is the promise, the coordination store holds               *)
(* PartitionState under compare-and-set, leader epochs fence.              *)
(*                                                                         *)
(* Logs = {"m"}       only the messages                                    *)
(* Logs = {"m","q"}   messages and the queue's ledger (the second log)     *)
(*                                                                         *)
(* Asynchrony.  A node learns the store's state late (Learn), so zombies,  *)
(* paused leaders and slow watches need no action of their own.  A fetch   *)
(* is a snapshot that the leader may handle at any later time, even after  *)
(* its sender died or lost data.  The answer is lost, or it is applied     *)
(* together with its handling, and only if the follower is still in the    *)
(* state in which it asked (same epoch, offset and life).  That is no      *)
(* loss of generality: whatever a follower does in between makes it drop   *)
(* the answer.  A leader's transaction (prop) is applied at any later      *)
(* time; the leader learns of it only by reading.                          *)
(* Revisions are not counted: every write of PartitionState spoils all     *)
(* transactions in flight (prop.ok) and every leader's image (cur).        *)
(*                                                                         *)
(* Mut is a set of names: each takes one rule away (see README).           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS R, None, Logs, Flush, MinIsr, Mut,
          MaxRec,      \* messages appended in all
          MaxAcc,      \* ledger records appended in all
          MaxKill,     \* deaths of a process
          MaxCut,      \* power cuts of a machine
          MaxExp,      \* leases lost by a live node
          MaxShrink,   \* ISR shrinks that a leader proposes
          MaxMove,     \* leader moved by the controller although it lives
          Late,        \* TRUE: fetches may be late; FALSE: sent and handled in one step (fewer states)
          Start,       \* "whole": all in the ISR; "two": one is outside; "one": ISR of one, one in the ELR
          Base,        \* messages that all have and that are committed at the beginning
          MaxMin       \* changes of min.insync (only by a mutant)

VARIABLES
  st,      \* PartitionState in the store
  live,    \* live[r]: nodes/<r> exists
  inc,     \* inc[r]: its broker epoch (one more for each registration)
  up,      \* process runs
  boot,    \* "same" or "other" boot since the last recorded start
  view,    \* what r knows of PartitionState
  cur,     \* a leader's image is the newest revision
  log,     \* log[k][r]: sequence of [e, v, o]
  synced,  \* synced[k][r]: what a power cut leaves for sure
  hw,      \* hw[k][r]: watermark
  estart,  \* estart[k][r]: where a leader's epoch begins
  prog,    \* prog[k][l][f]: the promise of f that l knows, with f's broker epoch
  prop,    \* the leader's transaction in flight
  req,     \* req[k][f]: the newest fetch of f, perhaps late
  com,     \* history: longest prefix that was ever below a leader's watermark
  n,       \* n[k]: records appended so far
  bud      \* faults left; bud.ans is a history: accepts answered from memory (only by a mutant);
           \* bud.old is a fetch that later ones of its sender overtake

store == <<st, live, inc>>
disk  == <<log, synced>>
vars  == <<st, live, inc, up, boot, view, cur, log, synced, hw, estart, prog, prop, req, com, n, bud>>

Has(m) == m \in Mut
Min2(a, b) == IF a < b THEN a ELSE b
MinS(S) == CHOOSE x \in S : \A y \in S : x <= y
IsPrefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a
LastEpoch(s) == IF s = <<>> THEN 0 ELSE s[Len(s)].e
EndOf(s, e) == Cardinality({i \in 1..Len(s) : s[i].e <= e})   \* end of the largest epoch <= e
EpochAt(s, i) == IF i = 0 THEN 0 ELSE s[i].e
Nobody == [f \in R |-> None]
Blank == [leader |-> None, epoch |-> 0, isr |-> {}, elr |-> {}, min |-> MinIsr]
IsLeader(r) == up[r] /\ view[r].leader = r
\* what a node keeps of the state: a follower needs only leader and epoch
Seen(r, s) == IF s.leader = r THEN s ELSE [s EXCEPT !.isr = {}, !.elr = {}]

First == [i \in 1..Base |-> [e |-> 1, v |-> i, o |-> 0]]
Init ==
  \E l, x \in R :
  LET isr == CASE Start = "whole" -> R [] Start = "two" -> R \ {x} [] Start = "one" -> {l}
      elr == IF Start = "one" THEN {x} ELSE {}
      s == [leader |-> l, epoch |-> 1, isr |-> isr, elr |-> elr, min |-> MinIsr] IN
  /\ Start # "whole" => l # x
  /\ st = s /\ live = [r \in R |-> TRUE] /\ inc = [r \in R |-> 1]
  /\ up = [r \in R |-> TRUE] /\ boot = [r \in R |-> "same"]
  /\ view = [r \in R |-> Seen(r, s)] /\ cur = [r \in R |-> TRUE]
  /\ log = [k \in Logs |-> [r \in R |-> IF k = "m" THEN First ELSE <<>>]]
  /\ synced = [k \in Logs |-> [r \in R |-> IF k = "m" /\ Flush = "sync" THEN Base ELSE 0]]
  /\ hw = [k \in Logs |-> [r \in R |-> IF k = "m" THEN Base ELSE 0]]
  /\ estart = [k \in Logs |-> [r \in R |-> 0]]
  /\ prog = [k \in Logs |-> [r \in R |-> Nobody]]
  /\ prop = [r \in R |-> None]
  /\ req = [k \in Logs |-> [r \in R |-> None]]
  /\ com = [k \in Logs |-> IF k = "m" THEN First ELSE <<>>]
  /\ n = [k \in Logs |-> IF k = "m" THEN Base ELSE 0]
  /\ bud = [kill |-> MaxKill, cut |-> MaxCut, exp |-> MaxExp, shrink |-> MaxShrink,
            move |-> MaxMove, min |-> MaxMin, ans |-> {},
            overtaken |-> IF Has("overtakenFetch") THEN 1 ELSE 0, old |-> None]

-----------------------------------------------------------------------------
(* The commit rule *)

Maximal(v, p) ==
  IF p = None \/ Has("committedIsr") THEN v.isr
  ELSE IF Has("shrinkEarly") /\ p.isr \subseteq v.isr THEN p.isr
  ELSE IF p.counted THEN v.isr \union p.isr
  ELSE v.isr

\* the |ISR| that is compared with min.insync is the COMMITTED one
Enough(v, p) == Cardinality(IF Has("minMaximal") THEN Maximal(v, p) ELSE v.isr)
                  >= Min2(v.min, Cardinality(R))

NewHw(l, v, p, lg, sy, pr, h) ==
  LET own == IF Flush = "sync" THEN sy ELSE Len(lg)
      m == MinS({own} \union {IF pr[f] = None THEN 0 ELSE pr[f].off : f \in Maximal(v, p) \ {l}})
  IN IF (Enough(v, p) \/ Has("noMinIsr")) /\ m > h THEN m ELSE h

NewHws(l, v, p, lg, sy, pr) ==
  [k \in Logs |-> NewHw(l, v, p, lg[k][l], sy[k][l], pr[k][l], hw[k][l])]
NewCom(l, h, lg) ==
  [k \in Logs |-> LET pre == SubSeq(lg[k][l], 1, h[k]) IN
     IF h[k] > Len(com[k]) /\ IsPrefix(com[k], pre) THEN pre ELSE com[k]]
Advance(l, v, p, lg, sy, pr) ==
  LET h == NewHws(l, v, p, lg, sy, pr) IN
  /\ hw' = [k \in Logs |-> [hw[k] EXCEPT ![l] = h[k]]]
  /\ com' = NewCom(l, h, lg)

-----------------------------------------------------------------------------
(* The store *)

Spoiled(p) == [r \in R |-> IF p[r] = None THEN None ELSE [p[r] EXCEPT !.ok = FALSE]]
Stale(c, v) == [r \in R |-> IF v[r].leader = r THEN FALSE ELSE c[r]]
Write(s) == /\ st' = s
            /\ prop' = Spoiled(prop)
            /\ cur' = Stale(cur, view)

\* who leaves goes to the ELR if too few are left; enough in the ISR empties the ELR
ElrAfter(isr, elr, gone, min) ==
  IF Cardinality(isr) >= Min2(min, Cardinality(R))
  THEN (IF Has("elrKept") THEN (elr \ isr) ELSE {})
  ELSE (elr \union gone) \ isr

\* the controller: a reconcile over state
Electable ==
  LET a == {r \in st.isr : live[r]} IN IF a # {} THEN a ELSE {r \in st.elr : live[r]}
Leaderless == IF st.leader = None THEN TRUE ELSE ~live[st.leader]
Elect(r) ==
  /\ Leaderless
  /\ r \in Electable
  /\ LET isr == IF r \in st.isr THEN st.isr ELSE {r}
         elr == IF r \in st.isr THEN st.elr ELSE ElrAfter({r}, st.elr, st.isr, st.min)
     IN Write([st EXCEPT !.leader = r, !.epoch = @ + 1, !.isr = isr, !.elr = elr])
  /\ UNCHANGED <<live, inc, up, boot, view, disk, hw, estart, prog, req, com, n, bud>>

\* takes a dead node out of the ISR; a dead leader only where nobody can follow it
RemoveDead(f) ==
  /\ f \in st.isr /\ ~live[f]
  /\ st.leader = f => Electable = {}
  /\ LET isr == st.isr \ {f} IN
     Write([st EXCEPT !.isr = isr, !.elr = ElrAfter(isr, st.elr, {f}, st.min),
                      !.leader = IF @ = f THEN None ELSE @,
                      !.epoch = IF st.leader = f THEN @ + 1 ELSE @])
  /\ UNCHANGED <<live, inc, up, boot, view, disk, hw, estart, prog, req, com, n, bud>>

\* preferred leaders, drain: a leader that lives is replaced.  Right: by its own commit, after it has
\* stopped serving.  Wrong for the soft services: by the controller, behind the leader's back.
Move(r) ==
  /\ bud.move > 0 /\ bud' = [bud EXCEPT !.move = @ - 1]
  /\ st.leader # None /\ live[st.leader] /\ r # st.leader /\ r \in st.isr /\ live[r]
  /\ LET l == st.leader
         s == [st EXCEPT !.leader = r, !.epoch = @ + 1]
     IN IF Has("moveByController")
        THEN Write(s) /\ UNCHANGED <<view, estart, prog>>
        ELSE /\ IsLeader(l) /\ view[l].epoch = st.epoch /\ cur[l] /\ prop[l] = None
             /\ st' = s
             /\ prop' = [Spoiled(prop) EXCEPT ![l] = None]
             /\ cur' = [Stale(cur, view) EXCEPT ![l] = TRUE]
             /\ view' = [view EXCEPT ![l] = Seen(l, s)]
             /\ estart' = [k \in Logs |-> [estart[k] EXCEPT ![l] = 0]]
             /\ prog' = [k \in Logs |-> [prog[k] EXCEPT ![l] = Nobody]]
  /\ UNCHANGED <<live, inc, up, boot, disk, hw, req, com, n>>

\* min.insync lowered to 1; the right rule empties the ELR in the same commit
LowerMin ==
  /\ bud.min > 0 /\ bud' = [bud EXCEPT !.min = @ - 1]
  /\ st.min > 1
  /\ Write([st EXCEPT !.min = 1,
                      !.elr = IF Has("minKeepsElr") THEN @ ELSE ElrAfter(st.isr, @, {}, 1)])
  /\ UNCHANGED <<live, inc, up, boot, view, disk, hw, estart, prog, req, com, n>>

\* a leader's transaction arrives
Apply(l) ==
  /\ prop[l] # None /\ prop[l].ok
  /\ LET p == prop[l]
         fits == \/ p.joiner = None
                 \/ live[p.joiner] /\ inc[p.joiner] = p.be
                 \/ Has("noBrokerEpoch")
     IN IF fits THEN Write([st EXCEPT !.isr = p.isr, !.elr = p.elr])
        ELSE prop' = [prop EXCEPT ![l].ok = FALSE] /\ UNCHANGED <<st, cur>>
  /\ UNCHANGED <<live, inc, up, boot, view, disk, hw, estart, prog, req, com, n, bud>>

-----------------------------------------------------------------------------
(* Leader *)

Learn(r) ==
  /\ up[r]
  /\ \/ view[r].epoch # st.epoch
     \/ view[r].leader = r /\ (~cur[r] \/ (prop[r] # None /\ ~prop[r].ok))
  /\ LET new == st.leader = r /\ view[r].epoch # st.epoch
         same == st.leader = r /\ view[r].epoch = st.epoch
         es == [k \in Logs |-> [estart[k] EXCEPT ![r] =
                 IF new THEN Len(log[k][r]) ELSE IF same THEN @ ELSE 0]]
         pg == [k \in Logs |-> [prog[k] EXCEPT ![r] = IF same THEN @ ELSE Nobody]]
     IN /\ view' = [view EXCEPT ![r] = Seen(r, st)]
        /\ cur' = [cur EXCEPT ![r] = TRUE]
        /\ prop' = [prop EXCEPT ![r] = None]
        /\ estart' = es /\ prog' = pg
        /\ IF st.leader = r THEN Advance(r, st, None, log, synced, pg)
           ELSE UNCHANGED <<hw, com>>
  /\ UNCHANGED <<store, up, boot, disk, req, n, bud>>

Produce(l) ==
  /\ IsLeader(l) /\ n["m"] < MaxRec
  /\ n' = [n EXCEPT !["m"] = @ + 1]
  /\ log' = [log EXCEPT !["m"][l] = Append(@, [e |-> view[l].epoch, v |-> n["m"] + 1, o |-> 0])]
  /\ Advance(l, view[l], prop[l], log', synced, prog)
  /\ UNCHANGED <<store, up, boot, view, cur, synced, estart, prog, prop, req, bud>>

Propose(l, isr, elr, joiner, be) ==
  prop' = [prop EXCEPT ![l] = [isr |-> isr, elr |-> elr, joiner |-> joiner, be |-> be,
                               ok |-> TRUE, counted |-> TRUE]]

Shrink(l, f) ==
  /\ bud.shrink > 0 /\ bud' = [bud EXCEPT !.shrink = @ - 1]
  /\ IsLeader(l) /\ cur[l] /\ prop[l] = None /\ f \in view[l].isr \ {l}
  /\ LET isr == view[l].isr \ {f} IN
     Propose(l, isr, ElrAfter(isr, view[l].elr, {f}, view[l].min), None, 0)
  /\ Advance(l, view[l], prop'[l], log, synced, prog)
  /\ UNCHANGED <<store, up, boot, view, cur, disk, estart, prog, req, n>>

JoinLogs == IF Has("joinMessagesOnly") THEN {"m"} ELSE Logs
Join(l, f) ==
  /\ IsLeader(l) /\ cur[l] /\ prop[l] = None /\ f \notin view[l].isr
  /\ \A k \in JoinLogs :
       /\ prog[k][l][f] # None
       /\ prog[k][l][f].off >= estart[k][l] \/ Has("joinBelowStart")
       /\ prog[k][l][f].off >= hw[k][l] \/ Has("joinBelowHw")
       /\ prog[k][l][f].be = prog["m"][l][f].be
  /\ LET isr == view[l].isr \union {f} IN
     Propose(l, isr, ElrAfter(isr, view[l].elr, {}, view[l].min), f, prog["m"][l][f].be)
  /\ Advance(l, view[l], prop'[l], log, synced, prog)
  /\ UNCHANGED <<store, up, boot, view, cur, disk, estart, prog, req, n, bud>>

\* wrong: the answer was lost, a read shows the old revision, the leader takes it for a failure
\* although the transaction may still arrive
Forget(l) ==
  /\ Has("unknownIsFailed") /\ IsLeader(l) /\ prop[l] # None /\ prop[l].ok /\ prop[l].counted
  /\ prop' = [prop EXCEPT ![l].counted = FALSE]
  /\ Advance(l, view[l], prop'[l], log, synced, prog)
  /\ UNCHANGED <<store, up, boot, view, cur, disk, estart, prog, req, n, bud>>

-----------------------------------------------------------------------------
(* Follower *)

\* What is below "safe" is on the follower's disk: with "sync" it may read on before that is so of all it has.
Request(k, f) == [le |-> view[f].epoch, off |-> Len(log[k][f]), last |-> LastEpoch(log[k][f]), be |-> inc[f],
                  safe |-> IF Flush = "sync" /\ ~Has("ackBeforeSync") THEN synced[k][f] ELSE Len(log[k][f])]

\* A fetch is sent when its handling would change something.  (One that changes nothing now only repeats
\* a promise that the leader knows already.)
Useful(k, f) ==
  LET l == view[f].leader
      q == Request(k, f)
      end == EndOf(log[k][l], q.last)
  IN IF ~(up[l] /\ view[l].leader = l /\ view[l].epoch = q.le) THEN FALSE
     ELSE IF EpochAt(log[k][l], end) # q.last \/ end < q.off THEN TRUE
     ELSE \/ Len(log[k][l]) > q.off
          \/ hw[k][l] > hw[k][f]
          \/ prog[k][l][f] # [off |-> q.safe, be |-> q.be]

MayFetch(k, f) ==
  /\ up[f] /\ view[f].leader \notin {None, f}
  /\ Useful(k, f)

Fetch(k, f) ==
  /\ Late /\ MayFetch(k, f)
  /\ req[k][f] # Request(k, f)
  /\ req' = [req EXCEPT ![k][f] = Request(k, f)]
  /\ UNCHANGED <<store, up, boot, view, cur, disk, hw, estart, prog, prop, com, n, bud>>

\* What the leader knows after a fetch.  One of a process that has been replaced since, by its broker epoch, is
\* no promise: the new process may have lost what the old one had.
Promised(k, l, f, q, diverging) ==
  LET replaced == IF prog[k][l][f] = None THEN FALSE ELSE q.be < prog[k][l][f].be
  IN IF (diverging /\ ~Has("divergingCounts")) \/ (replaced /\ ~Has("oldLifeCounts")) THEN prog
     ELSE [prog EXCEPT ![k][l][f] = [off |-> Min2(q.safe, Len(log[k][l])), be |-> q.be]]

\* the leader handles a fetch; the answer is lost, or the follower applies it if it still fits
Handle(k, l, f) == \E arrives \in BOOLEAN :
  /\ IsLeader(l) /\ l # f
  /\ IF Late THEN req[k][f] # None ELSE view[f].leader = l /\ MayFetch(k, f)
  /\ LET q == IF Late THEN req[k][f] ELSE Request(k, f)
         L == log[k][l]
         F == log[k][f]
         end == EndOf(L, q.last)
         ep == EpochAt(L, end)
         diverging == ep # q.last \/ end < q.off
         here == arrives /\ up[f] /\ view[f].epoch = q.le /\ view[f].leader = l /\ Len(F) = q.off
                 /\ LastEpoch(F) = q.last /\ inc[f] = q.be
         cut == IF Has("truncateToWatermark") THEN Min2(hw[k][f], Len(F))
                ELSE Min2(end, EndOf(F, ep))
         F2 == IF ~here THEN F
               ELSE IF diverging THEN SubSeq(F, 1, cut)
               ELSE F \o SubSeq(L, q.off + 1, Len(L))
         pr == Promised(k, l, f, q, diverging)
         lg == [log EXCEPT ![k][f] = F2]
         sy == [synced EXCEPT ![k][f] = Min2(@, Len(F2))]
         h == NewHws(l, view[l], prop[l], lg, sy, pr)
         hf == IF ~here THEN hw[k][f]
               ELSE LET a == Min2(h[k], Len(F2))
                        b == Min2(hw[k][f], Len(F2))
                    IN IF diverging \/ a < b THEN b ELSE a
     IN /\ q.le = view[l].epoch \/ Has("noEpochCheck")
        /\ arrives \/ pr # prog \/ Late
        /\ log' = lg /\ synced' = sy /\ prog' = pr
        /\ hw' = [j \in Logs |-> [hw[j] EXCEPT ![l] = h[j], ![f] = IF j = k THEN hf ELSE @]]
        /\ com' = NewCom(l, h, lg)
  /\ req' = [req EXCEPT ![k][f] = None]
  /\ UNCHANGED <<store, up, boot, view, cur, estart, prop, n, bud>>

\* One fetch stays on its way while its sender goes on, over other connections and to other leaders.  Its
\* answer is dropped (see above), so only the promise counts.
Overtake(k, f) ==
  /\ bud.overtaken > 0 /\ MayFetch(k, f)
  /\ bud' = [bud EXCEPT !.overtaken = @ - 1, !.old = [k |-> k, f |-> f, q |-> Request(k, f)]]
  /\ UNCHANGED <<store, up, boot, view, cur, disk, hw, estart, prog, prop, req, com, n>>

HandleOld(l) ==
  /\ bud.old # None
  /\ LET k == bud.old.k
         f == bud.old.f
         q == bud.old.q
         L == log[k][l]
         end == EndOf(L, q.last)
         diverging == EpochAt(L, end) # q.last \/ end < q.off
         pr == Promised(k, l, f, q, diverging)
     IN /\ IsLeader(l) /\ l # f
        /\ q.le = view[l].epoch \/ Has("noEpochCheck")
        /\ prog' = pr
        /\ Advance(l, view[l], prop[l], log, synced, pr)
  /\ bud' = [bud EXCEPT !.old = None]
  /\ UNCHANGED <<store, up, boot, view, cur, disk, estart, prop, req, n>>

\* wrong: at the change of leader the follower cuts at its own watermark (before KIP-101)
CutAtChange(r) ==
  /\ Has("truncateToWatermark") /\ up[r] /\ view[r].leader \notin {None, r}
  /\ \E k \in Logs :
       /\ Len(log[k][r]) > hw[k][r]
       /\ (IF req[k][r] = None THEN TRUE ELSE req[k][r].le # view[r].epoch)
       /\ LastEpoch(log[k][r]) < view[r].epoch
       /\ log' = [log EXCEPT ![k][r] = SubSeq(@, 1, hw[k][r])]
       /\ synced' = [synced EXCEPT ![k][r] = Min2(@, hw[k][r])]
  /\ UNCHANGED <<store, up, boot, view, cur, hw, estart, prog, prop, req, com, n, bud>>

Sync(k, r) ==
  /\ Flush = "sync" /\ up[r] /\ synced[k][r] < Len(log[k][r])
  /\ synced' = [synced EXCEPT ![k][r] = Len(log[k][r])]
  /\ IF IsLeader(r) THEN Advance(r, view[r], prop[r], log, synced', prog) ELSE UNCHANGED <<hw, com>>
  /\ UNCHANGED <<store, up, boot, view, cur, log, estart, prog, prop, req, n, bud>>

-----------------------------------------------------------------------------
(* Faults and the start of a node *)

Down(r) ==
  /\ up' = [up EXCEPT ![r] = FALSE]
  /\ view' = [view EXCEPT ![r] = Blank]
  /\ cur' = [cur EXCEPT ![r] = TRUE]
  /\ estart' = [k \in Logs |-> [estart[k] EXCEPT ![r] = 0]]
  /\ prog' = [k \in Logs |-> [prog[k] EXCEPT ![r] = Nobody]]

Kill(r) ==
  /\ up[r] /\ bud.kill > 0 /\ bud' = [bud EXCEPT !.kill = @ - 1]
  /\ Down(r)
  /\ UNCHANGED <<store, boot, disk, hw, prop, req, com, n>>

\* `os`: any tail may go.  `sync`: only what was never synced.
Cut(r) ==
  /\ bud.cut > 0 /\ bud' = [bud EXCEPT !.cut = @ - 1]
  /\ Down(r)
  /\ boot' = [boot EXCEPT ![r] = IF Flush = "os" THEN "other" ELSE @]
  /\ \E c \in [Logs -> 0..(MaxRec + MaxAcc)] :
       /\ \A k \in Logs : c[k] <= Len(log[k][r]) /\ c[k] >= synced[k][r]
       /\ log' = [k \in Logs |-> [log[k] EXCEPT ![r] = SubSeq(@, 1, c[k])]]
       /\ hw' = [k \in Logs |-> [hw[k] EXCEPT ![r] = Min2(@, c[k])]]
  /\ UNCHANGED <<store, synced, prop, req, com, n>>

LeaseEnds(r) ==      \* of a dead node, or deleted by a peer that saw it dead
  /\ ~up[r] /\ live[r] /\ live' = [live EXCEPT ![r] = FALSE]
  /\ UNCHANGED <<st, inc, up, boot, view, cur, disk, hw, estart, prog, prop, req, com, n, bud>>

Expire(r) ==         \* of a node that lives: paused, or cut from the store
  /\ up[r] /\ live[r] /\ bud.exp > 0 /\ bud' = [bud EXCEPT !.exp = @ - 1]
  /\ live' = [live EXCEPT ![r] = FALSE]
  /\ UNCHANGED <<st, inc, up, boot, view, cur, disk, hw, estart, prog, prop, req, com, n>>

\* a node whose lease ended registers anew, after its image has reached the newest revision
Register(r) ==
  /\ up[r] /\ ~live[r]
  /\ (view[r].epoch = st.epoch /\ cur[r]) \/ Has("registerStale")
  /\ live' = [live EXCEPT ![r] = TRUE] /\ inc' = [inc EXCEPT ![r] = @ + 1]
  /\ UNCHANGED <<st, up, boot, view, cur, disk, hw, estart, prog, prop, req, com, n, bud>>

\* wrong: the new boot id is written down before the node's commit, and the start fails in between
RecordBootFirst(r) ==
  /\ Has("bootRecordedFirst") /\ ~up[r] /\ boot[r] = "other"
  /\ boot' = [boot EXCEPT ![r] = "same"]
  /\ UNCHANGED <<store, up, view, cur, disk, hw, estart, prog, prop, req, com, n, bud>>

\* a node's own commit before it serves
Restart(r) ==
  /\ ~up[r]
  /\ LET lost == boot[r] = "other" /\ Flush = "os" /\ ~Has("keepIsrAfterReboot")
         led == st.leader = r /\ ~Has("noResign")
         onlyMe == IF Has("literalOnlyMe") THEN st.isr = {r} /\ st.elr \subseteq {r}
                   ELSE st.isr \union st.elr = {r}
         s == IF lost /\ onlyMe
              THEN [st EXCEPT !.leader = None, !.epoch = @ + 1, !.isr = {r}, !.elr = {}]
              ELSE IF lost
              THEN [st EXCEPT !.leader = IF led THEN None ELSE @,
                              !.epoch = IF led THEN @ + 1 ELSE @,
                              !.isr = @ \ {r}, !.elr = @ \ {r}]
              ELSE IF led THEN [st EXCEPT !.leader = None, !.epoch = @ + 1]
              ELSE st
     IN /\ hw' = [k \in Logs |-> [hw[k] EXCEPT ![r] = Min2(@, Len(log[k][r]))]]
        /\ IF s # st THEN /\ st' = s
                          /\ prop' = [Spoiled(prop) EXCEPT ![r] = None]
                          /\ cur' = [Stale(cur, view) EXCEPT ![r] = TRUE]
                     ELSE prop' = [prop EXCEPT ![r] = None] /\ UNCHANGED <<st, cur>>
        /\ view' = [view EXCEPT ![r] = Seen(r, s)]
  /\ up' = [up EXCEPT ![r] = TRUE]
  /\ live' = [live EXCEPT ![r] = TRUE] /\ inc' = [inc EXCEPT ![r] = @ + 1]
  /\ boot' = [boot EXCEPT ![r] = "same"]
  /\ UNCHANGED <<log, synced, estart, prog, req, com, n, bud>>

-----------------------------------------------------------------------------
(* Queues: the ledger.  An accept is a record [v = the message, o = its    *)
(* offset]; it is answered when it lies below the ledger's watermark.      *)

\* What a leader knows as accepted: its whole ledger as loaded at become_leader and since
Loaded(l) == IF Has("loadToWatermark") THEN SubSeq(log["q"][l], 1, hw["q"][l]) ELSE log["q"][l]
\* A record counts only for a message of its own or an earlier epoch: where the messages lost their end
\* (the last replica stays), another one may have its offset
Counts(l, x) == /\ x.o <= Len(log["m"][l])
                /\ Has("ledgerKept") \/ log["m"][l][x.o].e <= x.e
Accepted(l, o) == \E i \in 1..Len(Loaded(l)) : Loaded(l)[i].o = o /\ Counts(l, Loaded(l)[i])
\* `evidence` for the soft services.  Own lease current (counted from before the keep-alive was
\* sent) implies that nodes/<l> exists.
FetchedByAll(l) == \A f \in view[l].isr \ {l} : prog["m"][l][f] # None
Evidence(l) == \/ Has("noEvidence")
               \/ live[l]
               \/ Has("fetchIsEvidence") /\ FetchedByAll(l)
               \/ Has("fetchIsEvidence2") /\ FetchedByAll(l) /\ view[l].isr # {l}
Loadable(l) == hw["q"][l] >= estart["q"][l] \/ ~Has("loadToWatermark") \/ Has("loadAtOnce")

Accept(l) ==
  /\ "q" \in Logs /\ n["q"] < MaxAcc
  /\ IsLeader(l) /\ Evidence(l)
  /\ \E o \in 1..hw["m"][l] :
       /\ ~Accepted(l, o)
       /\ log' = [log EXCEPT !["q"][l] = Append(@, [e |-> view[l].epoch, v |-> log["m"][l][o].v, o |-> o])]
  /\ n' = [n EXCEPT !["q"] = @ + 1]
  /\ Advance(l, view[l], prop[l], log', synced, prog)
  /\ UNCHANGED <<store, up, boot, view, cur, synced, estart, prog, prop, req, bud>>

\* wrong: an accept is repeated at the new leader, which has it in its ledger, not yet committed,
\* and answers from memory
AnswerFromMemory(l) ==
  /\ Has("answerFromMemory") /\ IsLeader(l) /\ Evidence(l)
  /\ \E i \in (hw["q"][l] + 1)..Len(log["q"][l]) :
       /\ log["q"][l][i].e < view[l].epoch
       /\ log["q"][l][i].v \notin bud.ans
       /\ bud' = [bud EXCEPT !.ans = @ \union {log["q"][l][i].v}]
  /\ UNCHANGED <<store, up, boot, view, cur, disk, hw, estart, prog, prop, req, com, n>>

-----------------------------------------------------------------------------
Good ==
  /\ st.leader # None /\ st.isr = R
  /\ \A r \in R : up[r] /\ live[r]
  /\ \A k \in Logs : \A r \in R : log[k][r] = log[k][st.leader]
  /\ \A k \in Logs : hw[k][st.leader] = Len(log[k][st.leader])
Done == Good /\ UNCHANGED vars      \* the only state in which it may rest

Next ==
  \/ \E r \in R : \/ Elect(r) \/ RemoveDead(r) \/ Move(r) \/ Apply(r) \/ Learn(r)
                  \/ Produce(r) \/ Forget(r) \/ CutAtChange(r) \/ Accept(r) \/ AnswerFromMemory(r)
                  \/ Kill(r) \/ Cut(r) \/ LeaseEnds(r) \/ Expire(r) \/ Register(r)
                  \/ RecordBootFirst(r) \/ Restart(r) \/ HandleOld(r)
  \/ LowerMin
  \/ \E l, f \in R : l # f /\ (Shrink(l, f) \/ Join(l, f))
  \/ \E k \in Logs, f \in R : Fetch(k, f) \/ Sync(k, f) \/ Overtake(k, f)
  \/ \E k \in Logs, l, f \in R : Handle(k, l, f)
  \/ Done
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(R)

-----------------------------------------------------------------------------
(* What must hold *)

Newest(r) == IsLeader(r) /\ view[r].epoch = st.epoch

\* L1: the newest leader has everything that was ever acknowledged
NoLoss == \A r \in R : Newest(r) => \A k \in Logs : IsPrefix(com[k], log[k][r])
\* L2: one value for each offset below anybody's watermark
OneValue == \A r \in R : \A k \in Logs :
  /\ hw[k][r] <= Len(log[k][r])
  /\ hw[k][r] <= Len(com[k])
  /\ SubSeq(log[k][r], 1, hw[k][r]) = SubSeq(com[k], 1, hw[k][r])
\* never two values at an offset in one epoch, and equal epochs mean equal pasts
LogMatching == \A k \in Logs : \A a, b \in R :
  \A i \in 1..Min2(Len(log[k][a]), Len(log[k][b])) :
    log[k][a][i].e = log[k][b][i].e => SubSeq(log[k][a], 1, i) = SubSeq(log[k][b], 1, i)
\* L12
EpochsRise == \A k \in Logs, r \in R : \A i \in 1..(Len(log[k][r]) - 1) :
  log[k][r][i].e <= log[k][r][i + 1].e
\* L13
OneLeader == \A a, b \in R : a # b /\ IsLeader(a) /\ IsLeader(b) => view[a].epoch # view[b].epoch
\* KIP-207: once the watermark has reached the epoch's start it is not below any that was shown before
NotBack == \A r \in R : \A k \in Logs :
  Newest(r) /\ hw[k][r] >= estart[k][r] =>
    \A i \in 1..Len(com[k]) : com[k][i].e < st.epoch => i <= hw[k][r]
\* the watermark of one leader in one epoch does not fall, nor that of a replica that lost nothing
WatermarkRises == [][\A r \in R : \A k \in Logs :
                      IsLeader(r) /\ view'[r] # Blank => hw'[k][r] >= hw[k][r]]_vars

\* S4: whoever serves does not have an answered accept as available
S4 == "q" \in Logs => \A l \in R :
  IsLeader(l) /\ Evidence(l) /\ Loadable(l) =>
    \A o \in 1..hw["m"][l] :
      (\/ \E i \in 1..Len(com["q"]) : com["q"][i].v = log["m"][l][o].v
       \/ log["m"][l][o].v \in bud.ans) => Accepted(l, o)
\* what counts of the newest leader's ledger was said of the very message that has the offset
LedgerRefers == "q" \in Logs => \A r \in R : Newest(r) =>
  \A i \in 1..Len(log["q"][r]) :
    LET x == log["q"][r][i] IN Counts(r, x) => log["m"][r][x.o].v = x.v
\* L5 for a client that sends no leader epoch: no leader answers OFFSET_OUT_OF_RANGE below what was shown
NoOutOfRange == \A r \in R : IsLeader(r) => Len(log["m"][r]) >= Len(com["m"])
=============================================================================
