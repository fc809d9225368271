package replica

import "net/http"

// serveModels lists the one model, as clients ask for it before they talk. It was made at the Unix epoch: replicas of one
// model must not differ here.
func (s *Server) serveModels(w http.ResponseWriter, _ *http.Request) {
	model := object{"id": s.config.Model, "object": "model", "created": 0, "owned_by": "hostsim"}
	writeJSON(w, http.StatusOK, object{"object": "list", "data": []object{model}})
}
