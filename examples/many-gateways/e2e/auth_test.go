//go:build etcd

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/etcdtest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// etcd asks for a password, and lets the gateways' user at its prefix alone. When etcd is started again it has forgotten all
// tokens.
func TestAuth(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		etcd := startEtcd(t, 1)
		root, user := etcdtest.User{Name: "root", Password: "of all"}, etcdtest.User{Name: "pinwheel", Password: `of "gateways" \ alone`}
		token, err := etcd[0].EnableAuth(t.Context(), root, user, "/pinwheel/")
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, envoy, etcd, as(user))
		r.waitState(t, "ok")
		all := r.Run(t.Context(), fleet.Load{Name: "asked", Sessions: 300, Turns: 3, Raced: true, Clients: 16})
		noneFailed(t, all)
		allAgree(t, "with a password", all)
		r.finished(t, token)

		load := fleet.Load{Name: "restarted", Sessions: 300, Turns: 3, Every: 10 * time.Millisecond, Gap: 500 * time.Millisecond}
		done := make(chan fleet.Sessions)
		go func() { done <- r.Run(context.Background(), load) }()
		time.Sleep(time.Second)
		etcd[0].Stop()
		if err := etcd[0].Again(t.Context()); err != nil {
			t.Error(err)
		}
		meanwhile := <-done
		noneFailed(t, meanwhile)
		r.waitState(t, "ok")
		after := r.More(t.Context(), meanwhile, fleet.Load{Turns: 2, Clients: 16})
		noneFailed(t, after)
		allAgree(t, "with new tokens", after)
		if token, err = etcd[0].Authenticate(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		homes, err := etcd[0].Keys(t.Context(), "/pinwheel/default/s/", token)
		if want := len(all) + len(meanwhile) + 120; err != nil || len(homes) != want {
			t.Errorf("%d homes in etcd, want %d (%v)", len(homes), want, err)
		}
	})
}

// With a wrong password there is no agreement, and no client sees it.
func TestWrongPassword(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		etcd := startEtcd(t, 1)
		root, user := etcdtest.User{Name: "root", Password: "of all"}, etcdtest.User{Name: "pinwheel", Password: "of gateways"}
		if _, err := etcd[0].EnableAuth(t.Context(), root, user, "/pinwheel/"); err != nil {
			t.Fatal(err)
		}
		user.Password = "of nobody"
		r := start(t, envoy, etcd, as(user))
		all := r.Run(t.Context(), fleet.Load{Name: "refused", Sessions: 200, Turns: 3, Clients: 8, Gap: 10 * time.Millisecond})
		noneFailed(t, all)
		r.waitState(t, "degraded")
		if n := r.calls(t).Of("auth", "refused"); n == 0 {
			t.Errorf("no call for a token was refused: %v", r.calls(t))
		}
		// Both fall back to the same home, as if neither had a memory.
		allAgree(t, "without etcd", all)
	})
}

func as(u etcdtest.User) func(map[string]any) {
	return func(c map[string]any) {
		patient(c)
		a := fleet.Agreement(c)
		a["username"], a["password"] = u.Name, u.Password
	}
}
