// Package version holds the one version number that the plugin and hostsim report. It is for nothing else: a build of a
// checkout differs from a release of it by this text alone.
package version

// Number is the release without a leading v, such as 1.2.3, or dev in every build that is none. `make release` sets it:
// -ldflags "-X github.com/pinwheel-proxy/pinwheel/build/version.Number=1.2.3". Nothing writes to it at run time.
var Number = "dev"
