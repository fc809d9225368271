package differential

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
)

// A call is noted message by message, and answered as the steps say.
func TestGRPCPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := newTranscript()
	p := serveGRPC(l, "other", tr)
	defer p.close()
	want := []string{"other < POST /svc/Method content-length=16 x-meta=v", "other < message one", "other < message two", "other < end"}
	go func() {
		tr.await(want) // an answer that is whole ends the call, whatever of it has been heard
		for _, do := range []string{"other headers 200 x-a=1", "other data hi", "other data %", "other trailers grpc-status=7"} {
			a, err := parseAct(do)
			if err != nil {
				t.Error(err)
			}
			if err := p.send(a, ""); err != nil {
				t.Error(err)
			}
		}
	}()
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+l.Addr().String()+"/svc/Method", bytes.NewReader([]byte("\x00\x00\x00\x00\x03one\x00\x00\x00\x00\x03two")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"User-Agent": nil, "Te": {"trailers"}, "X-Meta": {"v"}}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if string(body) != "\x00\x00\x00\x00\x02hi\x00\x00\x00\x00\x01 " || err != nil {
		t.Errorf("messages %q %v", body, err)
	}
	if a, status := res.Header.Get("x-a"), res.Trailer.Get("grpc-status"); a != "1" || status != "7" {
		t.Errorf("x-a %q, grpc-status %q", a, status)
	}
	if got := tr.caused(); !slices.Equal(got, want) {
		t.Errorf("noted %q", got)
	}
}
