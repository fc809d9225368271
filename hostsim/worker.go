package hostsim

// Worker is one virtual machine and the thread that owns it. Its methods and those of its streams are safe for concurrent
// use: calls take turns.
type Worker struct{}

// Index is the worker's number, or MainThread.
func (w *Worker) Index() int { panic("todo") }

// NewStream begins a stream on this worker. The module hears of it at the first callback. It never fails: on a crashed
// worker the failure policy decides what the stream answers.
func (w *Worker) NewStream() *Stream { panic("todo") }

// OpenStreams is the number of streams begun and not yet ended.
func (w *Worker) OpenStreams() int { panic("todo") }

// Err is nil while the virtual machine lives, and else the trap that killed it, wrapped in ErrTrap.
func (w *Worker) Err() error { panic("todo") }

// Memory is the size of the module's linear memory in bytes. It never shrinks.
func (w *Worker) Memory() uint64 { panic("todo") }

// Counters returns what this worker has counted, over all its virtual machines so far.
func (w *Worker) Counters() Counters { panic("todo") }
