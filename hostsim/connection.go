package hostsim

// CloseType says who closed a connection, as the plugin hears it. Source: proxy-wasm specification 0.2.1,
// proxy_peer_type_t.
type CloseType uint32

const (
	// CloseUnknown is what the plugin hears of the end of upstream's data.
	CloseUnknown CloseType = 0
	// CloseLocal is the gateway itself, also where the plugin asked for it.
	CloseLocal CloseType = 1
	// CloseRemote is the peer.
	CloseRemote CloseType = 2
)

// ConnectionStep is what a call into the plugin lets through.
type ConnectionStep struct {
	// Flow is Forward; Wait where the plugin holds this direction back, until it is shown more data or resumes; or Reset
	// where the connection is closed, after what the step carries.
	Flow Flow
	// Connect is true when the upstream connection may be made now, which happens once.
	Connect bool
	// Data goes on now. The caller owns it.
	Data []byte
	// End is true when this direction ends after Data.
	End bool
}

// Connection is one TCP connection on one worker, with the plugin as a network filter before the TCP proxy. The caller
// plays both peers: Open, then data in both directions in any order, then Close. Source for what the plugin hears and when:
// Envoy, source/extensions/common/wasm/context.cc and source/common/network/filter_manager_impl.cc.
type Connection struct {
	guestContext
	worker *Worker
	number uint64 // in the recording
	vm     *vm    // nil before Open, and for good where the connection passes without the plugin

	down, up  connHalf
	connected bool // upstream may be connected
	connect   bool // and the caller has not been told
	opened    bool
	closed    bool
	ended     bool // done, log and delete have run, or never will

	properties  map[string][]byte
	filterState map[string][]byte
	wake        chan struct{}
}

// connHalf is one direction of a connection.
type connHalf struct {
	unread  []byte // has arrived while the gateway does not read
	held    []byte // has arrived and not gone on
	end     bool   // no more will arrive
	visible bool   // the plugin may use held: from its callback until it lets data pass
	paused  bool
	out     []byte
	endOut  bool // the end has gone on
	outEnd  bool // and the caller has not been told
}

func (d *connHalf) open() bool          { return d.visible }
func (d *connHalf) setView(data []byte) { d.held = data }

func (d *connHalf) view() []byte {
	if !d.visible {
		return nil
	}
	return d.held
}

// pass lets go on what is held.
func (d *connHalf) pass() {
	d.paused = false
	d.out = append(d.out, d.held...)
	d.held = nil
	if d.end && !d.endOut {
		d.endOut, d.outEnd = true, true
	}
}

// NewConnection begins a connection on this worker. The module hears of it in Open. It never fails: on a crashed worker
// the failure policy decides what Open answers.
func (w *Worker) NewConnection() *Connection {
	c := &Connection{worker: w}
	c.conn = c
	if r := w.recording(); r != nil {
		c.number = r.nextStream()
	}
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	return c
}

// Open tells the plugin of the connection. A plugin that stops here puts off the upstream connection, and with it the
// reading of the client's data, until it resumes: the TCP proxy reads nothing before. The error wraps ErrTrap when the
// plugin crashed in this call, which closes the connection, or is ErrOrder.
func (c *Connection) Open() (ConnectionStep, error) {
	return c.step(&c.down, !c.opened, func() error {
		c.opened = true
		if c.worker.recording() != nil {
			c.worker.putEvent(c.event("open"))
		}
		v := c.worker.serving()
		if v == nil {
			if c.worker.host.config.FailurePolicy != FailOpen {
				c.shut()
				return nil
			}
			c.allowConnect()
			return nil
		}
		c.vm = v
		c.root = v.activeRoot()
		c.root.streams++
		v.newContext(&c.guestContext)
		if err := v.tellCreate(&c.guestContext, c.root.id); err != nil {
			return err
		}
		stop, err := c.call(v.newConnection)
		if err == nil && !stop {
			c.allowConnect()
		}
		return err
	})
}

func (c *Connection) allowConnect() {
	if !c.connected {
		c.connected, c.connect = true, true
	}
}

// call runs a callback that answers 0 to go on; a module without it goes on.
func (c *Connection) call(e *export, args ...uint64) (stop bool, err error) {
	if e == nil {
		return false, nil
	}
	answer, err := c.vm.callback(&c.guestContext, e, append([]uint64{uint64(c.id)}, args...)...)
	return uint32(answer) != 0, err
}

