package replica

import (
	"fmt"
	"net/http"
	"strings"
)

// serveMetrics writes the counters under vLLM's names, which count prefix cache queries and hits in tokens.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	st := s.Stats()
	w.Header().Set("content-type", "text/plain; version=0.0.4; charset=utf-8")
	label := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s.config.Model)
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.", st.PromptTokens},
		{"vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.", st.CachedTokens},
		{"vllm:generation_tokens_total", "counter", "Tokens generated.", st.OutputTokens},
		{"vllm:num_requests_running", "gauge", "Requests being served.", st.Running},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s{model_name=\"%s\"} %d\n",
			m.name, m.help, m.name, m.kind, m.name, label, m.value)
	}
}
