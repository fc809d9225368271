package report

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// HTML writes a page that asks for nothing else: no script, no address. Errors are those of w.
func HTML(w io.Writer, r *replay.Result) error {
	var table strings.Builder
	if err := Table(&table, r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "<!doctype html>\n<title>Replay</title>\n<pre>%s</pre>\n", template.HTMLEscapeString(table.String()))
	return err
}
