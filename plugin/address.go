package plugin

import (
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// canonicalAddress spells IP:PORT or [IPv6]:PORT as the gateway's load balancer does (RFC 5952), the port from 1 to 65535. It
// reads and writes as net/netip does, but for zones, which it refuses: netip keeps them in package unique, and the two cost the
// module more than all of the configuration's sections.
func canonicalAddress(s string) (string, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 1 {
		return "", false
	}
	host, bracketed := s[:i], false
	if n := len(host); n >= 2 && host[0] == '[' && host[n-1] == ']' {
		host, bracketed = host[1:n-1], true
	}
	a, ok := parseIP(host)
	port, err := strconv.ParseUint(s[i+1:], 10, 16)
	if !ok || a.v4 == bracketed || err != nil || port == 0 {
		return "", false
	}
	return a.withPort(uint16(port)), true
}

// ip is an IPv6 address, or an IPv4 one in the last four bytes.
type ip struct {
	b  [16]byte
	v4 bool
}

func parseIP(s string) (a ip, ok bool) {
	if strings.IndexByte(s, ':') < 0 {
		a.v4 = true
		return a, parseIPv4(s, a.b[12:])
	}
	return a, parseIPv6(s, &a.b)
}

// parseIPv4 reads four decimal numbers without leading zeros.
func parseIPv4(s string, into []byte) bool {
	for i := range 4 {
		part, rest, dotted := strings.Cut(s, ".")
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || len(part) > 1 && part[0] == '0' || dotted != (i < 3) {
			return false
		}
		into[i], s = byte(n), rest
	}
	return true
}

// parseIPv6 reads the forms of RFC 4291, section 2.2; "::" stands for one group or more.
func parseIPv6(s string, into *[16]byte) bool {
	gap := -1 // where "::" stands
	if strings.HasPrefix(s, "::") {
		if gap, s = 0, s[2:]; s == "" {
			return true
		}
	}
	i := 0
	for i < 16 {
		n, group := 0, uint16(0)
		for ; n < len(s) && json.Hex(s[n]) >= 0; n++ {
			group = group<<4 | uint16(json.Hex(s[n]))
		}
		if n == 0 || n > 4 {
			return false
		}
		if n < len(s) && s[n] == '.' {
			if i > 12 || i < 12 && gap < 0 || !parseIPv4(s, into[i:i+4]) {
				return false
			}
			i, s = i+4, ""
			break
		}
		into[i], into[i+1] = byte(group>>8), byte(group)
		if i, s = i+2, s[n:]; s == "" {
			break
		}
		if s[0] != ':' || len(s) == 1 {
			return false
		}
		if s = s[1:]; s[0] != ':' {
			continue
		}
		if gap >= 0 {
			return false
		}
		if gap, s = i, s[1:]; s == "" {
			break
		}
	}
	if s != "" || (i < 16) != (gap >= 0) {
		return false
	}
	if gap >= 0 {
		behind := copy(into[16-(i-gap):], into[gap:i])
		clear(into[gap : 16-behind])
	}
	return true
}

// withPort spells the address with a port behind it.
func (a *ip) withPort(port uint16) string {
	b := make([]byte, 0, len("[0000:0000:0000:0000:0000:0000:0000:0000]:65535"))
	if a.v4 {
		b = appendIPv4(b, a.b[12:])
	} else {
		b = append(a.appendIPv6(append(b, '[')), ']')
	}
	return string(strconv.AppendUint(append(b, ':'), uint64(port), 10))
}

func appendIPv4(b, a []byte) []byte {
	for i, n := range a {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, uint64(n), 10)
	}
	return b
}

func (a *ip) appendIPv6(b []byte) []byte {
	group := func(i int) uint16 { return uint16(a.b[2*i])<<8 | uint16(a.b[2*i+1]) }
	gap, end := 8, 8 // the longest run of two zero groups or more, the first of several
	for i := 0; i < 8; i++ {
		j := i
		for j < 8 && group(j) == 0 {
			j++
		}
		if j-i > max(end-gap, 1) {
			gap, end = i, j
		}
		i = max(i, j-1)
	}
	if gap == 0 && end == 5 && group(5) == 0xffff { // IPv4-mapped
		return appendIPv4(append(b, "::ffff:"...), a.b[12:])
	}
	for i := 0; i < 8; i++ {
		if i == gap {
			b = append(b, "::"...)
			if i = end; i == 8 {
				break
			}
		} else if i > 0 {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(group(i)), 16)
	}
	return b
}
