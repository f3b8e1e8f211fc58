package daemon

import (
	"path/filepath"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// TestNobodyTakesAsLong: whether a name is there must not show in how long a password takes, which
// its hash decides.
func TestNobodyTakesAsLong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	lines := ""
	for name, cost := range map[string]int{"ann": bcrypt.MinCost, "bob": bcrypt.MinCost + 2} {
		hash, err := bcrypt.GenerateFromPassword([]byte("tea"), cost)
		if err != nil {
			t.Fatal(err)
		}
		lines += name + ": " + string(hash) + "\n"
	}
	s.put("users.yaml", lines)
	u, err := openKafkaUsers(filepath.Join(s.dir, "users.yaml"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if cost, err := bcrypt.Cost([]byte(u.decoy)); err != nil || cost != bcrypt.MinCost+2 {
		t.Errorf("who is not there is compared with a hash of cost %d, %v", cost, err)
	}
	if !u.check("ann", "tea") || u.check("ann", "no") || u.check("eve", "tea") || u.check("", "") {
		t.Error("who is let in")
	}
}
