package hostsim

// Close ends the connection: downstream_connection_close, done, log and delete, in this order, which is not that of HTTP
// streams, and once however often it is called. by is CloseLocal or CloseRemote. Nothing happens where the plugin has closed
// it before, or was never told of it. The error wraps ErrTrap when the plugin crashed in this call. Source: Envoy,
// Context::onDownstreamConnectionClose and onCloseTCP.
func (c *Connection) Close(by CloseType) error {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	err := c.close(by)
	if c.vm != nil {
		c.vm.settle()
	}
	c.worker.reap()
	return err
}

// close runs the callbacks about the end.
func (c *Connection) close(by CloseType) error {
	if c.ended {
		return nil
	}
	c.recordClose(by)
	c.shut()
	c.ended = true
	v := c.vm
	if v == nil || v.dead != nil {
		return nil
	}
	var err error
	steps := []struct {
		e    *export
		args []uint64
	}{{v.downstreamClose, []uint64{uint64(by)}}, {v.done, nil}, {v.log, nil}, {v.remove, nil}}
	for _, s := range steps {
		if _, err = c.call(s.e, s.args...); err != nil {
			break
		}
	}
	delete(v.contexts, c.id)
	c.root.streams--
	v.retireRoot(c.root)
	return err
}

// shut marks the connection as closed on both sides. A virtual machine that has died hears no more of it. Source: Envoy,
// Context::failStream.
func (c *Connection) shut() {
	if !c.closed {
		c.closed = true
		c.worker.open--
		c.wakeUp()
	}
}
