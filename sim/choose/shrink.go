package choose

import "slices"

// Shrink makes a list of choices smaller that fails keeps true of: whole steps go, from many at a
// time to one, and then each outcome becomes as small as it can. fails runs a history by the list,
// loosely, and gives the choices that it came to make, if it still fails as before. Shrink calls it
// at most so many times, and returns the smallest list that it found.
func Shrink(choices []Choice, runsMax int, fails func([]Choice) ([]Choice, bool)) []Choice {
	s := &shrinker{best: choices, left: runsMax, fails: fails}
	for before := -1; before != s.measure() && s.left > 0; {
		before = s.measure()
		s.dropSteps()
		s.lower()
	}
	return s.best
}

type shrinker struct {
	best  []Choice
	left  int
	fails func([]Choice) ([]Choice, bool)
}

// measure is smaller for a smaller list: each step counts for more than all outcomes.
func (s *shrinker) measure() int { return size(s.best) }

func size(choices []Choice) int {
	const step = 1 << 20
	sum := 0
	for _, c := range choices {
		if c.Label == Step {
			sum += step
		} else {
			sum += 1 + c.Pick
		}
	}
	return sum
}

// try takes the list if it fails as before and is smaller.
func (s *shrinker) try(candidate []Choice) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	made, ok := s.fails(candidate)
	if !ok || size(made) >= s.measure() {
		return false
	}
	s.best = made
	return true
}

func (s *shrinker) dropSteps() {
	for n := len(Steps(s.best)) / 2; n > 0; n /= 2 {
		for at := len(Steps(s.best)) - n; at >= 1; at -= n {
			steps := Steps(s.best)
			if at+n > len(steps) {
				continue
			}
			s.try(slices.Concat(slices.Concat(steps[:at]...), slices.Concat(steps[at+n:]...)))
		}
	}
}

// lower makes outcomes smaller, each first 0, then by halves, then by one.
func (s *shrinker) lower() {
	for i := len(s.best) - 1; i >= 0; i-- {
		for low := 0; i < len(s.best) && s.best[i].Label != Step && low < s.best[i].Pick; {
			pick := s.best[i].Pick
			candidate := slices.Clone(s.best)
			candidate[i].Pick, candidate[i].Name = low, "" // the name would say which it was
			if s.try(candidate) || s.left == 0 {
				break
			}
			low = max(low+1, (low+pick)/2)
		}
	}
}
