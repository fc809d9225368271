package envoytest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ActAsCurl does curl's work when this binary is called by that name, and exits;
// else it returns. It is for TestMain of tests that use PathWithCurl.
func ActAsCurl() {
	if filepath.Base(os.Args[0]) != "curl" {
		return
	}
	os.Exit(curl(os.Args[1:], os.Stdout, os.Stderr))
}

// PathWithCurl returns a PATH on which there is a curl: where the machine has
// none, this binary stands in for it by a link in dir.
func PathWithCurl(dir string) (string, error) {
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("curl"); err == nil {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := os.Symlink(self, filepath.Join(dir, "curl")); err != nil {
		return "", err
	}
	return dir + string(os.PathListSeparator) + path, nil
}

// curl understands as much of curl's command line as the READMEs use, and
// refuses the rest. It returns the exit code.
func curl(args []string, out, errs io.Writer) int {
	method, url, body, showHeader, failOnStatus := "", "", "", false, false
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-X" && i+1 < len(args):
			i++
			method = args[i]
		case a == "-d" && i+1 < len(args):
			i++
			body = args[i]
		case a == "-H" && i+1 < len(args):
			i++
			name, value, _ := strings.Cut(args[i], ":")
			header.Add(name, strings.TrimSpace(value))
		case strings.HasPrefix(a, "-") && strings.Trim(a, "-sif") == "":
			showHeader = showHeader || strings.Contains(a, "i")
			failOnStatus = failOnStatus || strings.Contains(a, "f")
		case !strings.HasPrefix(a, "-") && url == "":
			url = "http://" + strings.TrimPrefix(a, "http://")
		default:
			fmt.Fprintf(errs, "curl stand-in: unknown argument %q\n", a)
			return 2
		}
	}
	if method == "" && body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 3
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 7
	}
	defer res.Body.Close()
	if failOnStatus && res.StatusCode >= 400 {
		return 22
	}
	if showHeader {
		fmt.Fprintf(out, "HTTP/1.1 %s\r\n", res.Status)
		for name, values := range res.Header {
			for _, v := range values {
				fmt.Fprintf(out, "%s: %s\r\n", strings.ToLower(name), v)
			}
		}
		fmt.Fprint(out, "\r\n")
	}
	_, _ = io.Copy(out, res.Body)
	return 0
}
