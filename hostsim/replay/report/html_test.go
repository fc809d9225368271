package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

func TestDraft(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, fake(four, 5, 28)); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(os.Getenv("DRAFT"), b.Bytes(), 0o644)
	t.Log(b.Len())
	_, _, _, _, _, _, _ = json.Marshal, xml.NewDecoder, io.EOF, math.NaN, regexp.MustCompile, strings.Cut, replay.Result{}
}
