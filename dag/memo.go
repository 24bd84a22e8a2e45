package dag

import "time"

// State is where a stage stands.
type State uint8

// The states of a stage. Only Running and Lost cost a goroutine.
//
//	Waiting ⇄ Held          something keeps it from starting
//	   ⇅       ⇅
//	    Queued              in line; leaves it when the graph changes its mind
//	      ↓
//	   Running → Lost       a slot was given; no return after deadline and grace
//	      ↓       ↓
//	 Done, Failed           for this key; from here to anything but Running and
//	                        Lost when the key changes or the back-off is over
//
// A run that ended because nobody wanted it any more leads to Waiting with the
// zero Key.
const (
	Waiting State = iota // for the stages or the object in On
	Held                 // by a fact: Why, until Until
	Queued               // in its class queue
	Running
	Failed // Err; tried again at Until, or with the zero Until only for another key
	Lost   // past its deadline and not returned: its object stays owned
	Done
)

var stateNames = [...]string{"waiting", "held", "queued", "running", "failed", "lost", "done"}

// String returns the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Entry is what the engine remembers of a stage. Successive entries of one
// stage cover its time without a gap: each begins (Since) when the one before
// ended. Entries are values; On must not be changed.
type Entry struct {
	Key     Key
	State   State
	Since   time.Time
	Until   time.Time // Held, Failed: when it is looked at again; Running: its deadline
	Attempt int       // runs begun for this key
	Err     error     // of the last run for this key
	On      []ID      // Waiting: what it waits for
	Why     string    // Held: the reason; Waiting on an object: that object; Running: whose run it joined
	Owns    string    // the object of the run in flight or wanted
	Class   string
	Atomic  bool
	OnTime  bool // Held: nothing is missing, it is only not due before Until
}

// InFlight reports whether a run for this entry may be under way.
func (e Entry) InFlight() bool { return e.State == Running || e.State == Lost }

// Memo is what is remembered per stage of one key. Runs that are still in
// flight for stages that the newest graph lacks stay in it until they end.
type Memo map[ID]Entry
