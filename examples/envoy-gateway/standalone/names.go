package standalone

import (
	"net"

	"golang.org/x/net/dns/dnsmessage"
)

// NameServer answers every question for an address with 127.0.0.1 until it is
// closed. Envoy takes the plugin from Envoy Gateway's service by a name that only
// a cluster knows.
func NameServer() (net.PacketConn, error) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			if reply, err := answer(buffer[:n]); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return conn, nil
}

func answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	for _, q := range m.Questions {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			})
		}
	}
	return m.Pack()
}
