package hostsim

import "context"

// limited returns the context for a call into the module, which ends after Config.CallTimeout, and what to call after it.
// A call within a call, as of malloc, is on the outer one's time.
func (v *vm) limited() (*vmContext, func()) {
	switch timeout := v.host.config.CallTimeout; {
	case timeout == 0:
		return v.ctx, func() {}
	case v.timed != nil:
		return v.timed, func() {}
	default:
		ctx, cancel := context.WithTimeout(v.ctx, timeout)
		v.timed = &vmContext{Context: ctx, vm: v}
		return v.timed, func() {
			v.timed = nil
			cancel()
		}
	}
}
