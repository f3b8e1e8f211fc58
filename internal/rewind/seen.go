package rewind

import "unsafe"

// seen numbers what was met, from 1. It is a hash table whose places are never emptied: those of an
// older life are free.
type seen struct {
	places []seenPlace // a power of two
	met    uint64      // in this life
	life   uint64
}

// seenPlace has so many values of a shape that lie at an address.
type seenPlace struct {
	at     unsafe.Pointer
	of     *shape
	n      int
	number uint64
	life   uint64
}

// seenMin is how many places there are in the beginning.
const seenMin = 1 << 10

// forget has nothing met yet.
func (s *seen) forget() {
	s.met = 0
	s.life++
}

// meet gives the number of what lies there, and whether it was met before.
func (s *seen) meet(at unsafe.Pointer, of *shape, n int) (number uint64, before bool) {
	if s.met*2 >= uint64(len(s.places)) {
		s.grow()
	}
	p := s.find(at, of, n)
	if p.life == s.life {
		return p.number, true
	}
	s.met++
	*p = seenPlace{at, of, n, s.met, s.life}
	return s.met, false
}

// find gives the place that has it, or the free one where it is to be.
func (s *seen) find(at unsafe.Pointer, of *shape, n int) *seenPlace {
	last := uint64(len(s.places) - 1)
	i := (uint64(uintptr(at))*oddOne ^ uint64(uintptr(unsafe.Pointer(of)))*oddTwo) >> 20
	for ; ; i++ {
		p := &s.places[i&last]
		if p.life != s.life || p.at == at && p.of == of && p.n == n {
			return p
		}
	}
}

func (s *seen) grow() {
	before := s.places
	s.places = make([]seenPlace, max(2*len(before), seenMin))
	for _, p := range before {
		if p.life == s.life {
			*s.find(p.at, p.of, p.n) = p
		}
	}
}
