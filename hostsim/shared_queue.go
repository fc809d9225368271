package hostsim

import (
	"slices"
	"sync"
	"time"
)

// SharedQueue is a first-in, first-out queue of messages that all virtual machines of a process share, by vm_id and name.
// Its id is one of the whole process: whoever knows it may use the queue, whatever his own vm_id. The virtual machine that
// registered the queue last hears of each message. Nothing deletes a queue. Safe for concurrent use. Source:
// proxy-wasm-cpp-host, src/shared_queue.cc.
type SharedQueue struct {
	data     *SharedData
	id       uint32
	messages [][]byte
	listener *Worker
	context  uint32 // the plugin context on it that registered
}

// queues are those of one process.
type queues struct {
	byName map[[2]string]*SharedQueue // by vm_id and name
	byID   []*SharedQueue             // id 1 first
}

// register returns the queue of that name, new or old, which from now on tells context on w of its messages. A nil w
// leaves the listener as it is.
func (d *SharedData) register(vmID, name string, w *Worker, context uint32) *SharedQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues.byName[[2]string{vmID, name}]
	if q == nil {
		if d.queues.byName == nil {
			d.queues.byName = map[[2]string]*SharedQueue{}
		}
		q = &SharedQueue{data: d, id: uint32(len(d.queues.byID) + 1)}
		d.queues.byName[[2]string{vmID, name}] = q
		d.queues.byID = append(d.queues.byID, q)
	}
	if w != nil {
		q.listener, q.context = w, context
		w.mail.open()
	}
	return q
}

// queue finds a queue by name, or nil.
func (d *SharedData) queue(vmID, name string) *SharedQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues.byName[[2]string{vmID, name}]
}

// queueByID finds a queue, or nil.
func (d *SharedData) queueByID(id uint32) *SharedQueue {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id == 0 || uint64(id) > uint64(len(d.queues.byID)) {
		return nil
	}
	return d.queues.byID[id-1]
}

// Queue returns the queue of that name in this namespace, creating it, without a listener, if absent.
func (s *SharedSpace) Queue(name string) *SharedQueue { return s.data.register(s.vmID, name, nil, 0) }

// ID is the number by which plugins know the queue, from 1.
func (q *SharedQueue) ID() uint32 { return q.id }

// Len returns the number of messages waiting.
func (q *SharedQueue) Len() int {
	q.data.mu.Lock()
	defer q.data.mu.Unlock()
	return len(q.messages)
}

// Enqueue appends a copy of message. The listener hears of it in Host.Advance or Host.RunTicks.
func (q *SharedQueue) Enqueue(message []byte) {
	message = slices.Clone(message)
	q.data.mu.Lock()
	q.messages = append(q.messages, message)
	w, context := q.listener, q.context
	q.data.mu.Unlock()
	if w != nil {
		w.mail.post(queueNotice{queue: q.id, context: context, at: w.host.clock.Monotonic()})
		w.host.wakeTicker()
	}
}

// Dequeue takes the oldest message, and reports whether there was one.
func (q *SharedQueue) Dequeue() (message []byte, ok bool) {
	q.data.mu.Lock()
	defer q.data.mu.Unlock()
	if len(q.messages) == 0 {
		return nil, false
	}
	message = q.messages[0]
	q.messages[0] = nil
	q.messages = q.messages[1:]
	return message, true
}

// queueNotice tells a plugin context of a message. It goes to a thread, and to whatever virtual machine that has by then.
type queueNotice struct {
	queue, context uint32
	at             time.Duration // monotonic
}

// mailbox holds what other threads have sent to one.
type mailbox struct {
	mu      sync.Mutex
	notices []queueNotice
	used    bool // the thread has registered a queue
}

func (m *mailbox) open() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = true
}

func (m *mailbox) post(n queueNotice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notices = append(m.notices, n)
}

// first returns the oldest notice without taking it.
func (m *mailbox) first() (n queueNotice, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.notices) == 0 {
		return n, false
	}
	return m.notices[0], true
}

func (m *mailbox) take() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notices = m.notices[1:]
}

func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.notices)
}