// DownstreamData delivers bytes from the client, which the caller may reuse afterwards; end says that the client sends no
// more. A plugin that stops is shown the same bytes again in front of the next ones. Errors as for Open, or
// ErrStreamEnded.
func (c *Connection) DownstreamData(chunk []byte, end bool) (ConnectionStep, error) {
	return c.data(&c.down, chunk, end)
}

// UpstreamData delivers bytes from upstream; end says that upstream sends no more, which the plugin then also hears as the
// close of the upstream connection, of CloseUnknown. A plugin that stops is shown the same bytes again in front of the next
// ones, and has no other way to let them go on. Errors as for DownstreamData.
func (c *Connection) UpstreamData(chunk []byte, end bool) (ConnectionStep, error) {
	return c.data(&c.up, chunk, end)
}

func (c *Connection) data(d *connHalf, chunk []byte, end bool) (ConnectionStep, error) {
	return c.step(d, c.opened && !d.end, func() error {
		c.recordData(d, chunk, end)
		d.unread, d.end = append(d.unread, chunk...), end
		if d == &c.down && !c.connected {
			return nil
		}
		return c.read(d)
	})
}

// read shows the plugin what has arrived.
func (c *Connection) read(d *connHalf) error {
	d.held = append(d.held, d.unread...)
	d.unread = nil
	if c.vm == nil {
		d.pass()
		return nil
	}
	d.visible = true
	e, flag := c.vm.downstreamData, uint64(0)
	if d == &c.up {
		e = c.vm.upstreamData
	}
	if d.end {
		flag = 1
	}
	stop, err := c.call(e, uint64(len(d.held)), flag)
	if err != nil {
		return err
	}
	if d.paused = stop; !stop {
		d.visible = false
		d.pass()
	}
	c.vm.settle()
	if d == &c.up && d.end && !c.closed && c.vm.dead == nil && c.vm.upstreamClose != nil {
		_, err = c.call(c.vm.upstreamClose, uint64(CloseUnknown))
	}
	return err
}

// step runs one part of the connection's life and says what may go on in direction d.
func (c *Connection) step(d *connHalf, inOrder bool, deliver func() error) (ConnectionStep, error) {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	switch {
	case c.closed:
		return ConnectionStep{Flow: Reset}, ErrStreamEnded
	case !inOrder:
		return ConnectionStep{Flow: Reset}, ErrOrder
	}
	var err error
	if c.vm != nil && c.vm.dead != nil {
		c.shut()
	} else {
		err = deliver()
	}
	if err != nil {
		c.shut()
	}
	if c.vm != nil {
		c.vm.settle()
	}
	return c.take(d), err
}

// take returns what may go on since the last call.
func (c *Connection) take(d *connHalf) ConnectionStep {
	st := ConnectionStep{Data: d.out, End: d.outEnd}
	d.out, d.outEnd = nil, false
	if d == &c.down {
		st.Connect, c.connect = c.connect, false
	}
	switch {
	case c.closed:
		st.Flow = Reset
	case d.paused, d == &c.down && !c.connected:
		st.Flow = Wait
	}
	return st
}

// resume is what continue_stream does: what the plugin has seen goes on without asking it again, and what has waited for
// the upstream connection now comes to it. Source: Envoy, FilterManagerImpl::onContinueReading; seen on Envoy 1.40.0.
func (c *Connection) resume() {
	if c.closed {
		return
	}
	defer c.wakeUp()
	if c.connected {
		c.down.pass()
		return
	}
	c.allowConnect()
	if len(c.down.unread) > 0 || c.down.end {
		if err := c.read(&c.down); err != nil {
			c.shut()
		}
	}
}

// Ready returns what has become free to go upstream since the last step, where the plugin has resumed the connection from
// elsewhere, and whether it is closed.
func (c *Connection) Ready() ConnectionStep {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	return c.take(&c.down)
}

// Wake receives a value when something outside the caller's own steps may have moved the connection: then call Ready.
// Values count from the first call of Wake on.
func (c *Connection) Wake() <-chan struct{} {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	return c.wake
}

func (c *Connection) wakeUp() {
	if c.wake == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// ID is the context id by which the plugin knows the connection, or 0 before Open.
func (c *Connection) ID() uint32 {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	return c.id
}
