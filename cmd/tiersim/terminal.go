package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// color reports whether the output goes to a terminal that wants colours (https://no-color.org).
func (a *app) color() bool {
	if v, ok := a.lookupEnv("NO_COLOR"); ok && v != "" {
		return false
	}
	return terminal(a.stdout)
}
