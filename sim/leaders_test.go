package sim

import "testing"

// TestLeaderHistories lets chance write histories of tierd's own project on a broker's directory.
func TestLeaderHistories(t *testing.T) {
	t.Parallel()
	p, err := BuiltinKafka()
	if err != nil {
		t.Fatal(err)
	}
	tryHistories(t, p, *historyCount)
}
