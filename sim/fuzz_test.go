package sim

import (
	"testing"

	"github.com/tierd/tierd/sim/choose"
)

// fuzzBytesMax bounds a history that fuzzing writes, so that each is made in a moment.
const fuzzBytesMax = 256

// FuzzHistory lets fuzzing write histories of tierd's own project, plain or on a broker's
// directory: each choice is one of the bytes.
func FuzzHistory(f *testing.F) {
	plain, err := Builtin()
	if err != nil {
		f.Fatal(err)
	}
	kafka, err := BuiltinKafka()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0, 1, 8, 1, 0, 1, 12, 14, 12})
	f.Add([]byte{1, 0, 30, 2, 0, 2, 13, 41, 12, 14, 3, 12})
	f.Fuzz(func(t *testing.T, text []byte) {
		p := plain
		if len(text) > 0 && text[0]%2 == 1 {
			p = kafka
		}
		choices := choose.Bytes(text[min(1, len(text)):min(len(text), fuzzBytesMax)])
		r := &choose.Recorder{Chooser: &choices}
		if out := p.Run(r, Options{}); out.Violation != nil {
			s := &choose.Scenario{Property: string(out.Violation.Property), Digest: p.Digest,
				Choices: r.Made}
			t.Errorf("%s\n%s", out.Violation, s.Encode())
		}
	})
}
