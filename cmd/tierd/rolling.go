package main

import (
	"net/http"
	"time"
)

// rolling gives each write of an answer a deadline of its own: a segment of a gigabyte may take a
// slow client longer than any one deadline that would notice a client that takes nothing.
func rolling(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&rollingWriter{w, http.NewResponseController(w)}, r)
	})
}

type rollingWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
}

// Write implements http.ResponseWriter. Where the connection knows no deadlines there are none.
func (w *rollingWriter) Write(p []byte) (int, error) {
	_ = w.controller.SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *rollingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
