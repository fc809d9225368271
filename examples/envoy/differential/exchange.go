package differential

import "strings"

// Exchange is one scripted HTTP exchange with its recording.
type Exchange struct {
	// File and Line are where it stands.
	File string
	Line int
	// Name is unique in its file, of words.
	Name string
	// About says what the exchange shows, a line an entry; may be empty.
	About []string
	// Config holds the settings behind the word config, by name. See the settings in bootstrap.go.
	Config map[string]string
	// Probe is the probe's script.
	Probe []string
	// Steps are what happens, with what it caused on the default gateway, in order.
	Steps []Step
	// Deviations are recordings that differ from Steps, each for a reason.
	Deviations []Deviation
}

// Step is something that the client, the upstream or the time does.
type Step struct {
	// Do is the step's line, such as "client data hello".
	Do string
	// Caused is what was seen before the next step: lines of the plugin first, then of the upstreams, then of the client.
	Caused []string
}

// Deviation is the recording of one host that differs from that of the default gateway.
type Deviation struct {
	// Host is the one that differs: a gateway such as "envoy-1.36", which stands for Envoy and for hostsim's profile of that
	// name, or "hostsim", where hostsim does not do what Envoy does.
	Host string
	// Reason says why.
	Reason string
	Steps  []Step
}

// ID names the exchange among those of all files, in a form that fits a listener's or a cluster's name.
func (e *Exchange) ID() string {
	file := strings.TrimSuffix(e.File[strings.LastIndexByte(e.File, '/')+1:], ".txt")
	return file + "." + strings.ReplaceAll(e.Name, " ", "-")
}

// Recording is what host is to give. A gateway without a deviation of its own gives what the default one gives; sim asks
// for hostsim's recording under that gateway's profile.
func (e *Exchange) Recording(gateway string, sim bool) []Step {
	if d := e.Deviation(gateway, sim); d != nil {
		return d.Steps
	}
	return e.Steps
}

// Deviation is that of a gateway, or of hostsim under its profile, or nil.
func (e *Exchange) Deviation(gateway string, sim bool) *Deviation {
	hosts := []string{gateway}
	if sim {
		hosts = []string{"hostsim " + gateway, "hostsim", gateway}
	}
	for _, who := range hosts {
		for i := range e.Deviations {
			if e.Deviations[i].Host == who {
				return &e.Deviations[i]
			}
		}
	}
	return nil
}

// Text is the recording as it stands in a file.
func Text(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.Do + "\n")
		for _, line := range s.Caused {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}
