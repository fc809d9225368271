package replica

import (
	"net/http/httptest"
	"testing"
)

func TestModels(t *testing.T) {
	for name, want := range map[string]string{
		"":    `{"data":[{"created":0,"id":"sim","object":"model","owned_by":"hostsim"}],"object":"list"}` + "\n",
		"m-7": `{"data":[{"created":0,"id":"m-7","object":"model","owned_by":"hostsim"}],"object":"list"}` + "\n",
	} {
		s := newServer(t, Config{Model: name})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/v1/models", nil))
		if w.Code != 200 || w.Body.String() != want || w.Header().Get("content-type") != "application/json" ||
			w.Header().Get(ReplicaHeader) != "r1" {
			t.Errorf("%d %v %s, want %s", w.Code, w.Header(), w.Body, want)
		}
		if st := s.Stats(); st != (Stats{}) {
			t.Errorf("the list counts as work: %+v", st)
		}
	}
}
