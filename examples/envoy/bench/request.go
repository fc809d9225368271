package main

import (
	"bytes"
	"fmt"
	"strings"
)

// sdkHeaders are what OpenAI's SDK for Python sends with a completion, beside those of every request here.
const sdkHeaders = "accept: application/json\r\n" +
	"accept-encoding: gzip, deflate\r\n" +
	"authorization: Bearer sk-0123456789abcdef0123456789abcdef0123456789abcdef\r\n" +
	"x-stainless-arch: x64\r\n" +
	"x-stainless-async: false\r\n" +
	"x-stainless-lang: python\r\n" +
	"x-stainless-os: Linux\r\n" +
	"x-stainless-package-version: 2.8.1\r\n" +
	"x-stainless-read-timeout: 600\r\n" +
	"x-stainless-retry-count: 0\r\n" +
	"x-stainless-runtime: CPython\r\n" +
	"x-stainless-runtime-version: 3.12.4\r\n"

// noSession stands where a session's number comes, with as many digits.
const noSession = "########"

// request is the text of a turn, and where in it the session's number stands. Of the body the prompt is what its size
// leaves, and the session is named behind it, where it costs most.
func (o order) request() (text []byte, places []int) {
	method, headers := "GET /v1/models", ""
	if o.Body > 0 {
		method = "POST /v1/chat/completions"
	}
	if o.SDK {
		headers = sdkHeaders
	}
	header, key := "x-session-id", "ignored"
	if o.InBody {
		header, key = "x-ignored", "user"
	}
	b := fmt.Appendf(nil, "%s HTTP/1.1\r\nhost: llm\r\nuser-agent: bench\r\n%s%s: rollout-%s\r\n", method, headers, header, noSession)
	if o.Body > 0 {
		frame := `{"prompt":"%s","%s":"rollout-%s"}`
		if o.SDK { // a router reads it
			frame = `{"model":"m","messages":[{"role":"user","content":"%s"}],"%s":"rollout-%s"}`
		}
		prompt := strings.Repeat("some words ", o.Body/11+1)[:max(0, o.Body-len(fmt.Sprintf(frame, "", key, noSession)))]
		b = fmt.Appendf(b, "content-type: application/json\r\ncontent-length: %d\r\n\r\n", o.Body)
		b = fmt.Appendf(b, frame, prompt, key, noSession)
	} else {
		b = append(b, "\r\n"...)
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(noSession))
		if i < 0 {
			return b, places
		}
		places = append(places, at+i)
		at += i + len(noSession)
	}
}

// setSession writes a session's number, of eight digits at most, at its places.
func setSession(text []byte, places []int, id int) {
	for _, at := range places {
		for i, n := len(noSession)-1, id; i >= 0; i, n = i-1, n/10 {
			text[at+i] = byte('0' + n%10)
		}
	}
}
