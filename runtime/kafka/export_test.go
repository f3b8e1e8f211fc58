package kafka

// EncodeFetch is encodeFetch, for tests.
var EncodeFetch = encodeFetch

// Free is how much of the memory for records is not in use.
func Free(s *Server) int64 {
	s.fetches.mu.Lock()
	defer s.fetches.mu.Unlock()
	return s.fetches.free
}
