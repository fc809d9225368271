package plugin

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

// localReply is an answer in the gateway's place.
type localReply struct {
	status  uint32
	body    string
	headers [][2]string
	// unnamed says that the request has named no session so far.
	unnamed bool
	// after is nil unless the answer waits for what etcd says.
	after *releasing
}

func refusal(status uint32, why string) localReply {
	return localReply{status: status, body: `{"status":"error","error":` + quoteJSON(why) + "}"}
}

func released(ids string) localReply {
	return localReply{status: 200, body: `{"status":"ok","session_id":` + quoteJSON(ids) + "}"}
}

// send gives the answer. It is the last thing that a callback does with a request.
func (a localReply) send() {
	headers := append(a.headers, [2]string{"content-type", "application/json"})
	if err := proxywasm.SendHttpResponse(a.status, headers, []byte(a.body+"\n"), -1); err != nil {
		proxywasm.LogError("pinwheel: the gateway refused a local reply: " + err.Error())
	}
}
