package texts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	given  = regexp.MustCompile(`(?: -f |--from-file=)([\w./-]+\.(?:yaml|json))`)
	object = regexp.MustCompile(`-n (\S+) .*?\b(gateway|envoyextensionpolicy)[ /]([\w-]+)`)
	// Istio deploys a Gateway of the class istio as NAME-istio.
	deployed = regexp.MustCompile(`-n (\S+) .*?\bdeploy/([\w-]+)-istio\b`)
)

// Commands for a cluster are run by nobody here: the files and objects that they name are in the checkout.
func TestClusterCommandsNameWhatIsThere(t *testing.T) {
	named := 0
	for _, page := range files(t, ".md") {
		folder := filepath.Dir(page)
		for line := range strings.Lines(read(t, page)) {
			if !strings.Contains(line, "kubectl ") {
				continue
			}
			for _, m := range given.FindAllStringSubmatch(line, -1) {
				named++
				_, beside := os.Stat(filepath.Join(folder, m[1]))
				if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && beside != nil {
					t.Errorf("%s: %sneither the root nor its own folder has %s", page, line, m[1])
				}
			}
			for _, m := range append(object.FindAllStringSubmatch(line, -1), gateways(deployed.FindAllStringSubmatch(line, -1))...) {
				named++
				want := regexp.MustCompile(`(?i)\nkind: ` + m[2] + `\nmetadata: \{name: ` + m[3] + `, namespace: ` + m[1] + `[,}]`)
				if !want.MatchString(manifests(t, folder)) {
					t.Errorf("%s: %sno file beside it has %s %s in %s", page, line, m[2], m[3], m[1])
				}
			}
		}
	}
	if named < 12 {
		t.Errorf("only %d names found", named)
	}
}

// gateways are matches of deployed as object has them.
func gateways(matches [][]string) (list [][]string) {
	for _, m := range matches {
		list = append(list, []string{m[0], m[1], "gateway", m[2]})
	}
	return list
}

func manifests(t *testing.T, folder string) (all string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		all += "\n" + read(t, path)
	}
	return all
}
