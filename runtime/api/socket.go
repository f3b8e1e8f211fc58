package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketName is the socket's name in the data directory.
const socketName = "tierd.sock"

// socketPathMax is the longest path that every system can bind, in bytes: Linux has room for 107,
// others for 103.
const socketPathMax = 100

// SocketPath is where the daemon of the data directory listens. Where the path would be too long
// to bind, it lies in runtimeDir under a name made of the data directory's. dataDir is absolute, so
// that daemon and commands agree.
func SocketPath(dataDir, runtimeDir string) string {
	path := filepath.Join(dataDir, socketName)
	if len(path) <= socketPathMax {
		return path
	}
	sum := sha256.Sum256([]byte(filepath.Clean(dataDir)))
	return filepath.Join(runtimeDir, "tierd-"+hex.EncodeToString(sum[:8])+".sock")
}

// RuntimeDir is the directory for sockets: $XDG_RUNTIME_DIR, else that for temporary files.
func RuntimeDir(lookupEnv func(string) (string, bool)) string {
	if dir, ok := lookupEnv("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return dir
	}
	return os.TempDir()
}

// tooLong says of a system's error that the path is too long for a socket, and what to do.
func tooLong(path string, err error) error {
	if !errors.Is(err, syscall.EINVAL) || len(path) <= socketPathMax {
		return err
	}
	return fmt.Errorf("%w: the path of a socket may have %d bytes everywhere, and this one has %d: "+
		"set XDG_RUNTIME_DIR, or TMPDIR where that is not set, to a shorter directory", err,
		socketPathMax, len(path))
}

// Listen listens on the socket, for the owner alone. Only the holder of the data directory's lock
// may call it: a socket that is already there is what a dead daemon left behind.
func Listen(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listen on the socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listen on the socket %s: something else has that name", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the old socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", tooLong(path, err))
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), l.Close())
	}
	return l, nil
}
