package screen

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Terminal reports whether f is a terminal: what a command reads from, or writes to.
func Terminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// Colours reports whether w is a terminal that wants colours (https://no-color.org).
func Colours(w io.Writer, lookupEnv func(string) (string, bool)) bool {
	if v, ok := lookupEnv("NO_COLOR"); ok && v != "" {
		return false
	}
	return Terminal(w)
}
