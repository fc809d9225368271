package hostsim

// Profile describes a gateway as data: what it offers to a module and how it answers. Obtain one from Envoy136, Envoy140,
// Permissive or ProfileByName; change fields to describe another gateway.
type Profile struct {
	// Name is how commands and reports call it.
	Name string
}

// Envoy136 stands for Envoy 1.36 to 1.38.
func Envoy136() Profile { panic("todo") }

// Envoy140 stands for Envoy 1.39 and later. It is the default.
func Envoy140() Profile { panic("todo") }

// Permissive links whatever a module imports and restricts no phase.
func Permissive() Profile { panic("todo") }

// Profiles returns all profiles, the default one first.
func Profiles() []Profile { panic("todo") }

// ProfileByName finds a profile: envoy-1.36, envoy-1.40, permissive.
func ProfileByName(name string) (Profile, bool) { panic("todo") }
