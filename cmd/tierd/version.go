package main

import (
	"runtime"
	"runtime/debug"
)

// versionCmd prints what was built, and how.
type versionCmd struct{ output }

// build describes the binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // the checkout had changes that were not committed
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// thisBuild reads what the Go linker knows.
func thisBuild() build {
	b := build{Version: "devel", Commit: "unknown", Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Run prints it.
func (c *versionCmd) Run(a *app) error {
	b := thisBuild()
	return c.print(a, b, func(p *page) {
		p.line("tierd %s (commit %s, %s, %s/%s)", b.Version, b.Commit, b.Go, b.OS, b.Arch)
	})
}
