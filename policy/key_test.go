package policy_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// TestHashIsSipHash holds Key.Hash to the vectors that the file explains.
func TestHashIsSipHash(t *testing.T) {
	text, err := os.ReadFile("testdata/siphash_2_4_128.hex")
	if err != nil {
		t.Fatal(err)
	}
	var secret policy.Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	var id []byte
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		h := policy.NewKey(secret, id).Hash
		got := binary.LittleEndian.AppendUint64(nil, h.Hi)
		got = binary.LittleEndian.AppendUint64(got, h.Lo)
		if want := strings.TrimSpace(line); hex.EncodeToString(got) != want {
			t.Errorf("%d bytes: %x, want %s", len(id), got, want)
		}
		id = append(id, byte(len(id)))
	}
	if len(id) != 64 {
		t.Errorf("%d vectors, want 64", len(id))
	}
}

// TestRankIsFixed: two gateways, or two versions, must agree on a session's
// order of replicas. A changed constant would scatter sessions over the pool.
func TestRankIsFixed(t *testing.T) {
	ids := map[string]uint64{
		"":                                     0xf4f2ced447ab0242,
		"s1":                                   0xa174a51ab48a0263,
		"018f3c5e-7d2a-7b31-9c44-5a1f0e6b2d90": 0xc1ed61ca8ca46b2e,
		"\xc0\xa7\xc0\xa2":                     0xdb889991c50fbd8c,
	}
	for id, want := range ids {
		for _, secret := range []policy.Secret{{}, {1}} {
			if got := policy.NewKey(secret, []byte(id)).Rank; got != want {
				t.Errorf("%q: Rank %#x, want %#x", id, got, want)
			}
		}
	}
	if got := policy.RankAddress("10.0.0.1:8000"); got != 0x8b84eb3fb1883646 {
		t.Errorf("RankAddress %#x", got)
	}
}

func TestHashDependsOnSecretAndEveryByte(t *testing.T) {
	id := bytes.Repeat([]byte{'x'}, 300)
	seen := map[policy.Hash]string{
		policy.NewKey(policy.Secret{}, id).Hash:      "id",
		policy.NewKey(policy.Secret{15: 1}, id).Hash: "id under another secret",
		policy.NewKey(policy.Secret{}, id[:44]).Hash: "id cut by 256: the length's last byte is equal",
	}
	if len(seen) != 3 {
		t.Fatalf("equal hashes: %v", seen)
	}
	for i := range id {
		id[i] ^= 0x80
		h := policy.NewKey(policy.Secret{}, id).Hash
		if other, ok := seen[h]; ok {
			t.Fatalf("byte %d flipped hashes like %s", i, other)
		}
		seen[h] = "another"
		id[i] ^= 0x80
	}
}

// TestScopeIsUnambiguous: with a fixed number of scope values, as configuration
// gives it, no two lists of values and an id make the same bytes.
func TestScopeIsUnambiguous(t *testing.T) {
	long := strings.Repeat("t", 200)
	for _, lists := range [][][]string{
		{{"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}, {long, "c"}, {long[1:], "tc"}, {"\x01a", "b"}, {"\x01", "ab"}},
		{{"a", "b", "c"}, {"ab", "", "c"}, {"", "ab", "c"}, {"a", "", "bc"}, {"", "", "abc"}, {"a\x01b", "", "c"}, {"a", "\x01b", "c"}},
	} {
		seen := map[string][]string{}
		for _, list := range lists {
			var made []byte
			id := len(list) - 1
			for _, value := range list[:id] {
				made = policy.AppendScope(made, value)
			}
			made = append(made, list[id]...)
			if other, ok := seen[string(made)]; ok {
				t.Errorf("%q and %q make the same key", list, other)
			}
			seen[string(made)] = list
		}
	}
}

func TestAppendScopeBytes(t *testing.T) {
	got := policy.AppendScope([]byte("x"), strings.Repeat("t", 300))
	if want := "x\xac\x02" + strings.Repeat("t", 300); string(got) != want {
		t.Errorf("got %q", got)
	}
}

// The rank is the hash under the zero key, though both come of one pass.
func TestRankIsTheHashUnderZero(t *testing.T) {
	for n := range 41 {
		id := []byte(strings.Repeat("session ", 6)[:n])
		zero, other := policy.NewKey(policy.Secret{}, id), policy.NewKey(policy.Secret{1}, id)
		if zero.Rank != zero.Hash.Lo || other.Rank != zero.Rank || other.Hash == zero.Hash {
			t.Errorf("%d bytes: %x under zero, %x under another", n, zero, other)
		}
	}
}
