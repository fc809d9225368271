package main

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// failureStatuses are the HTTP statuses from 400 to 599 that count as failures, from 400 on: the plugin's `health.statuses`.
type failureStatuses [200]bool

const firstFailure = 400

func (s *failureStatuses) has(status int) bool {
	i := status - firstFailure
	return i >= 0 && i < len(s) && s[i]
}

// UnmarshalJSON reads a list of statuses, and of "4xx" and "5xx" for a hundred each.
func (s *failureStatuses) UnmarshalJSON(text []byte) error {
	*s = failureStatuses{}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil || list == nil {
		return &json.UnmarshalTypeError{Value: string(text), Type: reflect.TypeFor[failureStatuses]()}
	}
	for _, v := range list {
		low, count := 0, 1
		switch string(v) {
		case `"4xx"`:
			low, count = 400, 100
		case `"5xx"`:
			low, count = 500, 100
		default:
			low, _ = strconv.Atoi(string(v)) // 0 is no status
		}
		if low -= firstFailure; low < 0 || low >= len(s) {
			return &json.UnmarshalTypeError{Value: string(v), Type: reflect.TypeFor[failureStatuses]()}
		}
		for i := range count {
			s[low+i] = true
		}
	}
	return nil
}
