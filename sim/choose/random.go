package choose

import (
	"fmt"
	"math/rand/v2"
)

// Random chooses by chance, the same for the same seed.
type Random struct {
	rng *rand.Rand
	// Rates are what Rate gave, in order, for people.
	Rates []string
}

// stream tells the numbers of tiersim apart from others of the same seed: its name, in ASCII.
const stream = 0x7469657273696d

// NewRandom returns a chooser for the seed.
func NewRandom(seed uint64) *Random {
	return &Random{rng: rand.New(rand.NewPCG(seed, stream))}
}

// Rate draws how likely a kind of thing shall be in this history. It is no choice: what it makes
// likely is chosen, and written down, when it comes about.
func (r *Random) Rate(kind string, levels ...int) int {
	rate := levels[r.rng.IntN(len(levels))]
	r.Rates = append(r.Rates, fmt.Sprintf("%s %d", kind, rate))
	return rate
}

// Favour draws what shall happen often in this history.
func (r *Random) Favour(names []string) string {
	name := names[r.rng.IntN(len(names))]
	r.Rates = append(r.Rates, "often "+name)
	return name
}

// Choose implements Chooser.
func (r *Random) Choose(_ string, n int) int { return r.rng.IntN(n) }

// Pick chooses by the weights. Where all are 0 the first outcome is chosen.
func (r *Random) Pick(_ string, names []string, weights []int) int {
	if weights == nil {
		return r.rng.IntN(len(names))
	}
	total := 0
	for _, w := range weights {
		total += w
	}
	if total == 0 {
		return 0
	}
	at := r.rng.IntN(total)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	panic("choose: the weights are less than their sum")
}

// Bytes chooses by bytes, as fuzzing gives them; once they are used up, always outcome 0.
type Bytes []byte

// Choose implements Chooser. A choice takes one byte, two where it has more than 256 outcomes, and
// none where it has one.
func (b *Bytes) Choose(_ string, n int) int {
	if n == 1 {
		return 0
	}
	v := b.next()
	if n > 256 {
		v = v<<8 | b.next()
	}
	return v % n
}

func (b *Bytes) next() int {
	if len(*b) == 0 {
		return 0
	}
	v := (*b)[0]
	*b = (*b)[1:]
	return int(v)
}
