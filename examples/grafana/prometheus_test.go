package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// tool finds a program, or fails with the way to get it.
func tool(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: apt-get install %s, or the project's own release on the PATH", name, debian)
	}
	return path
}

// database is a running Prometheus that stores into a temporary folder.
type database struct{ url string }

// startPrometheus runs the example's own configuration, with other targets, and a second between scrapes.
func startPrometheus(t *testing.T, gateways, engines []string) *database {
	t.Helper()
	binary := tool(t, "prometheus", "prometheus")
	config, err := os.ReadFile("prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(config)
	replace := func(from, to string) {
		t.Helper()
		if strings.Count(text, from) != 1 {
			t.Fatalf("prometheus.yml does not have %q once", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	rules, _ := filepath.Abs("rules.yml")
	list := func(addrs []string) string { return `["` + strings.Join(addrs, `", "`) + `"]` }
	replace("scrape_interval: 15s", "scrape_interval: 1s")
	replace("evaluation_interval: 15s", "evaluation_interval: 1s")
	replace("rule_files: [rules.yml]", "rule_files: ["+rules+"]")
	replace(`["127.0.0.1:9901"]`, list(gateways))
	replace(`["127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"]`, list(engines))
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	log, exited := &envoytest.Log{}, make(chan struct{})
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Stdout, cmd.Stderr = log, log
	if err := envoytest.RunTied(cmd, exited); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); <-exited })
	p := &database{url: "http://" + addr}
	eventually(t, "Prometheus to be ready", func() error {
		select {
		case <-exited:
			t.Fatalf("Prometheus ended:\n%s", log.Tail(10))
		default:
		}
		_, err := get(t.Context(), p.url+"/-/ready")
		return err
	})
	return p
}

// series is one series of an answer; instant queries give one value.
type series struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

// finite are the values that are numbers.
func (s series) finite() (list []float64) {
	for _, pair := range append(s.Values, s.Value) {
		text, _ := pair[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			list = append(list, v)
		}
	}
	return list
}

// query asks for the values now.
func (p *database) query(ctx context.Context, expr string) ([]series, error) {
	return p.ask(ctx, "/api/v1/query", url.Values{"query": {expr}})
}

// span asks for the values from begin until now, a second apart.
func (p *database) span(ctx context.Context, expr string, begin, end time.Time) ([]series, error) {
	return p.ask(ctx, "/api/v1/query_range", url.Values{"query": {expr}, "step": {"1"},
		"start": {fmt.Sprint(begin.Unix())}, "end": {fmt.Sprint(end.Unix())}})
}

func (p *database) ask(ctx context.Context, path string, query url.Values) ([]series, error) {
	text, err := get(ctx, p.url+path+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Result []series }
	}
	return answer.Data.Result, unmarshal(text, &answer)
}

// one asks for the single value that an expression has now.
func (p *database) one(ctx context.Context, expr string) (float64, error) {
	list, err := p.query(ctx, expr)
	if err != nil || len(list) != 1 || len(list[0].finite()) != 1 {
		return 0, fmt.Errorf("%s: %v %v, want one number", expr, list, err)
	}
	return list[0].finite()[0], nil
}

// waitFor waits until a comparison is true of every series that it is about, of which there is one at least.
func (p *database) waitFor(t *testing.T, expr string) {
	t.Helper()
	eventually(t, expr, func() error {
		v, err := p.one(t.Context(), "min("+expr+")")
		if err == nil && v != 1 {
			err = fmt.Errorf("not yet")
		}
		return err
	})
}

func unmarshal(text string, to any) error {
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("%w: %.200s", err, text)
	}
	return nil
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, res.Status, body)
	}
	return string(body), err
}
