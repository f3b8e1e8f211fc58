// Package cmdline reads the command lines of tierd's programs, of each in the same way.
package cmdline

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// WrongUsage is the exit code of a program that does not understand its arguments.
const WrongUsage = 2

// exited ends the parser where kong wants to end the process.
type exited int

// Parse reads the arguments of a program into c, a pointer to a struct with kong's tags; one whose
// tags make no sense panics. The command is nil where everything was done that was asked for, as by
// --help: then the program ends with the code. The error says what is wrong, and which help is of
// use. Without arguments it is the help itself that is said, on stderr, and the code is that of
// wrong usage.
func Parse(c any, name, description string, args []string, stdout, stderr io.Writer) (
	command *kong.Context, code int, err error) {
	bare := len(args) == 0
	if bare {
		args, stdout = []string{"--help"}, stderr
	}
	parser := kong.Must(c, kong.Name(name), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100,
			NoAppDescFormat: true}))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			command, code, err = nil, int(r), nil
			if bare {
				code = WrongUsage
			}
		default:
			panic(r)
		}
	}()
	command, err = parser.Parse(args)
	if p := (*kong.ParseError)(nil); errors.As(err, &p) {
		help := name
		if n := p.Context.Selected(); n != nil {
			help = n.FullPath()
		}
		// A flag that may be left out has "" among its values, which nobody writes.
		said := strings.Replace(err.Error(), `must be one of "",`, "must be one of ", 1)
		if before, _, ok := strings.Cut(said, ": time: "); ok && strings.Contains(before, "duration") {
			said = before + ": want a number with its unit, such as 60s or 10m"
		}
		err = fmt.Errorf("%s\nsee: %s --help", said, help)
	}
	return command, 0, err
}
