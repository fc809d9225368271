package envoytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Admin reads the admin interface of an Envoy. It holds no state beyond the
// address and may be copied.
type Admin struct {
	// Addr is host:port.
	Addr string
}

// Stats are counters and gauges by their full name. Gauges that were driven
// below zero show as numbers near 2^64.
type Stats map[string]uint64

// Get returns the body of an admin page; path begins with a slash. A status
// other than 200 is an error.
func (a Admin) Get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.Addr+path, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("envoytest: admin %s: %s: %.200s", path, res.Status, body)
	}
	return string(body), nil
}

// Ready reports whether Envoy has loaded its configuration and serves.
func (a Admin) Ready(ctx context.Context) bool {
	text, err := a.Get(ctx, "/ready")
	return err == nil && strings.HasPrefix(text, "LIVE")
}

// Stats reads the counters and gauges whose names match the regular expression.
func (a Admin) Stats(ctx context.Context, match string) (Stats, error) {
	text, err := a.Get(ctx, "/stats?format=json&filter="+url.QueryEscape(match))
	if err != nil {
		return nil, err
	}
	return parseStats(text)
}

// parseStats skips histograms, which are entries without a name, and texts.
func parseStats(text string) (Stats, error) {
	var page struct {
		Stats []struct {
			Name  string
			Value json.RawMessage // json.Number would refuse texts, float64 rounds
		}
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		return nil, fmt.Errorf("envoytest: admin stats: %w", err)
	}
	stats := Stats{}
	for _, s := range page.Stats {
		v, err := strconv.ParseUint(string(s.Value), 10, 64)
		if s.Name != "" && err == nil {
			stats[s.Name] = v
		}
	}
	return stats, nil
}
